"""The frontier contract: every known request, where it stands, and the verbs that move it.

One contract, several stores, one test suite (tests/frontier). Payloads are opaque bytes. Every verb is atomic, and one
that is sent again because its answer got lost changes nothing. The table of moves is `rules.lifecycle.TABLE`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace

ORDERS = ("priority", "fifo", "lifo")
Token = tuple[str, int]
"""A lease's proof: the worker's random name and its own counter. Never counted by the store: a store that was rolled
back could hand the same number out twice."""


class Record(NamedTuple):
    """A request as the frontier takes it in. `id` is 20 bytes: the fingerprint, or the occurrence if unfiltered."""

    id: bytes
    site: str
    payload: bytes
    priority: int = 0


class Known(NamedTuple):
    """Children that this process remembers as seen (`Frontier.knows`), so that they cost no more than that: `record`
    makes what is stored of the one at a place, should the store have forgotten it since."""

    ids: Sequence[bytes]
    record: Callable[[int], Record]


class Lease(NamedTuple):
    """A request handed out for a while. `attempt` counts its retries so far, `lost` the workers that died with it.

    `is_limited`: its site has a delay or a limit, so others may wait for its slot until `fetched` is told of it.
    """

    id: bytes
    token: Token
    payload: bytes
    site: str
    attempt: int = 0
    lost: int = 0
    is_limited: bool = False


class LeaseAnswer(NamedTuple):
    """What `lease` hands out; if it gave fewer, `wait_seconds` says when to ask again (None: when something moved)."""

    leases: list[Lease]
    wait_seconds: float | None
    state: str


class Page(NamedTuple):
    """A finished request: its lease, what it led to, and whether it is given up (`reason` not None) or done.

    `counters` are added to the crawl's `stats` in the same step. What was taken is answered for the `children` first,
    then for those that are `known`.
    """

    id: bytes
    token: Token
    children: Sequence[Record] = ()
    items: Sequence[bytes] = ()
    reason: str | None = None
    status: int = 0
    counters: Mapping[str, int] = MappingProxyType({})
    known: Known | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """The arguments of a `lease`, to go with a `commit`."""

    worker: str
    base: int
    count: int
    limited: int | None = None
    holding: int = 0


class Committed(NamedTuple):
    """The answers to the parts of a `commit`, each as the verb of that part gives it."""

    retried: list[bool]
    released: int
    pages: list[list[bool] | None]
    lease: LeaseAnswer | None


class Node(NamedTuple):
    """A process of the crawl: its worker name, what it told of itself, and how long ago."""

    worker: str
    facts: Mapping[str, str]
    age_seconds: float


class DeadLetter(NamedTuple):
    """A request that was given up, with all that is needed to judge it and to try again."""

    id: bytes
    payload: bytes
    reason: str
    attempts: int
    lost: int
    status: int
    at: float


class Location(NamedTuple):
    """Where one request stands: its state, and until when (delayed: due; leased: deadline; dead: since; else 0)."""

    state: State
    at: float = 0.0
    worker: str = ""
    attempt: int = 0
    lost: int = 0
    reason: str = ""
    site: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many requests stand where; `seen` and `done` only grow, until a flush."""

    ready: int = 0
    leased: int = 0
    delayed: int = 0
    dead: int = 0
    seen: int = 0
    done: int = 0

    @property
    def pending(self) -> int:
        return self.ready + self.leased + self.delayed


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the crawl knows of a site: its pace, what waits and runs there, and small facts such as its robots.txt."""

    pace: Pace = field(default_factory=Pace)
    next_at: float = 0.0
    in_flight: int = 0
    ready: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)


class Frontier(ABC):
    """All known requests and where each stands. See each verb for what it promises and what it refuses."""

    def open(self) -> None:
        """Makes the crawl known to the store, or joins it, with what this process says of it; the constructor does."""
        return None

    # -- taking in ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def offer(self, records: Sequence[Record]) -> list[bool]:
        """Takes in the records that were never seen; says for each whether it was taken."""

    @abstractmethod
    def knows(self, ids: Sequence[bytes]) -> list[bool]:
        """Whether each is certainly seen, as far as this process remembers without asking anybody."""

    @abstractmethod
    def seed(self, start: int, to: int, records: Sequence[Record], *, finished: bool = False) -> list[bool]:
        """Like `offer`, and moves the seed cursor from `start` to `to`, once; `finished` ends the seeding.

        The very same call sent again answers the same again. After `begin_again` it takes in as well what was done or
        is dead. Raises CursorMoved, taking in nothing, if the cursor is elsewhere.
        """

    @abstractmethod
    def seed_cursor(self) -> tuple[int, bool]:
        """The number of seeds taken so far, and whether the seeding has ended."""

    @abstractmethod
    def hold_seeding(self, worker: str, seconds: float) -> bool:
        """Whether `worker` is the one that seeds, for the next `seconds`; it asks again before they are over.

        One worker at a time is; with 0 seconds it lets go.
        """

    # -- handing out --------------------------------------------------------------------------------------------------

    @abstractmethod
    def lease(self, worker: str, base: int, count: int, *, limited: int | None = None, holding: int = 0) -> LeaseAnswer:
        """Hands out up to `count` of the best ready requests whose site may be asked now.

        Tokens are (worker, base), (worker, base + 1), ...; asked again with the same base it answers the same again.
        At most `limited` of them (default: `count`) come from sites with a delay or a limit: only a free worker may
        take those, since they must start now. `state` is "running", "paused", "stopped", "finished", or "full" when
        the store's memory is.

        A request whose workers died twice is handed out alone: before all others to a worker that is `holding` nothing
        else, nothing with it, and nothing more until it is settled. So the page that kills its process is found out.
        """

    @abstractmethod
    def renew(self, leases: Iterable[tuple[bytes, Token]], *, started: Collection[bytes] | None = None) -> list[bytes]:
        """Moves the deadlines of leases still held; returns the ids of those that are lost.

        `started`: which ids of this worker are being worked on; if it dies, `reap` blames only those, and what it was
        given since: tokens of higher numbers than those it renews here.
        """

    @abstractmethod
    def fetched(self, leases: Iterable[tuple[bytes, Token]]) -> None:
        """The bodies of these are read: their sites' slots are free, though the pages are still being worked on.

        Of use for sites with a delay or a limit only; a slot that nobody told of is free when the lease ends.
        """

    # -- settling -----------------------------------------------------------------------------------------------------

    def commit(
        self,
        *,
        fetched: Sequence[tuple[bytes, Token]] = (),
        retries: Sequence[tuple[bytes, Token, float]] = (),
        releases: Sequence[tuple[bytes, Token]] = (),
        pages: Sequence[Page] = (),
        ask: Ask | None = None,
    ) -> Committed:
        """What a worker process has ready, in this order, and with `ask` its next lease; answered part by part.

        Each page is atomic, as in `ack`. Here the single verbs one after the other; a store with a network before it
        does all in one round trip.
        """
        self.fetched(fetched)
        retried = [self.retry(id, token, delay_seconds) for id, token, delay_seconds in retries]
        released = self.release(releases)
        settled = self.ack(pages)
        if ask is None:
            return Committed(retried, released, settled, None)
        answer = self.lease(ask.worker, ask.base, ask.count, limited=ask.limited, holding=ask.holding)
        return Committed(retried, released, settled, answer)

    @abstractmethod
    def ack(self, pages: Sequence[Page]) -> list[list[bool] | None]:
        """Per page: children in, items stored, request out (or dead, if it has a reason), in one step.

        Answers for each page which of its children were taken, as `offer` does; None for a page whose lease is no
        longer held: it is refused whole, children and items too.
        """

    @abstractmethod
    def retry(self, id: bytes, token: Token, delay_seconds: float) -> bool:
        """leased -> delayed; its retry count goes up by one. False if the lease is no longer held."""

    def bury(self, id: bytes, token: Token, reason: str, status: int = 0) -> bool:
        """leased -> dead, with payload, reason, attempts, last status and time. False if the lease is not held."""
        return self.ack([Page(id, token, reason=reason, status=status)])[0] is not None

    @abstractmethod
    def release(self, leases: Iterable[tuple[bytes, Token]]) -> int:
        """leased -> ready at the original place, nothing counted (a graceful stop). How many were still held."""

    @abstractmethod
    def reap(
        self, limit: int = 500, *, worker: str | None = None, started: Collection[bytes] | None = None
    ) -> tuple[list[bytes], list[bytes]]:
        """Leases past their deadline: back to ready (ids), lost count + 1; over `max_lost` they are dead (ids).

        Only what had started is blamed: `started`, else what the last `renew` of its worker reported and what it was
        given since (all, if it never reported); what was handed out alone always. With `worker`, at once and whatever
        the deadlines: all that this worker held, which somebody saw die.
        When nobody called for longer than the store's grace, the store was away, and the living are not late: for one
        more lease time deadlines are not looked at.
        """

    # -- by hand ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def revive(self, ids: Iterable[bytes]) -> int:
        """dead -> ready, with fresh counters. How many there were."""

    @abstractmethod
    def forget(self, ids: Iterable[bytes]) -> int:
        """Takes done and dead requests out of `seen`, so that they are crawled again when they come. How many."""

    @abstractmethod
    def replace(self, id: bytes, payload: bytes) -> bool:
        """The payload of a request, wherever it stands, is this from now on; nothing else of it changes.

        Who holds it goes on with what he was given: the new one counts if it comes back. False if it is not there.
        """

    @abstractmethod
    def discard(self, id: bytes) -> bool:
        """Takes a request that waits or is dead out of all but `seen`: it is done, and comes again after `forget`.

        False if it is not there. Raises IllegalMove, changing nothing, while it is leased.
        """

    @abstractmethod
    def set_state(self, state: str) -> None:
        """The state of the whole crawl: "running", "paused" or "stopped"; while not running, `lease` gives nothing."""

    @abstractmethod
    def state(self) -> str:
        """The state of the whole crawl: "running", "paused", "stopped" or "finished"."""

    @abstractmethod
    def flush(self, *, force: bool = False) -> None:
        """Empties everything and starts a new epoch.

        Raises NodesAlive while requests are leased or a node beat within the last lease time, unless forced.
        """

    @abstractmethod
    def begin_again(self) -> bool:
        """A finished crawl is seeded once more from cursor 0; what it has seen stays, so only what is new is crawled
        beside the seeds. False, changing nothing, if it is not finished."""

    @abstractmethod
    def clear_finished(self, *, reopens: bool = False) -> bool:
        """Takes away what a finished crawl kept for going on, but not its items and dead letters; what is dead is taken
        in again when it comes. It stays finished, unless the next one begins (`reopens`).

        False, changing nothing, while it is not finished or a node beat within the last lease time.
        """

    # -- nodes --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def beat(self, worker: str, facts: Mapping[str, str]) -> bool:
        """The node of this worker lives, and this is to be known of it. Answers whether it is to leave (`drain`)."""

    @abstractmethod
    def drain(self, worker: str) -> bool:
        """Asks a node to finish what it holds and to leave: its beats are told so. False if there is no such node."""

    @abstractmethod
    def nodes(self) -> list[Node]:
        """The nodes that beat within the last hour, the latest first; `reap` with its name takes one off the list."""

    # -- sites --------------------------------------------------------------------------------------------------------

    @abstractmethod
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
        """Changes what is given of a site's pace and facts, at once and for everybody. The clock is `now()`.

        A fact that is an empty text is taken away. A fact may also be of what is no site; nothing is ever queued there.
        """

    @abstractmethod
    def site_facts(self, site: str) -> SiteFacts:
        """The pace and the facts of a site; the crawl's default pace for one that was never met."""

    @abstractmethod
    def sites(self, limit: int = 20) -> list[tuple[str, SiteFacts]]:
        """The sites with most requests waiting, most first."""

    # -- looking ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def locate(self, id: bytes) -> Location:
        """Where a request stands."""

    @abstractmethod
    def scan(self, state: State, cursor: int = 0, count: int = 100) -> tuple[list[tuple[bytes, bytes]], int]:
        """Some (id, payload) of a state, and the cursor that goes on; 0 means there are no more."""

    @abstractmethod
    def waiting(self, cursor: int = 0, count: int = 100) -> tuple[list[tuple[bytes, bytes, int]], int]:
        """Some (id, payload, retries so far) of what is ready or delayed, and the cursor that goes on; 0 ends it.

        One that waits from the first page to the last is there, perhaps twice if others come and go meanwhile.
        """

    @abstractmethod
    def dead_letters(self, cursor: int = 0, count: int = 100) -> tuple[list[DeadLetter], int]:
        """Some dead letters, and the cursor that goes on; 0 means there are no more."""

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """The sums of all counters that pages were acked with, for the whole crawl."""

    @abstractmethod
    def items(self, cursor: str = "", count: int = 100) -> tuple[list[bytes], str]:
        """Some stored items in their order, and the cursor that goes on after them; "" is the beginning.

        No items: there are no more yet, and the cursor is good for later ones.
        """

    @abstractmethod
    def counts(self) -> Counts:
        """How many requests stand where."""

    @abstractmethod
    def finish(self) -> bool:
        """Whether the crawl is finished: seeding has ended, nothing is pending. The store decides and remembers it."""

    @abstractmethod
    def now(self) -> float:
        """The store's clock, in seconds; it never goes back."""

    @abstractmethod
    def audit(self) -> list[str]:
        """Broken invariants, a line each; empty when every request is in exactly one state and the counts agree."""

    @abstractmethod
    def repair(self) -> int:
        """Rebuilds every index from the backup alone, while the crawl goes on; how many requests had to be put back."""

    def close(self) -> None:
        """Lets go of connections; what is stored stays."""
        return None
