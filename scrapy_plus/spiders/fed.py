"""Spiders whose requests other programs bring, by the names that scrapy-redis gave them."""

from __future__ import annotations

from typing import Any

from scrapy_plus.core.spider import Spider
from scrapy_plus.rules.feed_entry import read_entry
from scrapy_plus.spiders.crawl import CrawlSpider


class Fed:
    """Takes what comes at `redis_key` (by default NAME:start_urls); `make_request_from_data` reads an entry."""

    redis_key: str | None = None

    def make_request_from_data(self, data: bytes) -> Any:
        """The request, several of them, or None, for the bytes of an entry: a URL, or JSON as docs/feeding.md has it.

        Raises: BadEntry, or anything else, for what is none; it becomes a dead letter with its bytes.
        """
        return read_entry(data, encoding=self.settings.REDIS_START_URLS_ENCODING)  # type: ignore[attr-defined]


class RedisSpider(Fed, Spider):
    """A spider that is fed."""


class RedisCrawlSpider(Fed, CrawlSpider):
    """A spider that is fed, and follows links by rules: those of its entries' pages first."""

    def make_request_from_data(self, data: bytes) -> Any:
        request = super().make_request_from_data(data)
        return request.replace(parse="_parse_start") if request.parse == "parse" else request
