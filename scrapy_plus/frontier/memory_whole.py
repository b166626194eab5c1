"""The memory frontier's crawl as a whole: its state, its end, and what is left of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from scrapy_plus.errors import NodesAlive
from scrapy_plus.frontier.memory_parts import Dead, Delayed, Given, Held, Report
from scrapy_plus.frontier.sites import SiteQueues
from scrapy_plus.rules.pace import Pace

RUNNING, PAUSED, STOPPED, FINISHED = "running", "paused", "stopped", "finished"


class MemoryWhole:
    """The verbs of `MemoryFrontier` that concern all requests at once, and what it begins with."""

    _pace: Pace
    _dice: Callable[[], float]
    _lease_seconds: float

    @abstractmethod
    def now(self) -> float: ...

    @abstractmethod
    def _begin(self) -> float: ...

    def _empty(self) -> None:
        self._backup: dict[bytes, bytes] = {}
        self._seen: set[bytes] = set()
        self._queues = SiteQueues(self._pace, self._dice)
        self._alone: list[tuple[bytes, str]] = []
        self._leased: dict[bytes, Held] = {}
        self._delayed: dict[bytes, Delayed] = {}
        self._due: list[tuple[float, bytes]] = []
        self._dead: dict[bytes, Dead] = {}
        self._attempts: dict[bytes, int] = {}
        self._lost: dict[bytes, int] = {}
        self._given: dict[str, Given] = {}
        self._reports: dict[str, Report] = {}
        self._nodes: dict[str, tuple[Mapping[str, str], float]] = {}
        self._leaving: set[str] = set()
        self._stats: dict[str, int] = {}
        self._items: list[bytes] = []
        self._arrivals = 0
        self._done = 0
        self._forget_seeding()
        self._is_again = False
        self._state = RUNNING

    def _forget_seeding(self) -> None:
        self._cursor = 0
        self._seeded = False
        self._last_seed: tuple[int, int, list[bytes], list[bool]] | None = None

    def set_state(self, state: str) -> None:
        if state not in (RUNNING, PAUSED, STOPPED):
            raise ValueError(f"state {state!r}; it is one of running, paused, stopped")
        self._begin()
        self._state = state

    def state(self) -> str:
        return self._state

    def _reopen(self) -> None:
        if self._state == FINISHED:
            self._state = RUNNING

    def finish(self) -> bool:
        if self._seeded and self._state == RUNNING and len(self._backup) == len(self._dead):
            self._state = FINISHED
        return self._state == FINISHED

    def flush(self, *, force: bool = False) -> None:
        alive = self._alive(self._begin())
        if (self._leased or alive) and not force:
            raise NodesAlive(
                f"{len(self._leased)} requests are being worked on, {alive} nodes live; stop the crawl first, or force"
            )
        self._empty()

    def _alive(self, now: float) -> int:
        return sum(now - at <= self._lease_seconds for _, at in self._nodes.values())

    def begin_again(self) -> bool:
        if self._state != FINISHED:
            return False
        self._begin()
        self._forget_seeding()
        self._is_again = True
        self._state = RUNNING
        return True

    def clear_finished(self, *, reopens: bool = False) -> bool:
        if self._state != FINISHED or self._alive(self.now()):
            return False
        self._begin()
        kept = self._backup, self._dead, self._items, self._arrivals
        sites, stats, done = self._queues, self._stats, self._done
        self._empty()
        self._backup, self._dead, self._items, self._arrivals = kept
        if self._dead:
            self._queues = sites
        if not reopens:
            self._state, self._stats, self._done = FINISHED, stats, done
        return True
