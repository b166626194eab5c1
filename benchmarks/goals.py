"""What the figures of a run are held to: each goal a quotient of two rows of that run, or one figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from report import Row
from steady import Steady

Rows = Mapping[str, Row]


@dataclass
class Goal:
    """`value` is None where a row is missing that it needs."""

    title: str
    limit: float
    value: float | None
    is_most: bool
    unit: str

    @property
    def is_reached(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.limit if self.is_most else self.value >= self.limit

    @property
    def asked(self) -> str:
        return f"at {'most' if self.is_most else 'least'} {self._shown(self.limit)}"

    @property
    def found(self) -> str:
        return "not measured" if self.value is None else self._shown(self.value)

    def _shown(self, value: float) -> str:
        return f"{value * 100:.0f} %" if self.unit == "share" else f"{value:,.3g} {self.unit}"


def speed(row: Row) -> float:
    return row.pages_per_second


def cpu(row: Row) -> float:
    return row.cpu_ms


TIMES, SHARE = "times", "share"
# title, which row, against which, of what, the limit, its unit, whether it is the most
QUOTIENTS: list[tuple[str, str, str, Callable[[Row], float], float, str, bool]] = [
    ("memory, against Scrapy", "memory", "scrapy", speed, 10, TIMES, False),
    ("Redis, against Scrapy + scrapy-redis", "redis", "scrapy_redis", speed, 20, TIMES, False),
    ("Redis, against feapder Spider", "redis", "feapder_redis", speed, 20, TIMES, False),
    ("memory, against ruia", "memory", "ruia", speed, 1.5, TIMES, False),
    ("memory, against Colly on one core", "memory", "colly", speed, 1.5, TIMES, False),
    ("memory, of the bare loop's speed", "memory", "bare", speed, 0.75, SHARE, False),
    ("Redis, of the bare loop's speed", "redis", "bare", speed, 0.75, SHARE, False),
    ("1 KB pages, memory, of the bare loop's speed", "memory_small", "bare_small", speed, 0.55, SHARE, False),
    ("1 KB pages, Redis, of the bare loop's speed", "redis_small", "bare_small", speed, 0.55, SHARE, False),
    ("CPU a page of the transport on libcurl, against pycurl alone", "fetch", "raw", cpu, 1.6, TIMES, True),
    ("server 20 ms away, 128 at a time, of the near figure", "latency", "memory_128", speed, 0.75, SHARE, False),
    ("two slaves on one core, CPU a page against one process's", "slaves", "redis", cpu, 1.25, TIMES, True),
    ("memory on requests, without libcurl, against Scrapy", "stock", "scrapy", speed, 3, TIMES, False),
    ("Redis 20 ms away, 128 at a time, of the near figure", "redis_far", "redis_128", speed, 0.8, SHARE, False),
]


def goals(rows: Rows, steady: Sequence[Steady]) -> list[Goal]:
    found = [
        Goal(title, limit, _quotient(rows, one, other, of), is_most, unit)
        for title, one, other, of, limit, unit, is_most in QUOTIENTS
    ]
    rss = rows["memory"].rss_mb if _has(rows, "memory") else None
    figures = {one.name: one.value for one in steady}
    return [
        *found,
        Goal("RSS at its peak, memory", 60, rss, True, "MB"),
        Goal("growth of RSS beyond what `seen` takes, memory", 20, figures.get("growth_beyond"), True, "bytes a page"),
        Goal("CPU of a slave without work", 1, figures.get("idle"), True, "% of a core"),
    ]


def _quotient(rows: Rows, one: str, other: str, of: Callable[[Row], float]) -> float | None:
    return of(rows[one]) / of(rows[other]) if _has(rows, one) and _has(rows, other) else None


def _has(rows: Rows, name: str) -> bool:
    return name in rows and rows[name].pages_per_second > 0
