"""The frontier in Redis: every verb is one script, so each step of a crawl is whole or has not happened.

The scripts are in `lua/`, a verb a file; `lua/prelude.lua` says what is stored where, and how writes are ordered.
Errors of the server are met in `server.py`, and nowhere else.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import redis

from scrapy_plus.errors import CursorMoved, NodesAlive
from scrapy_plus.frontier import redis_mending, wire
from scrapy_plus.frontier.base import ORDERS, Ask, Committed, Frontier, LeaseAnswer, Page, Record, Token
from scrapy_plus.frontier.cache import SeenCache
from scrapy_plus.frontier.keys import Keys
from scrapy_plus.frontier.parcels import Parcel, parcels, record_parcels
from scrapy_plus.frontier.redis_looking import RedisLooking
from scrapy_plus.frontier.schema import LOADING, check_schema
from scrapy_plus.frontier.script import load
from scrapy_plus.frontier.server import NoCrawl, Server
from scrapy_plus.frontier.wire import Argument
from scrapy_plus.rules.lifecycle import State, move
from scrapy_plus.rules.pace import Pace

log = logging.getLogger("scrapy_plus.frontier")

IDS_A_CALL = 500
"""How many ids one script is given: it runs alone in the server, and must not keep the others waiting."""
MEMBERS_A_BUCKET = 200


class RedisFrontier(RedisLooking, Frontier):
    """All requests of one crawl, below `prefix` in the Redis of `client` (answers as bytes: no decode_responses).

    `order`, pace, leases and limits are the crawl's: whoever opens it last says them, except for the order of a crawl
    that has requests. `grace_seconds` (default: half a lease): a silence longer than that was an outage.
    `items_as` is "stream", or "list" for consumers that pop, below `items_key` (default: `prefix:items`). With
    `keeps_items` all processes of the crawl are told that somebody wants the items. Who `joins` says none of that to a
    crawl that is there, and leaves mending to its nodes. Who `loads` may open one that is being loaded; it `is_cut` if
    the server ended meanwhile. `seen_cache` ids are remembered to spare their sending.
    """

    def __init__(
        self,
        client: redis.Redis,
        prefix: str,
        *,
        order: str = "priority",
        pace: Pace | None = None,
        lease_seconds: float = 10.0,
        max_lost: int = 3,
        grace_seconds: float | None = None,
        retry_seconds: float = 60.0,
        items_as: str = "stream",
        items_key: str | None = None,
        keeps_items: bool = False,
        joins: bool = False,
        loads: bool = False,
        seen_cache: int = 100_000,
        dice: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if order not in ORDERS:
            raise ValueError(f"order {order!r}; it is one of {', '.join(ORDERS)}")
        if items_as not in ("stream", "list"):
            raise ValueError(f"items_as {items_as!r}; it is stream or list")
        self.keys = Keys(prefix, items=items_key)
        self.server = Server(
            client,
            met_in=self.keys.meta,
            retry_seconds=retry_seconds,
            longest_wait_seconds=lease_seconds / 4,  # who waits longer renews too late after an outage
            sleep=sleep,
        )
        self._order = order
        self._joins = joins or loads
        self._loads = loads
        self.is_cut = False
        self._pace = pace or Pace()
        self._dice = dice
        self._cache = SeenCache(seen_cache)
        grace = lease_seconds / 2 if grace_seconds is None else grace_seconds
        self._options: dict[str, Argument] = {
            "delay": wire.ms(self._pace.delay_seconds),
            "limit": self._pace.limit,
            "jitter": self._pace.jitter,
            "slow": wire.ms(self._pace.slow_seconds),
            "gated": int(self._pace.is_gated),
            "lease": wire.ms(lease_seconds),
            "max_lost": max_lost,
            "grace": -1 if grace == float("inf") else wire.ms(grace),
            "fill": MEMBERS_A_BUCKET,
            "items_as": items_as,
            "items_key": self.keys.items,
        }
        if keeps_items:  # who does not need them does not say so: others may
            self._options["keeps_items"] = 1
        self.server.on_new_server = self.open
        self.server.connect()

    # -- opening ------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Makes the crawl known to the server, or joins it. On a server that was restarted everything is mended first:
        its log may have been torn within a script."""
        run_id = self.server.run_id
        options = [part for pair in self._options.items() for part in pair]
        answer = self.server.run(load("open"), [self.keys.prefix], [run_id, self._order, int(self._joins), *options])
        _, _, order, repaired_on, schema, bodies = answer
        schema = wire.text(schema)
        if self._loads and schema.startswith(LOADING):
            self.is_cut = True
            self.server.met(run_id)
            return
        check_schema(schema, self.keys.prefix)
        if wire.text(order) != self._order and not self._joins:
            log.warning("the crawl %s goes on in the order it has: %s", self.keys.prefix, wire.text(order))
        if wire.text(repaired_on) != run_id and not self._joins:
            redis_mending.mend_after_restart(self, run_id, has_bodies=bool(bodies))
        self.sweep()
        self.server.met(run_id)

    def _run(self, verb: str, *arguments: Argument) -> Any:
        """The answer of a verb's script; a crawl that is gone from the server is opened anew."""
        try:
            return self.server.run(load(verb), [self.keys.prefix], arguments)
        except NoCrawl:
            log.warning("the crawl %s is gone from Redis at %s; it begins anew", self.keys.prefix, self.server.where)
            self.open()
            return self.server.run(load(verb), [self.keys.prefix], arguments)

    # -- taking in ----------------------------------------------------------------------------------------------------

    def offer(self, records: Sequence[Record]) -> list[bool]:
        taken: list[bool] = []
        for parcel in record_parcels(records):
            taken += self._offer(parcel)
        return taken

    def knows(self, ids: Sequence[bytes]) -> list[bool]:
        return self._cache.contains(ids)

    def _offer(self, records: Sequence[Record]) -> list[bool]:
        while True:
            unknown = [record for record in records if record.id not in self._cache]
            stamp = b"" if len(unknown) == len(records) else self._cache.stamp
            answer = self._run("offer", stamp, *wire.pack_records(unknown))
            self._cache.heed(answer[0])
            if len(answer) > 1:
                self._cache.learn((record.id for record in unknown), answer[0])
                return _spread(records, unknown, answer[1])

    def seed(self, start: int, to: int, records: Sequence[Record], *, finished: bool = False) -> list[bool]:
        if len(records) > IDS_A_CALL:
            raise ValueError(f"{len(records)} seeds in one call; {IDS_A_CALL} at most")
        answer = self._run("seed", start, to, int(finished), *wire.pack_records(records))
        if answer[2] is None:
            raise CursorMoved(int(answer[1]))
        self._cache.learn((record.id for record in records), answer[0])
        return wire.flags(answer[2])

    def seed_cursor(self) -> tuple[int, bool]:
        cursor, seeded = self._read(lambda client: client.hmget(self.keys.meta, ["cursor", "seeded"]))
        return int(cursor or 0), seeded == b"1"

    def hold_seeding(self, worker: str, seconds: float) -> bool:
        return bool(self._run("hold", "seeder", worker, wire.ms(seconds))[1] == 1)

    # -- handing out --------------------------------------------------------------------------------------------------

    def lease(self, worker: str, base: int, count: int, *, limited: int | None = None, holding: int = 0) -> LeaseAnswer:
        stamp, answer = self._run("lease", *self._pack_ask(Ask(worker, base, count, limited, holding)))
        self._cache.heed(stamp)
        return wire.read_lease(answer, worker)

    def _pack_ask(self, ask: Ask) -> list[Argument]:
        limited = ask.count if ask.limited is None else ask.limited
        return [ask.worker, ask.base, ask.count, limited, ask.holding, self._dice()]

    def renew(self, leases: Iterable[tuple[bytes, Token]], *, started: Collection[bytes] | None = None) -> list[bytes]:
        by_worker: dict[str, list[tuple[bytes, Token]]] = {}
        for id, token in leases:
            by_worker.setdefault(token[0], []).append((id, token))
        lost: list[bytes] = []
        for worker, held in by_worker.items():
            told = "-" if started is None else wire.pack_report(max(token[1] for _, token in held), started)
            for parcel in parcels(held, IDS_A_CALL):
                lost += self._run("renew", worker, told, *wire.pack_leases(parcel))[1]
        return lost

    def fetched(self, leases: Iterable[tuple[bytes, Token]]) -> None:
        self.commit(fetched=list(leases))

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
        """One round trip, unless there are more than 500 children or a megabyte."""
        retried: list[bool] = []
        released = 0
        settled: list[list[bool] | None] = []
        lease: LeaseAnswer | None = None
        for parcel in Parcel.cut(fetched, retries, releases, pages, ask):
            answer = self._commit(parcel)
            retried += wire.flags(answer[1])
            released += answer[2]
            parcel.settle(answer[3], settled)
            if parcel.ask is not None:
                lease = wire.read_lease(answer[4], parcel.ask.worker)
        return Committed(retried, released, settled, lease)

    def _commit(self, parcel: Parcel) -> Any:
        """The answer to one call; it is made anew if what was left out of it may be unseen by now."""
        while True:
            skipped = parcel.leave_out(self._cache)
            ask = [0] if parcel.ask is None else [1, *self._pack_ask(parcel.ask)]
            repeats = self.server.repeats
            stamp = self._cache.stamp if skipped else b""
            answer = self._run("commit", stamp, *parcel.packed(), *ask)
            self._cache.heed(answer[0])
            if len(answer) > 1:
                self._cache.learn(parcel.learnt(answer[3]), answer[0])
                if self.server.repeats != repeats:
                    answer[3] = self._told_again(parcel, answer[3])
                return answer

    def _told_again(self, parcel: Parcel, answers: list[bytes]) -> list[bytes]:
        """The answers to a call that was sent again: a page that the first one settled has no lease any more, but is no
        other's either. Which of its children were taken is not known any more; nobody is told of any."""
        unsure = [piece.page.id for piece, digits in zip(parcel.pieces, answers, strict=True) if digits == b"-"]
        if not unsure:
            return answers
        bodies = self._read(lambda client: client.hmget(self.keys.req, unsure))
        reasons = self._read(lambda client: client.hmget(self.keys.why, unsure))
        settled = {id for id, body, why in zip(unsure, bodies, reasons, strict=True) if body is None or why is not None}
        return [
            b"0" * len(piece.sent) if digits == b"-" and piece.page.id in settled else digits
            for piece, digits in zip(parcel.pieces, answers, strict=True)
        ]

    def ack(self, pages: Sequence[Page]) -> list[list[bool] | None]:
        return self.commit(pages=pages).pages

    def retry(self, id: bytes, token: Token, delay_seconds: float) -> bool:
        return self.commit(retries=[(id, token, delay_seconds)]).retried[0]

    def release(self, leases: Iterable[tuple[bytes, Token]]) -> int:
        return self.commit(releases=list(leases)).released

    def reap(
        self, limit: int = 500, *, worker: str | None = None, started: Collection[bytes] | None = None
    ) -> tuple[list[bytes], list[bytes]]:
        told = "-" if started is None else b"".join(started)
        if worker is None:
            _, ready, dead = self._run("reap", min(limit, IDS_A_CALL), told, 0)
            return ready, dead
        back: tuple[list[bytes], list[bytes]] = [], []
        for parcel in parcels(self._held_by(worker), IDS_A_CALL):
            _, ready, dead = self._run("reap", 0, told, *wire.pack_leases(parcel))
            back[0].extend(ready)
            back[1].extend(dead)
        self._run("leave", worker)
        return back

    def _held_by(self, worker: str) -> list[tuple[bytes, Token]]:
        """What a worker holds: a look at all leases, of which there are as many as the crawl has places for work."""
        owners: Any = self._read(lambda client: client.hgetall(self.keys.owner))
        held = []
        for id, value in owners.items():
            name, _, number = wire.text(value).partition(":")[2].rpartition(":")
            if name == worker:
                held.append((id, (worker, int(number))))
        return sorted(held, key=lambda lease: lease[1])

    # -- by hand ------------------------------------------------------------------------------------------------------

    def revive(self, ids: Iterable[bytes]) -> int:
        return sum(self._run("revive", *_with_members(some))[1] for some in parcels(list(ids), IDS_A_CALL))

    def forget(self, ids: Iterable[bytes]) -> int:
        forgotten = 0
        for some in parcels(list(ids), IDS_A_CALL):
            stamp, count = self._run("forget", *_with_members(some))
            self._cache.heed(stamp)
            forgotten += count
        return forgotten

    def replace(self, id: bytes, payload: bytes) -> bool:
        return bool(self._run("replace", id, payload)[1] == 1)

    def discard(self, id: bytes) -> bool:
        found = self._run("discard", id)[1]
        if found < 0:
            move(State.LEASED, "discard")
        return bool(found == 1)

    def set_state(self, state: str) -> None:
        if state not in ("running", "paused", "stopped"):
            raise ValueError(f"state {state!r}; it is one of running, paused, stopped")
        self._run("set_state", state)

    def finish(self) -> bool:
        return bool(self._run("finish")[1] == 1)

    def flush(self, *, force: bool = False) -> None:
        stamp, leased, nodes = self._run("flush", int(force))
        if leased or nodes:
            raise NodesAlive(
                f"{leased} requests are being worked on, {nodes} nodes live; stop the crawl first, or force"
            )
        self._cache.heed(stamp)
        self.open()

    def begin_again(self) -> bool:
        return bool(self._run("begin_again")[1] == 1)

    def clear_finished(self, *, reopens: bool = False) -> bool:
        stamp, cleared = self._run("clear_finished", int(reopens))
        self._cache.heed(stamp)
        if cleared == 1:
            self.sweep()
        return bool(cleared == 1)

    def sweep(self) -> None:
        """Unlinks what a flush left behind: the queues of old sites and the buckets of old epochs, in small calls."""
        redis_mending.sweep(self)

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
        given: dict[str, Argument | None] = {
            "delay": None if delay_seconds is None else wire.ms(delay_seconds),
            "limit": limit,
            "paused": None if paused_until is None else wire.ms(paused_until),
            "jitter": jitter,
            "slow": None if slow_seconds is None else wire.ms(slow_seconds),
            "gated": None if is_gated is None else int(is_gated),
            **{f"fact:{name}": value for name, value in (facts or {}).items()},
        }
        pairs = [part for name, value in given.items() if value is not None for part in (name, value)]
        self._run("set_site", site, *pairs)

    def set_pace(self, *, delay_seconds: float | None = None, limit: int | None = None, resets: bool = False) -> None:
        """Sets the pace of all sites that have none of their own, above the settings of the nodes, at once and for all.

        It holds until it is set again or reset, or the crawl is flushed. O(sites + leases), some sites a call.
        """
        given: dict[str, Argument | None] = {
            "set_delay": None if delay_seconds is None else wire.ms(delay_seconds),
            "set_limit": limit,
        }
        pairs = [(name, "" if value is None else value) for name, value in given.items() if value is not None or resets]
        sites = self._run("set_pace", *(part for pair in pairs for part in pair))[1]
        redis_mending.place_sites(self, int(sites))

    def beat(self, worker: str, facts: Mapping[str, str]) -> bool:
        return bool(self._run("beat", worker, wire.pack_facts(facts))[1])

    def drain(self, worker: str) -> bool:
        return bool(self._run("drain", worker)[1] == 1)

    def close(self) -> None:
        self.server.close()


def _with_members(ids: Sequence[bytes]) -> list[Argument]:
    return [len(ids), *(part for id in ids for part in (id, wire.member(id)))]


def _spread(records: Sequence[Record], sent: Sequence[Record], digits: bytes) -> list[bool]:
    """The answers for all records from those for the ones that were sent; the others were seen."""
    if len(sent) == len(records):
        return wire.flags(digits)
    answers = iter(wire.flags(digits))
    ids = {id(record) for record in sent}
    return [id(record) in ids and next(answers) for record in records]
