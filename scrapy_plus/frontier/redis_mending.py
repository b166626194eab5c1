"""Repair and audit of a crawl in Redis, chunk by chunk, while it goes on.

The backup is the truth: what is in it stands somewhere, what is not in it stands nowhere. Each chunk is one script, so
nothing moves while it is looked at.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import redis

from scrapy_plus.errors import FrontierError
from scrapy_plus.frontier import wire
from scrapy_plus.frontier.keys import Keys
from scrapy_plus.frontier.parcels import parcels
from scrapy_plus.frontier.script import load
from scrapy_plus.frontier.server import Forbidden, Server

IDS_A_CALL = 500
SITES_A_CALL = 500
BUCKETS_A_CALL = 65_536
ITEMS_LOOKED_AT = 2000
PROBLEMS_SHOWN = 20
MENDING_SECONDS = 5.0
REWRITE_SECONDS = 60.0
LOOK_SECONDS = 0.05

log = logging.getLogger("scrapy_plus.frontier")


class Mendable(Protocol):
    """What of a `RedisFrontier` is needed here."""

    keys: Keys
    server: Server

    def _run(self, verb: str, *arguments: wire.Argument) -> Any: ...

    def _read(self, command: Callable[[redis.Redis], Any]) -> Any: ...


# -- a server that was restarted ---------------------------------------------------------------------------------------


def mend_after_restart(frontier: Mendable, run_id: str, *, has_bodies: bool) -> None:
    """Makes the crawl whole on a server with a new run id, whose log may have been torn within a script.

    One process does it; the others wait, so that nothing is settled on what is half there. Who mends may die: then the
    next one does.
    """
    mender = uuid.uuid4().hex
    while frontier.server.run_id == run_id and _mended_on(frontier) != run_id:
        if frontier._run("hold", "mender", mender, wire.ms(MENDING_SECONDS))[1] == 1:
            if has_bodies:
                repair(frontier)
                _rewrite_log(frontier)
            if frontier.server.run_id == run_id:
                frontier.server.run(load("mended"), [frontier.keys.prefix], [run_id])
            return
        frontier.server.sleep(LOOK_SECONDS)


def _mended_on(frontier: Mendable) -> str:
    return wire.text(frontier._read(lambda client: client.hget(frontier.keys.meta, "run")) or "")


def _rewrite_log(frontier: Mendable) -> None:
    """Gives the server a new log, and waits for it.

    One that ends within a script is cut by the first restart, but its half comes to life at the second; a new log has
    no halves (valkey-io/valkey#4342).
    """
    try:
        if not _persistence(frontier).get("aof_enabled"):
            return
        frontier.server.call(frontier.server.client.bgrewriteaof)
    except Forbidden as error:
        log.warning("the log is not rewritten; ends it within a script, a second restart may do harm: %s", error)
        return
    except FrontierError as error:
        log.debug("the server's log is being rewritten, or cannot be: %s", error)
    for _ in range(round(REWRITE_SECONDS / LOOK_SECONDS)):
        info = _persistence(frontier)
        if not info.get("aof_rewrite_in_progress") and not info.get("aof_rewrite_scheduled"):
            return
        frontier.server.sleep(LOOK_SECONDS)
    log.warning("the log of Redis at %s takes long to be rewritten; the crawl goes on", frontier.server.where)


def _persistence(frontier: Mendable) -> dict[str, Any]:
    found: dict[str, Any] = frontier._read(lambda client: client.info("persistence"))
    return found


# -- repair -----------------------------------------------------------------------------------------------------------


def repair(frontier: Mendable) -> int:
    """Rebuilds every index from the backup; how many requests stood nowhere. Twice, or by two at once, does no harm."""
    frontier._run("mend_items", ITEMS_LOOKED_AT)
    keys = frontier.keys
    for index in (keys.leases, keys.owner, keys.delayed, keys.dead, keys.why, keys.retry, keys.lost, keys.alone):
        _drop(frontier, index)
    last_site = _last_site(frontier)
    for number in range(1, last_site + 1):
        _drop(frontier, keys.queue(number))
    homeless = 0
    for ids in _ids(frontier, keys.req):
        homeless += frontier._run("mend", len(ids), *_with_members(ids))[1]
    place_sites(frontier, last_site)
    frontier._run("mend_seen", "-")
    size, split = frontier._read(lambda client: client.hmget(keys.meta, ["size", "split"]))
    frontier._run("mend_seen", "count" if int(size) + int(split) <= BUCKETS_A_CALL else _seen(frontier))
    return homeless


def place_sites(frontier: Mendable, last_site: int) -> None:
    """Puts every site where its queue, its slots in use and its pace say that it belongs."""
    for first in range(1, last_site + 1, SITES_A_CALL):
        frontier._run("mend_sites", first, min(last_site, first + SITES_A_CALL - 1))


def _drop(frontier: Mendable, index: str) -> None:
    for ids in _ids(frontier, index):
        frontier.server.run(load("drop"), [frontier.keys.prefix, index], ids)


def _ids(frontier: Mendable, index: str) -> Iterator[Sequence[bytes]]:
    """All ids of an index that are there from beginning to end; some may come twice."""
    is_hash = frontier._read(partial(_type, index)) == b"hash"
    cursor = 0
    while True:
        cursor, ids = frontier._read(partial(_scan, index, cursor, is_hash))
        yield from parcels(ids, IDS_A_CALL)
        if not cursor:
            return


def _type(index: str, client: redis.Redis) -> Any:
    return client.type(index)


def _scan(index: str, cursor: int, is_hash: bool, client: redis.Redis) -> tuple[int, list[bytes]]:
    scan: Any = client.hscan if is_hash else client.zscan
    cursor, found = scan(index, cursor, count=IDS_A_CALL)
    return cursor, list(found) if is_hash else [id for id, _ in found]


def _with_members(ids: Sequence[bytes]) -> list[wire.Argument]:
    return [part for id in ids for part in (id, wire.member(id))]


def _last_site(frontier: Mendable) -> int:
    return int(frontier._read(lambda client: client.hget(frontier.keys.meta, "sites")) or 0)


def _seen(frontier: Mendable) -> int:
    """How many ids the buckets hold; in a huge crawl some may come in meanwhile."""
    size, split = frontier._read(lambda client: client.hmget(frontier.keys.meta, ["size", "split"]))
    seen = 0
    for first in range(0, int(size) + int(split), BUCKETS_A_CALL):
        seen += frontier._run("count_seen", first, first + BUCKETS_A_CALL - 1)
    return seen


def sweep(frontier: Mendable) -> None:
    """Unlinks what a flush left behind, some keys a call."""
    keys, server = frontier.keys, frontier.server
    while trash := wire.text(frontier._read(lambda client: client.hget(keys.meta, "trash")) or ""):
        epoch, buckets, sites = (int(part) for part in trash.partition(";")[0].split())
        numbers = range(1, sites + 1)
        gone = [keys.bucket(epoch, number) for number in range(buckets)]
        gone += [name for number in numbers for name in (keys.queue(number), keys.site(number))]
        for some in parcels(gone, IDS_A_CALL):
            server.run(load("sweep"), [keys.prefix, *some], ["-"])
        server.run(load("sweep"), [keys.prefix], [trash.partition(";")[2]])


# -- audit ------------------------------------------------------------------------------------------------------------


def audit(frontier: Mendable) -> list[str]:
    """What is broken, a line each, at most about twenty. For a crawl that stands still: what moves may look broken."""
    problems = [*broken_sums(frontier), *_stray_counters(frontier)]
    for ids in _ids(frontier, frontier.keys.req):
        wrong = frontier._run("check", *_with_members(ids))
        problems += [f"{wire.text(what)}: {id.hex()}" for id, what in zip(wrong[::2], wrong[1::2], strict=True)]
        if len(problems) >= PROBLEMS_SHOWN:
            return [*problems[:PROBLEMS_SHOWN], "... and perhaps more"]
    return problems


def broken_sums(frontier: Mendable) -> Iterator[str]:
    bodies, leased, delayed, dead, seen, _ = frontier._run("counts")
    keys = frontier.keys
    owners, reasons, queued = frontier._read(
        lambda client: (client.hlen(keys.owner), client.hlen(keys.why), client.zcard(keys.alone))
    )
    last_site = _last_site(frontier)
    for first in range(1, last_site + 1, SITES_A_CALL):
        count, wrong = frontier._run("check_sites", first, min(last_site, first + SITES_A_CALL - 1))
        queued += count
        yield from (wire.text(line) for line in wrong[:PROBLEMS_SHOWN])
    if bodies != queued + leased + delayed + dead:
        yield f"{bodies} requests in the backup, but {queued} queued, {leased} leased, {delayed} delayed, {dead} dead"
    if (owners, reasons) != (leased, dead):
        yield f"{leased} leases with {owners} owners, {dead} dead with {reasons} reasons"
    in_buckets = _seen(frontier)
    if seen != in_buckets:
        yield f"{seen} seen are counted, {in_buckets} are in the buckets"


def _stray_counters(frontier: Mendable) -> Iterator[str]:
    for index in (frontier.keys.retry, frontier.keys.lost):
        for ids in _ids(frontier, index):
            bodies = frontier._read(partial(_bodies, frontier.keys.req, ids))
            pairs = zip(ids, bodies, strict=True)
            yield from (f"a counter without its request: {id.hex()}" for id, body in pairs if body is None)


def _bodies(key: str, ids: Sequence[bytes], client: redis.Redis) -> Any:
    return client.hmget(key, list(ids))
