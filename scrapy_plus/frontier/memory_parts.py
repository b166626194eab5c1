"""What the memory frontier keeps of a request outside its queue, and the half of it that only looks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from scrapy_plus.frontier.base import Counts, DeadLetter, Location, Node, SiteFacts, Token
from scrapy_plus.frontier.sites import Site, SiteQueues
from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace

NODE_SECONDS = 3600.0
_ARRIVAL_BITS = 48
_PRIORITY_LIMIT = 1000


def sort_key(order: str, arrival: int, priority: int) -> bytes:
    """Eight bytes that sort in the order of the crawl."""
    rank = 0
    if order == "lifo":
        arrival = (1 << _ARRIVAL_BITS) - arrival
    elif order == "priority":
        rank = _PRIORITY_LIMIT - max(-_PRIORITY_LIMIT, min(_PRIORITY_LIMIT, priority))
    return (rank << _ARRIVAL_BITS | arrival).to_bytes(8, "big")


class Held:
    """A request that is handed out."""

    __slots__ = ("deadline", "has_slot", "key", "site", "token")

    def __init__(self, token: Token, key: bytes, site: str, deadline: float) -> None:
        self.token = token
        self.key = key
        self.site = site
        self.deadline = deadline
        self.has_slot = True


class Delayed(NamedTuple):
    due: float
    key: bytes
    site: str


class Dead(NamedTuple):
    reason: str
    attempts: int
    lost: int
    status: int
    at: float
    key: bytes
    site: str


class Given(NamedTuple):
    """What a worker was given last."""

    base: int
    ids: list[bytes]
    is_alone: bool


class Report(NamedTuple):
    """What a worker said it started, and the highest token number that it knew of."""

    last: int = -1
    started: frozenset[bytes] = frozenset()

    def blames(self, id: bytes, token: Token) -> bool:
        """Whether it may have been worked on when the worker died: what it was given since counts as well."""
        return token[1] > self.last or id in self.started

    @classmethod
    def of(cls, leases: Iterable[tuple[bytes, Token]], started: Collection[bytes] | None) -> dict[str, Report]:
        """What each worker reports that renews these leases; nothing if it does not say what it started."""
        reports: dict[str, Report] = {}
        for _, (worker, number) in leases if started is not None else ():
            reports[worker] = cls(max(number, reports.get(worker, cls()).last), frozenset(started or ()))
        return reports


class MemoryLooking:
    """The looking half of `MemoryFrontier`: nothing here changes anything."""

    _pace: Pace
    _backup: dict[bytes, bytes]
    _seen: set[bytes]
    _queues: SiteQueues
    _alone: list[tuple[bytes, str]]
    _leased: dict[bytes, Held]
    _delayed: dict[bytes, Delayed]
    _dead: dict[bytes, Dead]
    _attempts: dict[bytes, int]
    _lost: dict[bytes, int]
    _nodes: dict[str, tuple[Mapping[str, str], float]]
    _stats: dict[str, int]
    _items: list[bytes]
    _due: list[tuple[float, bytes]]
    _done: int
    _cursor: int
    _seeded: bool

    @abstractmethod
    def now(self) -> float: ...

    def seed_cursor(self) -> tuple[int, bool]:
        return self._cursor, self._seeded

    def site_facts(self, site: str) -> SiteFacts:
        known = self._queues.get(site)
        return SiteFacts(pace=self._pace) if known is None else _facts(known)

    def sites(self, limit: int = 20) -> list[tuple[str, SiteFacts]]:
        return [(site.name, _facts(site)) for site in self._queues.most_waiting(limit)]

    def nodes(self) -> list[Node]:
        now = self.now()
        nodes = [Node(worker, facts, now - at) for worker, (facts, at) in self._nodes.items()]
        return sorted((node for node in nodes if node.age_seconds < NODE_SECONDS), key=lambda node: node.age_seconds)

    def locate(self, id: bytes) -> Location:
        counters = self._attempts.get(id, 0), self._lost.get(id, 0)
        if held := self._leased.get(id):
            return Location(State.LEASED, held.deadline, held.token[0], *counters, site=held.site)
        if delayed := self._delayed.get(id):
            return Location(State.DELAYED, delayed.due, "", *counters, site=delayed.site)
        if dead := self._dead.get(id):
            return Location(State.DEAD, dead.at, "", dead.attempts - 1, dead.lost, dead.reason, dead.site)
        if id in self._backup:
            return Location(State.READY, 0.0, "", *counters)
        return Location(State.DONE if id in self._seen else State.NEW)

    def scan(self, state: State, cursor: int = 0, count: int = 100) -> tuple[list[tuple[bytes, bytes]], int]:
        page = list(islice(self._backup, cursor, cursor + count))
        found = [(id, self._backup[id]) for id in page if self.locate(id).state is state]
        return found, cursor + len(page) if cursor + len(page) < len(self._backup) else 0

    def waiting(self, cursor: int = 0, count: int = 100) -> tuple[list[tuple[bytes, bytes, int]], int]:
        """All at once: they are here already, and a cursor into a dict that changes would pass some over."""
        pairs = self._backup.items()
        waiting = ((id, payload) for id, payload in pairs if id not in self._leased and id not in self._dead)
        return [(id, payload, self._attempts.get(id, 0)) for id, payload in waiting], 0

    def dead_letters(self, cursor: int = 0, count: int = 100) -> tuple[list[DeadLetter], int]:
        page = list(islice(self._dead.items(), cursor, cursor + count))
        letters = [
            DeadLetter(id, self._backup[id], dead.reason, dead.attempts, dead.lost, dead.status, dead.at)
            for id, dead in page
        ]
        return letters, cursor + len(page) if cursor + len(page) < len(self._dead) else 0

    def stats(self) -> dict[str, int]:
        return dict(sorted(self._stats.items()))

    def items(self, cursor: str = "", count: int = 100) -> tuple[list[bytes], str]:
        start = int(cursor or 0)
        found = self._items[start : start + count]
        return found, str(start + len(found))

    def counts(self) -> Counts:
        return Counts(
            ready=self._queues.size + len(self._alone),
            leased=len(self._leased),
            delayed=len(self._delayed),
            dead=len(self._dead),
            seen=len(self._seen),
            done=self._done,
        )

    def audit(self) -> list[str]:
        queued = [key[8:] for _, key in self._queues.waiting()]
        alone = [key[8:] for key, _ in self._alone]
        standing = [*queued, *alone, *self._leased, *self._delayed, *self._dead]
        problems = []
        if len(standing) != len(set(standing)):
            problems.append("a request stands in two places")
        if set(standing) != set(self._backup):
            problems.append("the backup and the places differ")
        if not set(self._backup) - set(self._dead) <= self._seen:
            problems.append("a request in the backup was never seen")
        if len(queued) != self._queues.size:
            problems.append(f"{len(queued)} requests are queued, {self._queues.size} counted")
        if not (set(self._attempts) | set(self._lost)) <= set(self._backup):
            problems.append("a counter without its request")
        return problems

    def repair(self) -> int:
        """Nothing can be torn here: every verb runs to its end within one process."""
        return 0

    def _wait(self, now: float, opens: float | None) -> float | None:
        times = [opens, self._due[0][0] if self._due else None, self._queues.next_wake()]
        first = min((at for at in times if at is not None), default=None)
        return None if first is None else max(0.0, first - now)


def _facts(site: Site) -> SiteFacts:
    return SiteFacts(site.pace, site.next_at, site.in_flight, len(site.queue), dict(site.facts))
