"""What happened, counted under the names that Scrapy's users know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
        self._increments[name] = self._increments.get(name, 0) + count

    def take_increments(self) -> dict[str, int]:
        """What was counted since the last call, for the store that adds up the counts of all processes."""
        taken, self._increments = self._increments, {}
        return taken

    def set(self, name: str, value: Any) -> None:
        self._values[name] = value

    def max(self, name: str, value: Any) -> None:
        self._values[name] = max(self._values.get(name, value), value)

    def get(self, name: str, default: Any = 0) -> Any:
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
