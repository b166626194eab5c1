"""The frontier contract: every known request, where it stands, and the verbs that move it.

One contract, several stores, one test suite (tests/frontier). Payloads are opaque bytes. Every verb is atomic, and a verb
sent again because its answer got lost changes nothing. The table of moves is `rules.lifecycle.TABLE`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace

ORDERS = ("priority", "fifo", "lifo")
Token = tuple[str, int]
"""A lease's proof: the worker's random name and its own counter. Never counted by the store: a store that was rolled
back could hand the same number out twice."""


class Record(NamedTuple):
    """A request as the frontier takes it in. `id` is 20 bytes: the fingerprint, or the occurrence if it is unfiltered."""

    id: bytes
    site: str
    payload: bytes
    priority: int = 0


class Lease(NamedTuple):
    """A request handed out for a while. `attempt` counts its retries so far, `lost` the workers that died with it."""

    id: bytes
    token: Token
    payload: bytes
    site: str
    attempt: int = 0
    lost: int = 0


class LeaseAnswer(NamedTuple):
    """What `lease` hands out; `wait_seconds` says when to ask again if it gave fewer (None: not before something moves)."""

    leases: list[Lease]
    wait_seconds: float | None
    state: str


class Page(NamedTuple):
    """A finished request: its lease, what it led to, and whether it is given up (`reason` not None) or done."""

    id: bytes
    token: Token
    children: Sequence[Record] = ()
    items: Sequence[bytes] = ()
    reason: str | None = None
    status: int = 0


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

    # -- taking in ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def offer(self, records: Sequence[Record]) -> list[bool]:
        """Takes in the records that were never seen; says for each whether it was taken."""

    @abstractmethod
    def seed(self, start: int, to: int, records: Sequence[Record], *, finished: bool = False) -> list[bool]:
        """Like `offer`, and moves the seed cursor from `start` to `to`, once; `finished` ends the seeding.

        Raises CursorMoved, taking in nothing, if the cursor is elsewhere.
        """

    @abstractmethod
    def seed_cursor(self) -> tuple[int, bool]:
        """The number of seeds taken so far, and whether the seeding has ended."""

    # -- handing out --------------------------------------------------------------------------------------------------

    @abstractmethod
    def lease(self, worker: str, base: int, count: int, *, limited: int | None = None) -> LeaseAnswer:
        """Hands out up to `count` of the best ready requests whose site may be asked now.

        Tokens are (worker, base), (worker, base + 1), ...; asked again with the same base it answers the same again.
        At most `limited` of them (default: `count`) come from sites with a delay or a limit: only a free worker may
        take those, since they must start now. `state` is "running", "paused", "stopped" or "finished".
        """

    @abstractmethod
    def renew(self, leases: Iterable[tuple[bytes, Token]]) -> list[bytes]:
        """Moves the deadlines of leases still held; returns the ids of those that are lost."""

    @abstractmethod
    def fetched(self, leases: Iterable[tuple[bytes, Token]]) -> None:
        """The bodies of these are read: their sites' slots are free, though the pages are still being worked on."""

    # -- settling -----------------------------------------------------------------------------------------------------

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
        """leased -> dead, with payload, reason, attempts, last status and time. False if the lease is no longer held."""
        return self.ack([Page(id, token, reason=reason, status=status)])[0] is not None

    @abstractmethod
    def release(self, leases: Iterable[tuple[bytes, Token]]) -> int:
        """leased -> ready at the original place, nothing counted (a graceful stop). How many were still held."""

    @abstractmethod
    def reap(self, limit: int = 500) -> tuple[list[bytes], list[bytes]]:
        """Leases past their deadline: back to ready (ids), lost count + 1; over `max_lost` they are dead (ids)."""

    # -- by hand ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def revive(self, ids: Iterable[bytes]) -> int:
        """dead -> ready, with fresh counters. How many there were."""

    @abstractmethod
    def forget(self, ids: Iterable[bytes]) -> int:
        """Takes done and dead requests out of `seen`, so that they are crawled again when they come. How many."""

    @abstractmethod
    def set_state(self, state: str) -> None:
        """"running", "paused" or "stopped", for the whole crawl; while not running, `lease` gives nothing."""

    @abstractmethod
    def flush(self, *, force: bool = False) -> None:
        """Empties everything and starts a new epoch. Raises NodesAlive while requests are leased, unless forced."""

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
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """Changes what is given of a site's pace and facts, at once and for everybody. The clock is `now()`."""

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
    def dead_letters(self, cursor: int = 0, count: int = 100) -> tuple[list[DeadLetter], int]:
        """Some dead letters, and the cursor that goes on; 0 means there are no more."""

    @abstractmethod
    def counts(self) -> Counts:
        """How many requests stand where."""

    @abstractmethod
    def finish(self) -> bool:
        """Whether the crawl is finished: seeding has ended and nothing is pending. The store decides and remembers it."""

    @abstractmethod
    def now(self) -> float:
        """The store's clock, in seconds; it never goes back."""

    @abstractmethod
    def audit(self) -> list[str]:
        """Broken invariants, a line each; empty when every request is in exactly one state and the counts agree."""

    @abstractmethod
    def repair(self) -> int:
        """Rebuilds every index from the backup alone; how many requests had to be put back."""

    def close(self) -> None:
        """Lets go of connections; what is stored stays."""
        return None
