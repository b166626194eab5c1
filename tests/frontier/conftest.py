"""One contract, every store: `make_frontier` builds the store under test, `clock` moves its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scrapy_plus.frontier.base import Frontier, Lease, Record
from scrapy_plus.frontier.memory import MemoryFrontier

SITE = "http://shop.test:80"


class Clock:
    """The store's time, moved by hand."""

    def __init__(self, start: float = 1_000.0) -> None:
        self.time = start

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory"])
def make_frontier(request: pytest.FixtureRequest, clock: Clock) -> Callable[..., Frontier]:
    def make(**arguments: object) -> Frontier:
        options = {"lease_seconds": 10.0, "max_lost": 2, "dice": lambda: 0.5, **arguments}
        return MemoryFrontier(clock=clock, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def frontier(make_frontier: Callable[..., Frontier]) -> Frontier:
    return make_frontier()


def record(name: str, *, site: str = SITE, priority: int = 0) -> Record:
    return Record(name.encode().ljust(20, b"."), site, f"payload of {name}".encode(), priority)


def names(leases: list[Lease]) -> list[str]:
    return [name_of(lease.id) for lease in leases]


def name_of(id: bytes) -> str:
    return id.rstrip(b".").decode()


class Worker:
    """A well-behaved client: it counts its own tokens."""

    def __init__(self, frontier: Frontier, name: str = "w") -> None:
        self.frontier = frontier
        self.name = name
        self.base = 0

    def lease(self, count: int = 1, **limits: int) -> list[Lease]:
        leases = self.frontier.lease(self.name, self.base, count, **limits).leases
        self.base += len(leases)
        return leases

    def ack(self, *leases: Lease) -> None:
        from scrapy_plus.frontier.base import Page

        self.frontier.ack([Page(lease.id, lease.token) for lease in leases])


@pytest.fixture
def worker(frontier: Frontier) -> Worker:
    return Worker(frontier)
