"""What the figures of a machine say: where a page's time goes, and what stands in the way of more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

BUSY = 0.85
"""Of a core: who is as busy as that has no time left."""
TITLES = {
    "fetched": "fetched, nothing else",
    "bare": "a bare loop: fetched, lxml, a set",
    "memory": "scrapy_plus, memory",
    "redis": "scrapy_plus, Redis",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One kind of crawl: its rate, CPU a page, and how busy it, the site and Redis were, as shares of a core.

    `crowded` is how many of its pauses were not its own: the system gave the core to another program.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ("pages_per_second", "cpu_ms", "busy", "site_busy", "redis_busy", "crowded")
    kind: str
    pages_per_second: float
    cpu_ms: float
    busy: float
    site_busy: float
    redis_busy: float
    crowded: float


def table(figures: Sequence[Figure]) -> list[str]:
    lines = [f"{'':36}{'pages/s':>9}{'CPU ms a page':>16}{'of a core':>12}"]
    for one in figures:
        lines.append(f"{TITLES[one.kind]:36}{one.pages_per_second:9,.0f}{one.cpu_ms:16.3f}{one.busy:12.0%}")
    return lines


def parts_of_page(figures: Mapping[str, Figure], parse_ms: float) -> list[tuple[str, float]]:
    """CPU milliseconds a page in memory, by what takes them; with Redis what that adds."""
    fetched, bare, memory = (figures[kind].cpu_ms for kind in ("fetched", "bare", "memory"))
    parts = [("fetching", fetched), ("parsing", parse_ms), ("the framework", max(0.0, memory - bare))]
    if redis := figures.get("redis"):
        parts.append(("keeping it in Redis", max(0.0, redis.cpu_ms - memory)))
    return parts


def limit(figure: Figure, parse_ms: float, transport: str, cores: int) -> str:
    """One sentence on what limits this crawl, and what to do."""
    if figure.redis_busy >= BUSY:
        return "Redis: its core is busy; another Redis for another crawl, or fewer links a page, would help"
    if figure.busy >= BUSY:
        advice = []
        if transport != "libcurl":
            advice.append("pip install 'scrapyplus[speed]' fetches by libcurl, for much less CPU")
        if cores > 1:
            advice.append("more processes use more cores: python main.py master --workers N")
        share = parse_ms / figure.cpu_ms
        parse = f"; lxml takes {share:.0%} of it" if share >= 0.3 else ""
        return f"the CPU: one core is busy{parse}{''.join(f'; {one}' for one in advice)}"
    if figure.site_busy >= BUSY:
        return "the site of this benchmark, which takes a core by itself: your crawler could do more"
    if figure.crowded > 0.5:
        return "other programs, which take turns with it on its core; measure again when it is quiet"
    if figure.kind == "redis":
        return "waiting: for Redis or for the site; more requests at a time (-c) hide it"
    return "waiting for the site; more requests at a time (-c) hide it"
