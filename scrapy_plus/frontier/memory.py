"""The frontier in memory: the contract without durability, and the model that other stores are compared with.

A queued request is one payload, one id (shared by the filter and the backup) and one sort key: about 330 bytes for a
plain GET (benchmarks/memory.py). Nothing else is kept of it until it is leased.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from scrapy_plus.errors import CursorMoved, NodesAlive
from scrapy_plus.frontier.base import (
    ORDERS,
    Counts,
    DeadLetter,
    Frontier,
    Lease,
    LeaseAnswer,
    Location,
    Page,
    Record,
    SiteFacts,
    Token,
)
from scrapy_plus.frontier.sites import Site, SiteQueues
from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace

_ARRIVAL_BITS = 48
_PRIORITY_LIMIT = 1000
RUNNING, PAUSED, STOPPED, FINISHED = "running", "paused", "stopped", "finished"


class _Held:
    """A request that is handed out."""

    __slots__ = ("deadline", "has_slot", "key", "site", "token")

    def __init__(self, token: Token, key: bytes, site: str, deadline: float) -> None:
        self.token = token
        self.key = key
        self.site = site
        self.deadline = deadline
        self.has_slot = True


class _Delayed(NamedTuple):
    due: float
    key: bytes
    site: str


class _Dead(NamedTuple):
    reason: str
    attempts: int
    lost: int
    status: int
    at: float
    key: bytes
    site: str


class MemoryFrontier(Frontier):
    """All requests of one crawl in this process. `clock` gives seconds, `dice` numbers in [0, 1)."""

    def __init__(
        self,
        *,
        order: str = "priority",
        pace: Pace | None = None,
        lease_seconds: float = float("inf"),
        max_lost: int = 3,
        clock: Callable[[], float] = time.time,
        dice: Callable[[], float] = random.random,
    ) -> None:
        if order not in ORDERS:
            raise ValueError(f"order {order!r}; it is one of {', '.join(ORDERS)}")
        self._order = order
        self._pace = pace or Pace()
        self._lease_seconds = lease_seconds
        self._max_lost = max_lost
        self._clock = clock
        self._dice = dice
        self._now = 0.0
        self._empty()

    def _empty(self) -> None:
        self._backup: dict[bytes, bytes] = {}
        self._seen: set[bytes] = set()
        self._queues = SiteQueues(self._pace, self._dice)
        self._leased: dict[bytes, _Held] = {}
        self._delayed: dict[bytes, _Delayed] = {}
        self._due: list[tuple[float, bytes]] = []
        self._dead: dict[bytes, _Dead] = {}
        self._attempts: dict[bytes, int] = {}
        self._lost: dict[bytes, int] = {}
        self._last_base: dict[str, int] = {}
        self._arrivals = 0
        self._done = 0
        self._cursor = 0
        self._seeded = False
        self._state = RUNNING
        self.items: list[bytes] = []

    # -- taking in ----------------------------------------------------------------------------------------------------

    def offer(self, records: Sequence[Record]) -> list[bool]:
        return [self._take_in(record) for record in records]

    def _take_in(self, record: Record) -> bool:
        if record.id in self._seen:
            return False
        self._backup[record.id] = record.payload
        self._seen.add(record.id)
        self._queues.push(record.site, self._key(record), self.now())
        self._reopen()
        return True

    def _key(self, record: Record) -> bytes:
        """Sorts by the crawl's order; the arrival number keeps a request's place when it comes back."""
        self._arrivals += 1
        arrival = self._arrivals
        rank = 0
        if self._order == "lifo":
            arrival = (1 << _ARRIVAL_BITS) - arrival
        elif self._order == "priority":
            rank = _PRIORITY_LIMIT - max(-_PRIORITY_LIMIT, min(_PRIORITY_LIMIT, record.priority))
        return (rank << _ARRIVAL_BITS | arrival).to_bytes(8, "big") + record.id

    def _reopen(self) -> None:
        if self._state == FINISHED:
            self._state = RUNNING

    def seed(self, start: int, to: int, records: Sequence[Record], *, finished: bool = False) -> list[bool]:
        if start != self._cursor:
            raise CursorMoved(self._cursor)
        taken = self.offer(records)
        self._cursor = to
        self._seeded = self._seeded or finished
        return taken

    def seed_cursor(self) -> tuple[int, bool]:
        return self._cursor, self._seeded

    # -- handing out --------------------------------------------------------------------------------------------------

    def lease(self, worker: str, base: int, count: int, *, limited: int | None = None) -> LeaseAnswer:
        if self._last_base.get(worker) == base:
            return LeaseAnswer(self._leased_from(worker, base), 0.0, self._state)
        if self._state != RUNNING:
            return LeaseAnswer([], None, self._state)
        now = self.now()
        self._wake_delayed(now)
        limited = count if limited is None else limited
        leases: list[Lease] = []
        while len(leases) < count:
            popped = self._queues.pop(now, limited=limited > 0)
            if popped is None:
                break
            key, site = popped
            limited -= site.pace.is_limited
            leases.append(self._hand_out(key, site, (worker, base + len(leases)), now))
        if leases:
            self._last_base[worker] = base
        return LeaseAnswer(leases, self._wait(now), self._state)

    def _hand_out(self, key: bytes, site: Site, token: Token, now: float) -> Lease:
        id = key[8:]
        self._leased[id] = _Held(token, key, site.name, now + self._lease_seconds)
        return self._lease_of(id, token, site.name)

    def _lease_of(self, id: bytes, token: Token, site: str) -> Lease:
        return Lease(id, token, self._backup[id], site, self._attempts.get(id, 0), self._lost.get(id, 0))

    def _leased_from(self, worker: str, base: int) -> list[Lease]:
        """What the last call of this worker was given: asked again, its answer must have got lost."""
        again = [
            self._lease_of(id, held.token, held.site)
            for id, held in self._leased.items()
            if held.token[0] == worker and held.token[1] >= base
        ]
        return sorted(again, key=lambda lease: lease.token)

    def _wake_delayed(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, id = heappop(self._due)
            delayed = self._delayed.pop(id)
            self._queues.push(delayed.site, delayed.key, now)

    def _wait(self, now: float) -> float | None:
        times = [at for at in (self._due[0][0] if self._due else None, self._queues.next_wake()) if at is not None]
        return max(0.0, min(times) - now) if times else None

    def renew(self, leases: Iterable[tuple[bytes, Token]]) -> list[bytes]:
        now = self.now()
        lost = []
        for id, token in leases:
            held = self._held(id, token)
            if held is None:
                lost.append(id)
            else:
                held.deadline = now + self._lease_seconds
        return lost

    def fetched(self, leases: Iterable[tuple[bytes, Token]]) -> None:
        for id, token in leases:
            held = self._held(id, token)
            if held is not None:
                self._free_slot(held)

    def _held(self, id: bytes, token: Token) -> _Held | None:
        held = self._leased.get(id)
        return held if held is not None and held.token == token else None

    def _free_slot(self, held: _Held) -> None:
        if held.has_slot:
            held.has_slot = False
            self._queues.free_slot(held.site, self.now())

    def _end_lease(self, id: bytes, token: Token) -> _Held | None:
        """Takes the lease away from its holder; None if he no longer has it."""
        held = self._held(id, token)
        if held is not None:
            self._free_slot(held)
            del self._leased[id]
        return held

    # -- settling -----------------------------------------------------------------------------------------------------

    def ack(self, pages: Sequence[Page]) -> list[list[bool] | None]:
        return [self._settle(page) for page in pages]

    def _settle(self, page: Page) -> list[bool] | None:
        held = self._end_lease(page.id, page.token)
        if held is None:
            return None
        taken = [self._take_in(child) for child in page.children]
        self.items.extend(page.items)
        if page.reason is None:
            self._done += 1
            del self._backup[page.id]
            self._forget_counters(page.id)
        else:
            self._bury(page.id, held, page.reason, page.status)
        return taken

    def _bury(self, id: bytes, held: _Held, reason: str, status: int) -> None:
        attempts, lost = self._attempts.get(id, 0) + 1, self._lost.get(id, 0)
        self._dead[id] = _Dead(reason, attempts, lost, status, self.now(), held.key, held.site)
        self._forget_counters(id)

    def _forget_counters(self, id: bytes) -> None:
        self._attempts.pop(id, None)
        self._lost.pop(id, None)

    def retry(self, id: bytes, token: Token, delay_seconds: float) -> bool:
        held = self._end_lease(id, token)
        if held is None:
            return False
        due = self.now() + max(0.0, delay_seconds)
        self._attempts[id] = self._attempts.get(id, 0) + 1
        self._delayed[id] = _Delayed(due, held.key, held.site)
        heappush(self._due, (due, id))
        return True

    def release(self, leases: Iterable[tuple[bytes, Token]]) -> int:
        released = 0
        for id, token in leases:
            held = self._end_lease(id, token)
            if held is not None:
                self._queues.push(held.site, held.key, self.now())
                released += 1
        return released

    def reap(self, limit: int = 500) -> tuple[list[bytes], list[bytes]]:
        now = self.now()
        late = islice(((id, held) for id, held in self._leased.items() if held.deadline <= now), limit)
        ready, dead = [], []
        for id, held in list(late):
            self._end_lease(id, held.token)
            self._lost[id] = lost = self._lost.get(id, 0) + 1
            if lost > self._max_lost:
                self._bury(id, held, f"its worker died {lost} times", 0)
                dead.append(id)
            else:
                self._queues.push(held.site, held.key, now)
                ready.append(id)
        return ready, dead

    # -- by hand ------------------------------------------------------------------------------------------------------

    def revive(self, ids: Iterable[bytes]) -> int:
        revived = 0
        for id in ids:
            dead = self._dead.pop(id, None)
            if dead is not None:
                self._queues.push(dead.site, dead.key, self.now())
                self._reopen()
                revived += 1
        return revived

    def forget(self, ids: Iterable[bytes]) -> int:
        forgotten = 0
        for id in ids:
            is_pending = id in self._backup and id not in self._dead
            if id in self._seen and not is_pending:
                self._seen.discard(id)
                self._backup.pop(id, None)
                self._dead.pop(id, None)
                forgotten += 1
        return forgotten

    def set_state(self, state: str) -> None:
        if state not in (RUNNING, PAUSED, STOPPED):
            raise ValueError(f"state {state!r}; it is one of running, paused, stopped")
        self._state = state

    def flush(self, *, force: bool = False) -> None:
        if self._leased and not force:
            raise NodesAlive(f"{len(self._leased)} requests are being worked on; stop the crawl first, or force it")
        self._empty()

    # -- sites --------------------------------------------------------------------------------------------------------

    def set_site(
        self,
        site: str,
        *,
        delay_seconds: float | None = None,
        limit: int | None = None,
        paused_until: float | None = None,
        jitter: float | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        known = self._queues.site(site)
        pace = known.pace
        known.pace = Pace(
            pace.delay_seconds if delay_seconds is None else delay_seconds,
            pace.limit if limit is None else limit,
            pace.paused_until if paused_until is None else paused_until,
            pace.jitter if jitter is None else jitter,
        )
        known.facts.update(facts or {})
        self._queues.place(known, self.now())

    def site_facts(self, site: str) -> SiteFacts:
        known = self._queues.get(site)
        return SiteFacts(pace=self._pace) if known is None else _facts(known)

    def sites(self, limit: int = 20) -> list[tuple[str, SiteFacts]]:
        return [(site.name, _facts(site)) for site in self._queues.most_waiting(limit)]

    # -- looking ------------------------------------------------------------------------------------------------------

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

    def dead_letters(self, cursor: int = 0, count: int = 100) -> tuple[list[DeadLetter], int]:
        page = list(islice(self._dead.items(), cursor, cursor + count))
        letters = [
            DeadLetter(id, self._backup[id], dead.reason, dead.attempts, dead.lost, dead.status, dead.at)
            for id, dead in page
        ]
        return letters, cursor + len(page) if cursor + len(page) < len(self._dead) else 0

    def counts(self) -> Counts:
        return Counts(
            ready=self._queues.size,
            leased=len(self._leased),
            delayed=len(self._delayed),
            dead=len(self._dead),
            seen=len(self._seen),
            done=self._done,
        )

    def finish(self) -> bool:
        if self._seeded and self._state == RUNNING and len(self._backup) == len(self._dead):
            self._state = FINISHED
        return self._state == FINISHED

    def now(self) -> float:
        self._now = max(self._now, self._clock())
        return self._now

    def audit(self) -> list[str]:
        queued = [key[8:] for _, key in self._queues.keys()]
        standing = [*queued, *self._leased, *self._delayed, *self._dead]
        problems = []
        if len(standing) != len(set(standing)):
            problems.append("a request stands in two places")
        if set(standing) != set(self._backup):
            problems.append("the backup and the places differ")
        if not set(self._backup) <= self._seen:
            problems.append("a request in the backup was never seen")
        if len(queued) != self._queues.size:
            problems.append(f"{len(queued)} requests are queued, {self._queues.size} counted")
        if not (set(self._attempts) | set(self._lost)) <= set(self._backup):
            problems.append("a counter without its request")
        return problems

    def repair(self) -> int:
        """Nothing can be torn here: every verb runs to its end within one process."""
        return 0


def _facts(site: Site) -> SiteFacts:
    return SiteFacts(site.pace, site.next_at, site.in_flight, len(site.queue), dict(site.facts))
