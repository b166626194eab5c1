"""The figures of a run, added up over its spiders, and how people read numbers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_plus.core.outcome import CrawlSnapshot

SHORTEST_SECONDS = 0.1
"""Below it a rate says nothing: three pages that nothing had to be waited for are no thousand a second."""
STATUS = "downloader/response_status_count/"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one spider, or all of them, did so far and what is left."""

    pages: int = 0
    items: int = 0
    bytes: int = 0
    done: int = 0
    queued: int = 0
    in_flight: int = 0
    delayed: int = 0
    dead: int = 0
    errors: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def classes(self) -> dict[str, int]:
        """Answers by class: 2xx, 3xx, 4xx, 5xx, as far as there are any."""
        classes: Counter[str] = Counter()
        for status, count in self.statuses.items():
            classes[f"{status[0]}xx"] += count
        return dict(sorted(classes.items()))


def figures(crawls: Iterable[CrawlSnapshot]) -> Figures:
    """The figures of these crawls together."""
    total: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for crawl in crawls:
        stats = crawl.stats
        total["pages"] += stats.get("downloader/response_count", stats.get("response_received_count", 0))
        total["items"] += stats.get("item_scraped_count", 0)
        total["bytes"] += stats.get("downloader/response_bytes", 0)
        total["errors"] += stats.get("downloader/exception_count", 0) + stats.get("spider_exceptions_count", 0)
        total["done"] += crawl.counts.done
        total["queued"] += crawl.counts.ready
        total["in_flight"] += crawl.counts.leased
        total["delayed"] += crawl.counts.delayed
        total["dead"] += crawl.counts.dead
        statuses.update(counted(stats, STATUS))
    return Figures(**total, statuses=statuses)


def counted(stats: dict[str, Any], prefix: str) -> dict[str, int]:
    """The counters whose name starts with `prefix`, by the rest of the name."""
    return {name[len(prefix) :]: count for name, count in stats.items() if name.startswith(prefix)}


class Rates:
    """Figures per second, over the last seconds and since the start."""

    def __init__(self, *, window_seconds: float = 5.0) -> None:
        self._window_seconds = window_seconds
        self._past: deque[tuple[float, Figures]] = deque([(0.0, Figures())])

    def add(self, elapsed_seconds: float, now: Figures) -> None:
        self._past.append((elapsed_seconds, now))
        while len(self._past) > 2 and self._past[1][0] <= elapsed_seconds - self._window_seconds:
            self._past.popleft()

    def now(self, name: str) -> float:
        (start, before), (end, after) = self._past[0], self._past[-1]
        return _ratio(getattr(after, name) - getattr(before, name), end - start)

    def average(self, name: str) -> float:
        end, after = self._past[-1]
        return _ratio(getattr(after, name), end)


def _ratio(count: float, seconds: float) -> float:
    return count / seconds if seconds >= SHORTEST_SECONDS else 0.0


def show_rate(per_second: float) -> str:
    return f"{per_second:,.1f}/s" if per_second < 100 else f"{per_second:,.0f}/s"


def show_bytes(count: float) -> str:
    """1,234 B, 1.2 MB: powers of 1000, as networks are measured."""
    if count < 10_000:
        return f"{count:,.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:,.1f} {unit}"
    return f"{count / 1000:,.1f} TB"


def show_duration(seconds: float) -> str:
    """4.2 s below a minute, else 2:05 or 1:02:05."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_counts(counts: dict[str, int]) -> str:
    """`200: 1,000  404: 3`, most frequent first."""
    return "  ".join(f"{name}: {count:,}" for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
