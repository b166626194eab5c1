"""Between the workers of a process and the frontier: what they settle goes out, what they ask for comes in.

Workers never wait for a store with a network before it: one greenlet carries what is ready as one call, acks of many
pages and the next leases with it. A frontier in this process is called at once, by whoever has something for it.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import gevent
from gevent.event import Event

from scrapy_plus.core.started import StartedFile
from scrapy_plus.errors import FrontierError
from scrapy_plus.frontier.base import Ask, Frontier, Lease, LeaseAnswer, Page, Token

log = logging.getLogger("scrapy_plus.committer")

IDLE_SECONDS = 0.45
"""How often a process without work asks for some: others may have brought it, and none may keep the store busy."""
FINISH_SECONDS = 2.0
LINGER_SECONDS = 0.2
PAGES_A_CALL = 16
LATE_SECONDS = 0.1
"""A request of a site with a pace that starts later than this after it was handed out comes too close to the next."""
LATE_REMEMBERED = 1000
Taken = list[bool] | None


@dataclass(slots=True)
class Held:
    """A lease of this process: its proof, when it was last known to be ours, given, and started (0: not yet)."""

    token: Token
    renewed_at: float
    given_at: float
    started_at: float = 0.0


@dataclass(slots=True)
class Outbox:
    """What is ready for the next call."""

    fetched: list[tuple[bytes, Token]] = field(default_factory=list)
    retries: list[tuple[bytes, Token, float]] = field(default_factory=list)
    releases: list[tuple[bytes, Token]] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    thens: list[Callable[[Taken], None]] = field(default_factory=list)
    since: float = 0.0

    def __len__(self) -> int:
        return len(self.fetched) + len(self.retries) + len(self.releases) + len(self.pages)

    def ended(self) -> list[bytes]:
        """The ids whose leases end with this call."""
        return [
            *(one[0] for one in self.retries),
            *(one[0] for one in self.releases),
            *(page.id for page in self.pages),
        ]


class Committer:
    """Leases for the workers, settled pages for the frontier.

    A near frontier is called at once. For a far one (`is_remote`) up to `prefetch` leases are kept ready (0: this
    process only watches), and a greenlet makes the calls; `on_news` is told when there are leases or the
    state changed, `free_workers` says how many could start a request now. With `clears` the last process that leaves
    a finished crawl takes away what is only good for going on.
    """

    def __init__(
        self,
        frontier: Frontier,
        *,
        worker: str | None = None,
        is_remote: bool = False,
        prefetch: int = 0,
        started: StartedFile | None = None,
        clears: bool = False,
    ) -> None:
        self.frontier = frontier
        self.worker = worker or uuid.uuid4().hex
        self.is_remote = is_remote
        self.held: dict[bytes, Held] = {}
        self.lost: set[bytes] = set()
        self.settled = 0
        self.state = "running"
        self.is_draining = False
        self.wait_seconds: float | None = None
        self.failure: FrontierError | None = None
        self.on_news: Callable[[], None] = lambda: None
        self.free_workers: Callable[[], int] = lambda: 1
        self._prefetch = prefetch
        self._started = started
        self._clears = clears
        self._base = 0
        self._inbox: deque[Lease] = deque()
        self._outbox = Outbox()
        self._sending: set[bytes] = set()
        self._late: set[bytes] = set()
        self._quickest_seconds = float("inf")
        self._wanted = Event()
        self._next_ask = 0.0
        self._next_finish = 0.0
        self._is_closing = False
        self._has_returned = Event()
        self._has_returned.set()

    # -- for workers --------------------------------------------------------------------------------------------------

    def take(self) -> Lease | None:
        """The next lease, or None if there is none now."""
        if not self._inbox and not self.is_remote:
            answer = self.frontier.lease(self.worker, self._base, 1, holding=len(self.held))
            self._receive(answer, 1, time.monotonic())
        while self._inbox:
            lease = self._inbox.popleft()
            held = self.held.get(lease.id)
            if held is not None and self._is_late(lease, held):
                self.release(lease.id, lease.token)
            elif held is not None and lease.id not in self.lost:
                held.started_at = time.monotonic()
                if self._started is not None:
                    self._started.add(lease.id)
                self._wake_if_hungry()
                return lease
            else:
                self.forget(lease.id)
        self._wake_if_hungry()
        return None

    def _is_late(self, lease: Lease, held: Held) -> bool:
        """Whether it goes back for its site's pace: once only, as a process that is always busy must go on too."""
        if not self.is_remote or not lease.is_limited or time.monotonic() - held.given_at <= LATE_SECONDS:
            return False
        if lease.id in self._late:
            self._late.discard(lease.id)
            return False
        if len(self._late) >= LATE_REMEMBERED:
            self._late.clear()
        self._late.add(lease.id)
        return True

    def settle(self, page: Page, then: Callable[[Taken], None]) -> None:
        """Hands in a page; `then` is told which of its children were taken, or None if it was ours no more."""
        if not self.is_remote:
            [taken] = self.frontier.ack([page])
            self.forget(page.id)
            then(taken)
            return
        self._outbox.pages.append(page)
        self._outbox.thens.append(then)
        self._end(page.id)

    def retry(self, id: bytes, token: Token, delay_seconds: float) -> None:
        self._outbox.retries.append((id, token, delay_seconds))
        self._end(id)

    def release(self, id: bytes, token: Token) -> None:
        self._outbox.releases.append((id, token))
        self._end(id)

    def fetched(self, id: bytes, token: Token) -> None:
        """A slot of the site is free: told at once, as others may be waiting for it."""
        self._outbox.fetched.append((id, token))
        self._put()

    def _end(self, id: bytes) -> None:
        if self._started is not None:
            self._started.remove(id)
        self._put()

    def _put(self) -> None:
        if not self.is_remote:
            self._turn(0)
            return
        if not self._outbox.since:
            self._outbox.since = time.monotonic()
        self._wanted.set()

    def _wake_if_hungry(self) -> None:
        if self.is_remote and self._room() and not self._wanted.is_set():
            self._wanted.set()

    # -- calls --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Makes the calls to a far frontier, in a greenlet of its own, until `stop`."""
        self._has_returned.clear()
        gevent.spawn(self._run)

    def _run(self) -> None:
        """A frontier that is out of reach for good ends it: see `failure`."""
        try:
            while not self._is_closing:
                pause = self._pause()
                if pause > 0:
                    self._wanted.clear()
                    self._wanted.wait(pause)
                else:
                    self._turn(self._room(), asks=True)
        except FrontierError as error:
            self.failure = error
            self.on_news()
        finally:
            self._has_returned.set()

    def _pause(self) -> float:
        """Seconds until a call is worth making: at once for workers without work, else for many pages together."""
        now = time.monotonic()
        times = [IDLE_SECONDS]
        if len(self._outbox):
            if self._outbox.fetched or len(self._outbox.pages) >= PAGES_A_CALL or self._room():
                return 0.0
            times.append(self._outbox.since + LINGER_SECONDS - now)
        if self._room() or not self._prefetch:
            times.append(self._next_ask - now)
        return min(times)

    def _room(self) -> int:
        """How many leases to ask for: none while half of what is kept ready is still there."""
        return self._prefetch - len(self._inbox) if len(self._inbox) <= self._prefetch // 2 else 0

    def _turn(self, count: int, *, asks: bool = False) -> None:
        """One call: what is in the outbox, and the wish for `count` leases, or with `asks` at least for the state."""
        outbox, self._outbox = self._outbox, Outbox()
        ask = self._ask(count, outbox) if count or asks else None
        ending = outbox.ended()
        self._sending.update(ending)
        sent_at = time.monotonic()
        answer = self.frontier.commit(
            fetched=outbox.fetched, retries=outbox.retries, releases=outbox.releases, pages=outbox.pages, ask=ask
        )
        # Busy with pages, a process may come late to read an answer: its leases count from when it could have come.
        self._quickest_seconds = min(self._quickest_seconds, time.monotonic() - sent_at)
        self._sending.difference_update(ending)
        for id in ending:
            self.forget(id)
        self.settled += len(outbox.pages)
        for then, taken in zip(outbox.thens, answer.pages, strict=True):
            then(taken)
        if answer.lease is not None:
            self._receive(answer.lease, count, sent_at + self._quickest_seconds)
        if self.is_remote:
            self._after_remote_turn(bool(outbox.pages))

    def _ask(self, count: int, outbox: Outbox) -> Ask:
        holding = len(self.held) - len(outbox.ended())
        limited = max(0, self.free_workers() - len(self._inbox)) if self.is_remote else count
        return Ask(self.worker, self._base, count, limited, max(0, holding))

    def _receive(self, answer: LeaseAnswer, count: int, given_at: float) -> None:
        self._base += len(answer.leases)
        for lease in answer.leases:
            self.held[lease.id] = Held(lease.token, given_at, given_at)
            self._inbox.append(lease)
        self.state = answer.state
        self.wait_seconds = answer.wait_seconds
        if len(answer.leases) < max(1, count):
            wait = IDLE_SECONDS if answer.wait_seconds is None else answer.wait_seconds
            self._next_ask = time.monotonic() + min(IDLE_SECONDS, max(0.005, wait))

    def _after_remote_turn(self, has_settled: bool) -> None:
        if not self.held and self.state != "finished" and (has_settled or time.monotonic() >= self._next_finish):
            self._next_finish = time.monotonic() + FINISH_SECONDS
            if self.frontier.finish():
                self.state = "finished"
        self.on_news()

    def drain(self) -> None:
        """This process is to finish what it holds, and to go; others do the rest."""
        if not self.is_draining:
            self.is_draining = True
            self.on_news()

    def poke(self) -> None:
        """There may be something new in the store: ask at once."""
        self._next_ask = 0.0
        self._wanted.set()

    # -- leases -------------------------------------------------------------------------------------------------------

    def renewed(self, leases: Sequence[tuple[bytes, Token]], lost: Sequence[bytes], at: float) -> None:
        """What a renewal at `at` (monotonic) found out; called from another thread.

        A lease that ends with the call under way is not lost: its page may just have been settled.
        """
        self.lost.update(id for id in lost if id in self.held and id not in self._sending)
        for id, token in leases:
            held = self.held.get(id)
            if held is not None and held.token == token and id not in self.lost:
                held.renewed_at = at

    def is_ours(self, id: bytes, token: Token, *, within_seconds: float) -> bool:
        """Whether the lease is still held; the frontier is asked if it was not renewed for that long.

        A process that was frozen past its leases finds out here, before it writes what another has written meanwhile.
        """
        held = self.held.get(id)
        if held is None or id in self.lost:
            return False
        if self.is_remote and time.monotonic() - held.renewed_at > within_seconds:
            self.renewed([(id, token)], self.frontier.renew([(id, token)]), time.monotonic())
        return id not in self.lost

    def forget(self, id: bytes) -> None:
        """This lease is not ours any more."""
        self.held.pop(id, None)
        self.lost.discard(id)

    def finish(self) -> bool:
        """Whether the crawl is finished: a near store is asked, a far one says so by itself."""
        return self.state == "finished" if self.is_remote else self.frontier.finish()

    def stop(self) -> None:
        """Sends what is ready, and gives back what was not started, after the call that is under way."""
        self._is_closing = True
        self._wanted.set()
        self._has_returned.wait()
        if self.failure is not None:
            return
        self._outbox.releases += [(lease.id, lease.token) for lease in self._inbox]
        self._inbox.clear()
        if len(self._outbox):
            self._turn(0)

    def leave(self) -> None:
        """This process is no node any more: who starts next need not wait until it passes for dead."""
        if not self.is_remote or self.failure is not None:
            return
        try:
            self.frontier.hold_seeding(self.worker, 0)
            self.frontier.reap(worker=self.worker, started=())
            if self._clears:
                self.frontier.clear_finished()
        except FrontierError as error:
            log.debug("left without a word: %s", error)
