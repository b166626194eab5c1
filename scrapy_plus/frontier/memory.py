"""The frontier in memory: the contract without durability, and the model that other stores are compared with.

A queued request is one payload, one id (shared by the filter and the backup) and one sort key: about 330 bytes for a
plain GET (benchmarks/micro/memory.py). Nothing else is kept of it until it is leased.
"""

from __future__ import annotations

import random
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice

from scrapy_plus.errors import CursorMoved
from scrapy_plus.frontier.base import ORDERS, Frontier, Lease, LeaseAnswer, Page, Record, Token
from scrapy_plus.frontier.memory_parts import Dead, Delayed, Given, Held, MemoryLooking, Report, sort_key
from scrapy_plus.frontier.memory_whole import RUNNING, MemoryWhole
from scrapy_plus.frontier.sites import Site
from scrapy_plus.rules.lifecycle import State, move
from scrapy_plus.rules.pace import Pace

_ALONE_FROM = 2
_ALONE_LOOKED_AT = 10


class MemoryFrontier(MemoryWhole, MemoryLooking, Frontier):
    """All requests of one crawl in this process. `clock` gives seconds, `dice` numbers in [0, 1).

    `grace_seconds` (default: half a lease): a silence longer than that was an outage, see `reap`.
    """

    def __init__(
        self,
        *,
        order: str = "priority",
        pace: Pace | None = None,
        lease_seconds: float = float("inf"),
        max_lost: int = 3,
        grace_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
        dice: Callable[[], float] = random.random,
    ) -> None:
        if order not in ORDERS:
            raise ValueError(f"order {order!r}; it is one of {', '.join(ORDERS)}")
        self._order = order
        self._pace = pace or Pace()
        self._lease_seconds = lease_seconds
        self._max_lost = max_lost
        self._grace_seconds = lease_seconds / 2 if grace_seconds is None else grace_seconds
        self._clock = clock
        self._dice = dice
        self._now = 0.0
        self._called = self.now()
        self._hold_until = 0.0
        self._seeder: tuple[str, float] | None = None
        self._empty()

    def _begin(self) -> float:
        """The time, for a verb that changes something. After a long silence the living are not late: see `reap`."""
        now = self.now()
        if now - self._called > self._grace_seconds:
            self._hold_until = now + self._lease_seconds
        self._called = now
        return now

    # -- taking in ----------------------------------------------------------------------------------------------------

    def offer(self, records: Sequence[Record]) -> list[bool]:
        self._begin()
        return [self._take_in(record) for record in records]

    def knows(self, ids: Sequence[bytes]) -> list[bool]:
        seen = self._seen
        return [id in seen for id in ids]

    def _take_in(self, record: Record, *, anew: bool = False) -> bool:
        if record.id in self._seen and (not anew or (record.id in self._backup and record.id not in self._dead)):
            return False
        self._dead.pop(record.id, None)
        self._backup[record.id] = record.payload
        self._seen.add(record.id)
        self._queues.push(record.site, self._key(record), self._called)
        self._reopen()
        return True

    def _key(self, record: Record) -> bytes:
        """Sorts by the crawl's order; the arrival number keeps a request's place when it comes back."""
        self._arrivals += 1
        return sort_key(self._order, self._arrivals, record.priority) + record.id

    def _push(self, site: str, key: bytes, now: float) -> None:
        """Back to the original place; among those that go alone if workers keep dying with it."""
        if self._lost.get(key[8:], 0) >= _ALONE_FROM:
            insort(self._alone, (key, site))
        else:
            self._queues.push(site, key, now)

    def seed(self, start: int, to: int, records: Sequence[Record], *, finished: bool = False) -> list[bool]:
        ids = [record.id for record in records]
        if start != self._cursor:
            if self._last_seed is not None and self._last_seed[:3] == (start, to, ids):
                return self._last_seed[3]
            raise CursorMoved(self._cursor)
        self._begin()
        taken = [self._take_in(record, anew=self._is_again) for record in records]
        self._cursor = to
        self._seeded = self._seeded or finished
        self._last_seed = (start, to, ids, taken)
        return taken

    def hold_seeding(self, worker: str, seconds: float) -> bool:
        now = self._begin()
        if self._seeder is not None and self._seeder[0] != worker and self._seeder[1] > now:
            return False
        self._seeder = (worker, now + seconds)
        return True

    # -- handing out --------------------------------------------------------------------------------------------------

    def lease(self, worker: str, base: int, count: int, *, limited: int | None = None, holding: int = 0) -> LeaseAnswer:
        now = self._begin()
        given = self._given.get(worker)
        if given is not None and given.base == base:
            return LeaseAnswer(self._given_again(worker, given), 0.0, self._state)
        if self._state != RUNNING or self._has_one_alone(worker, given):
            return LeaseAnswer([], None, self._state)
        if self._due:
            self._wake(now)
        limited = count if limited is None else limited
        leases: list[Lease] = []
        opens = None
        if self._alone and holding == 0 and count > 0:
            leases, opens = self._lend_alone((worker, base), limited, now)
        is_alone = bool(leases)
        if not is_alone:
            leases = self._lend((worker, base), count, limited, now)
        if leases:
            self._given[worker] = Given(base, [lease.id for lease in leases], is_alone)
        return LeaseAnswer(leases, self._wait(now, opens) if len(leases) < count else None, self._state)

    def _given_again(self, worker: str, given: Given) -> list[Lease]:
        """What the last call of this worker was given: asked again, its answer must have got lost."""
        tokens = [(id, (worker, given.base + place)) for place, id in enumerate(given.ids)]
        held = [(id, token, self._held(id, token)) for id, token in tokens]
        return [self._lease_of(id, token, self._queues.site(one.site)) for id, token, one in held if one is not None]

    def _has_one_alone(self, worker: str, given: Given | None) -> bool:
        return given is not None and given.is_alone and self._held(given.ids[0], (worker, given.base)) is not None

    def _lend_alone(self, token: Token, limited: int, now: float) -> tuple[list[Lease], float | None]:
        """The first of those that go alone whose site may be asked; else when the first of their sites opens."""
        opens: list[float] = []
        for place, (key, name) in enumerate(self._alone[:_ALONE_LOOKED_AT]):
            site = self._queues.site(name)
            wait = self._queues.opens_in(site, now)
            if wait:
                opens.append(now + wait)
            elif wait is not None and (limited > 0 or not site.is_limited):
                del self._alone[place]
                self._queues.take_slot(site, now)
                return [self._hand_out(key, site, token, now)], None
        return [], min(opens, default=None)

    def _lend(self, token: Token, count: int, limited: int, now: float) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < count:
            popped = self._queues.pop(now, limited=limited > 0)
            if popped is None:
                break
            key, site = popped
            limited -= site.is_limited
            leases.append(self._hand_out(key, site, (token[0], token[1] + len(leases)), now))
        return leases

    def _hand_out(self, key: bytes, site: Site, token: Token, now: float) -> Lease:
        id = key[8:]
        self._leased[id] = Held(token, key, site.name, now + self._lease_seconds)
        return self._lease_of(id, token, site)

    def _lease_of(self, id: bytes, token: Token, site: Site) -> Lease:
        attempt = self._attempts.get(id, 0) if self._attempts else 0
        lost = self._lost.get(id, 0) if self._lost else 0
        return Lease(id, token, self._backup[id], site.name, attempt, lost, site.is_limited)

    def _wake(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, id = heappop(self._due)
            delayed = self._delayed.pop(id)
            self._push(delayed.site, delayed.key, now)

    def renew(self, leases: Iterable[tuple[bytes, Token]], *, started: Collection[bytes] | None = None) -> list[bytes]:
        now = self._begin()
        lost = []
        renewed = list(leases)
        self._reports |= Report.of(renewed, started)
        for id, token in renewed:
            held = self._held(id, token)
            if held is None:
                lost.append(id)
            else:
                held.deadline = now + self._lease_seconds
        return lost

    def fetched(self, leases: Iterable[tuple[bytes, Token]]) -> None:
        self._begin()
        for id, token in leases:
            held = self._held(id, token)
            if held is not None:
                self._free_slot(held, self._called)

    def _held(self, id: bytes, token: Token) -> Held | None:
        held = self._leased.get(id)
        return held if held is not None and held.token == token else None

    def _free_slot(self, held: Held, now: float) -> None:
        if held.has_slot:
            held.has_slot = False
            self._queues.free_slot(held.site, now)

    def _end_lease(self, id: bytes, token: Token) -> Held | None:
        """Takes the lease away from its holder; None if he no longer has it."""
        held = self._held(id, token)
        if held is not None:
            self._free_slot(held, self._called)
            del self._leased[id]
        return held

    # -- settling -----------------------------------------------------------------------------------------------------

    def ack(self, pages: Sequence[Page]) -> list[list[bool] | None]:
        self._begin()
        return [self._settle(page) for page in pages]

    def _settle(self, page: Page) -> list[bool] | None:
        held = self._end_lease(page.id, page.token)
        if held is None:
            return None
        taken = [self._take_in(child) for child in page.children]
        if page.known is not None:
            record = page.known.record
            seen = self._seen
            taken += [id not in seen and self._take_in(record(place)) for place, id in enumerate(page.known.ids)]
        if page.items:
            self._items.extend(page.items)
        stats = self._stats
        for name, count in page.counters.items():
            stats[name] = stats.get(name, 0) + count
        if page.reason is None:
            self._done += 1
            del self._backup[page.id]
            self._forget_counters(page.id)
        else:
            self._bury(page.id, held, page.reason, page.status)
        return taken

    def _bury(self, id: bytes, held: Held, reason: str, status: int) -> None:
        attempts, lost = self._attempts.get(id, 0) + 1, self._lost.get(id, 0)
        self._dead[id] = Dead(reason, attempts, lost, status, self.now(), held.key, held.site)
        self._forget_counters(id)

    def _forget_counters(self, id: bytes) -> None:
        if self._attempts:
            self._attempts.pop(id, None)
        if self._lost:
            self._lost.pop(id, None)

    def retry(self, id: bytes, token: Token, delay_seconds: float) -> bool:
        now = self._begin()
        held = self._end_lease(id, token)
        if held is None:
            return False
        due = now + max(0.0, delay_seconds)
        self._attempts[id] = self._attempts.get(id, 0) + 1
        self._delayed[id] = Delayed(due, held.key, held.site)
        heappush(self._due, (due, id))
        return True

    def release(self, leases: Iterable[tuple[bytes, Token]]) -> int:
        now = self._begin()
        released = 0
        for id, token in leases:
            held = self._end_lease(id, token)
            if held is not None:
                self._push(held.site, held.key, now)
                released += 1
        return released

    def reap(
        self, limit: int = 500, *, worker: str | None = None, started: Collection[bytes] | None = None
    ) -> tuple[list[bytes], list[bytes]]:
        now = self._begin()
        if worker is not None:
            over = [id for id, held in self._leased.items() if held.token[0] == worker]
        elif now < self._hold_until:
            over = []
        else:
            over = list(islice((id for id, held in self._leased.items() if held.deadline <= now), limit))
        ready: list[bytes] = []
        dead: list[bytes] = []
        for id in over:
            (ready if self._take_back(id, started, now) else dead).append(id)
        if worker is not None:
            self._nodes.pop(worker, None)
            self._leaving.discard(worker)
            self._given.pop(worker, None)
            self._reports.pop(worker, None)
        return ready, dead

    def _take_back(self, id: bytes, started: Collection[bytes] | None, now: float) -> bool:
        """Ends the lease of a worker that is gone; False if the request is given up for it."""
        held = self._leased[id]
        lost = self._lost.get(id, 0)
        report = self._reports.get(held.token[0], Report())
        is_blamed = report.blames(id, held.token) if started is None else id in started
        self._end_lease(id, held.token)
        if is_blamed or lost >= _ALONE_FROM:
            self._lost[id] = lost = lost + 1
        if lost > self._max_lost:
            self._bury(id, held, f"its worker died {lost} times", 0)
            return False
        self._push(held.site, held.key, now)
        return True

    # -- by hand ------------------------------------------------------------------------------------------------------

    def revive(self, ids: Iterable[bytes]) -> int:
        now = self._begin()
        revived = 0
        for id in ids:
            dead = self._dead.pop(id, None)
            if dead is not None:
                self._seen.add(id)
                self._push(dead.site, dead.key, now)
                self._reopen()
                revived += 1
        return revived

    def forget(self, ids: Iterable[bytes]) -> int:
        self._begin()
        forgotten = 0
        for id in ids:
            is_pending = id in self._backup and id not in self._dead
            if id in self._seen and not is_pending:
                self._seen.discard(id)
                self._backup.pop(id, None)
                self._dead.pop(id, None)
                forgotten += 1
        return forgotten

    def replace(self, id: bytes, payload: bytes) -> bool:
        self._begin()
        if id not in self._backup:
            return False
        self._backup[id] = payload
        return True

    def discard(self, id: bytes) -> bool:
        now = self._begin()
        if id in self._leased:
            move(State.LEASED, "discard")
        if self._backup.pop(id, None) is None:
            return False
        self._done += 1
        if self._delayed.pop(id, None) is not None:
            self._due = [entry for entry in self._due if entry[1] != id]
            heapify(self._due)
        elif self._dead.pop(id, None) is None:
            self._alone = [entry for entry in self._alone if entry[0][8:] != id]
            self._queues.remove(id, now)
        self._forget_counters(id)
        return True

    # -- sites and nodes ----------------------------------------------------------------------------------------------

    def set_site(
        self,
        site: str,
        *,
        delay_seconds: float | None = None,
        limit: int | None = None,
        paused_until: float | None = None,
        jitter: float | None = None,
        slow_seconds: float | None = None,
        is_gated: bool | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        now = self._begin()
        known = self._queues.site(site)
        known.change_pace(
            self._pace,
            delay_seconds=delay_seconds,
            limit=limit,
            paused_until=paused_until,
            jitter=jitter,
            slow_seconds=slow_seconds,
            is_gated=is_gated,
        )
        known.facts = {name: value for name, value in {**known.facts, **(facts or {})}.items() if value}
        self._queues.place(known, now)

    def beat(self, worker: str, facts: Mapping[str, str]) -> bool:
        self._nodes[worker] = (dict(facts), self._begin())
        return worker in self._leaving

    def drain(self, worker: str) -> bool:
        self._begin()
        if worker in self._nodes:
            self._leaving.add(worker)
        return worker in self._nodes

    def now(self) -> float:
        self._now = max(self._now, self._clock())
        return self._now
