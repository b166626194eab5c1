"""CLOSESPIDER_*: when a crawl has had enough."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_plus.core.stats import Stats


@dataclass(slots=True)
class Limits:
    """Ends of a crawl before its end; 0 is no limit. Pages in flight still finish, so counts may go over."""

    seconds: float = 0.0
    pages: int = 0
    items: int = 0
    errors: int = 0
    seconds_without_item: float = 0.0
    last_item_at: float = 0.0

    def items_stored(self, count: int, now: float) -> None:
        if count:
            self.last_item_at = now

    def reached(self, stats: Stats, elapsed_seconds: float, now: float = 0.0) -> str | None:
        """The finish reason of the first limit that is reached, under Scrapy's name, or None."""
        if self.pages and stats.get("response_received_count") >= self.pages:
            return "closespider_pagecount"
        if self.items and stats.get("item_scraped_count") >= self.items:
            return "closespider_itemcount"
        if self.errors and stats.get("spider_exceptions_count") >= self.errors:
            return "closespider_errorcount"
        if self.seconds and elapsed_seconds >= self.seconds:
            return "closespider_timeout"
        if self.seconds_without_item and now:
            since = min(elapsed_seconds, now - self.last_item_at) if self.last_item_at else elapsed_seconds
            if since >= self.seconds_without_item:
                return "closespider_timeout_no_item"
        return None
