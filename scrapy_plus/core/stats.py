"""What happened, counted under the names that Scrapy's users know."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

# Each greenlet has a context of its own, so that pages that are worked on side by side are told apart.
_page_counts: ContextVar[dict[str, int] | None] = ContextVar("page counts", default=None)


@dataclass(slots=True)
class ErrorGroup:
    """Equal failures: how many, and a URL to look at."""

    reason: str
    count: int
    sample_url: str


class Stats:
    """Counters and facts of one crawl by name, and its failures grouped by reason (at most `max_groups` of them)."""

    def __init__(self, *, max_groups: int = 200) -> None:
        self._values: dict[str, Any] = {}
        self._increments: dict[str, int] = {}
        self._errors: dict[str, ErrorGroup] = {}
        self._max_groups = max_groups

    def inc(self, name: str, count: int = 1) -> None:
        self._values[name] = self._values.get(name, 0) + count
        counts = _page_counts.get()
        if counts is None:
            counts = self._increments
        counts[name] = counts.get(name, 0) + count

    def add(self, counts: dict[str, int]) -> None:
        """All of these at once."""
        values = self._values
        page = _page_counts.get()
        if page is None:
            page = self._increments
        for name, count in counts.items():
            values[name] = values.get(name, 0) + count
            page[name] = page.get(name, 0) + count

    def begin_page(self) -> None:
        """From now on this greenlet counts for one page: a store adds its counts only if it takes the page."""
        _page_counts.set({})

    def end_page(self) -> None:
        """What is left of the page's counts is not for its page: it comes again, but what happened has happened."""
        counts = _page_counts.get()
        _page_counts.set(None)
        if counts:
            self._add(counts)

    def take_increments(self) -> dict[str, int]:
        """What was counted for this greenlet's page, and since the last call for none: to be added by the store."""
        counts = _page_counts.get()
        _page_counts.set(None)
        if not self._increments:
            return counts or {}
        if counts:
            self._add(counts)
        taken, self._increments = self._increments, {}
        return taken

    def _add(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self._increments[name] = self._increments.get(name, 0) + count

    def set(self, name: str, value: Any) -> None:
        self._values[name] = value

    def max(self, name: str, value: Any) -> None:
        self._values[name] = max(self._values.get(name, value), value)

    def get(self, name: str, default: Any = 0) -> Any:
        return self._values.get(name, default)

    # Scrapy's names.
    inc_value, set_value, max_value = inc, set, max

    def get_value(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

    def error(self, reason: str, url: str) -> None:
        """Counts a failure with its group; the first URL stays as the sample, groups beyond the limit share one."""
        group = self._errors.get(reason)
        if group is None:
            if len(self._errors) >= self._max_groups:
                reason = "other"
            group = self._errors.setdefault(reason, ErrorGroup(reason, 0, url))
        group.count += 1

    def errors(self) -> list[ErrorGroup]:
        """The groups, most frequent first."""
        return sorted(self._errors.values(), key=lambda group: -group.count)

    def as_dict(self) -> dict[str, Any]:
        """A copy of all values by name, sorted by it."""
        return dict(sorted(self._values.items()))
