"""A crawl in Redis as a sequence of plain entries, and back: for a file, for another server.

Each entry is a list that JSON can say; what is no text is in base64. They are read and stored some at a time. Every
call that stores does nothing the second time, so loading that was cut short is begun again, and ends as if it had not
been.
"""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from scrapy_plus.errors import NodesAlive, UsageError
from scrapy_plus.frontier import wire
from scrapy_plus.frontier.parcels import parcels
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.frontier.script import load

VERSION = 1
FORMAT = "scrapy-plus dump"
IDS_A_CALL = 300
CALL_BYTES = 1 << 20
_FACTS = ("cursor", "seeded", "again", "done", "seq", "keeps_items")
_PACE = ("set_delay", "set_limit")
_MOVES = (*_FACTS, *_PACE, "seen", "version", "epoch", "state", "schema")
Entry = list[Any]


# -- out ---------------------------------------------------------------------------------------------------------------


def dump(frontier: RedisFrontier, *, with_items: bool) -> Iterator[Entry]:
    """All of a crawl that stands still.

    Raises: NodesAlive while processes work on it, UsageError if it moved meanwhile, since some may be missing then.
    """
    before = _standing(frontier)
    yield ["dump", FORMAT, VERSION, _header(frontier)]
    yield from _sites(frontier)
    requests = 0
    for entry in _requests(frontier):
        requests += 1
        yield entry
    yield from _seen(frontier)
    if with_items:
        yield from _items(frontier)
    if _standing(frontier) != before:
        raise UsageError("somebody worked on the crawl while it was dumped, so the dump is not whole; do it again")
    facts = _meta(frontier, _FACTS)
    state = frontier.state()
    yield ["end", requests, "running" if state == "stopped" else state, facts, frontier.stats()]


def _standing(frontier: RedisFrontier) -> list[Any]:
    """Equal twice if nothing moved in between."""
    lease_seconds = int(_meta(frontier, ("lease",))["lease"]) / 1000
    if alive := [node.worker for node in frontier.nodes() if node.age_seconds < lease_seconds]:
        raise NodesAlive(f"{len(alive)} processes work on the crawl ({', '.join(alive[:3])}); stop it first")
    return [_meta(frontier, _MOVES), frontier.counts()]


def _meta(frontier: RedisFrontier, names: Iterable[str]) -> dict[str, str]:
    asked = list(names)
    values = _ask(frontier, "hmget", frontier.keys.meta, asked)
    return {name: wire.text(value) for name, value in zip(asked, values, strict=True) if value is not None}


def _ask(frontier: RedisFrontier, command: str, *words: Any, **options: Any) -> Any:
    return frontier._read(lambda client: getattr(client, command)(*words, **options))


def _header(frontier: RedisFrontier) -> dict[str, str]:
    told = _meta(frontier, ("order", "items_as", *_PACE))
    return {"id": uuid.uuid4().hex, "crawl": frontier.keys.prefix, **told}


def _sites(frontier: RedisFrontier) -> Iterator[Entry]:
    cursor = 0
    while True:
        cursor, names = _ask(frontier, "hscan", frontier.keys.names, cursor, count=IDS_A_CALL)
        for number, name in names.items():
            fields = _ask(frontier, "hgetall", frontier.keys.site(int(number)))
            told = {wire.text(key): wire.text(value) for key, value in fields.items() if key != b"busy"}
            if told:
                yield ["site", wire.text(name), told]
        if not cursor:
            return


def _requests(frontier: RedisFrontier) -> Iterator[Entry]:
    cursor = 0
    while True:
        cursor, found = _ask(frontier, "hscan", frontier.keys.req, cursor, count=IDS_A_CALL)
        for some in parcels(list(found), IDS_A_CALL):
            yield from _described(frontier, {id: found[id] for id in some})
        if not cursor:
            return


def _described(frontier: RedisFrontier, found: Mapping[bytes, bytes]) -> Iterator[Entry]:
    told = frontier._run("describe", *found)
    numbers = [str(int.from_bytes(value[9:13], "big")) for value in found.values()]
    names = _ask(frontier, "hmget", frontier.keys.names, numbers)
    for at, ((id, value), name) in enumerate(zip(found.items(), names, strict=True)):
        letter, moment, reason, retries, losses = told[5 * at : 5 * at + 5]
        place = {b"l": "r"}.get(letter, wire.text(letter))  # nobody holds it any more
        if place != "-":
            beside = [place, wire.text(moment), wire.text(reason), int(retries), int(losses)]
            yield ["request", _coded(id), wire.text(name), _coded(value[1:9]), _coded(value[13:]), *beside]


def _seen(frontier: RedisFrontier) -> Iterator[Entry]:
    facts = _meta(frontier, ("epoch", "size", "split"))
    for number in range(int(facts["size"]) + int(facts["split"])):
        key = frontier.keys.bucket(int(facts["epoch"]), number)
        members = _ask(frontier, "smembers", key)  # some hundreds: a bucket is split before
        if members:
            yield ["seen", number % 4096, [int(member) for member in members]]


def _items(frontier: RedisFrontier) -> Iterator[Entry]:
    key = wire.text(_ask(frontier, "hget", frontier.keys.meta, "items_key") or frontier.keys.items)
    if _ask(frontier, "type", key) == b"list":
        for start in count(0, IDS_A_CALL):
            items = _ask(frontier, "lrange", key, start, start + IDS_A_CALL - 1)
            yield from (["item", "", "", _coded(item)] for item in items)
            if not items:
                return
    after = "-"
    while entries := _ask(frontier, "xrange", key, min=after, count=IDS_A_CALL):
        for name, fields in entries:
            yield ["item", wire.text(name), _coded(fields.get(b"page", b"")), _coded(fields[b"item"])]
        after = f"({wire.text(entries[-1][0])}"


def _coded(data: bytes) -> str:
    return b64encode(data).decode()


# -- in ----------------------------------------------------------------------------------------------------------------


def check(entries: Iterable[Entry]) -> dict[str, str]:
    """The header of a whole dump. Raises UsageError for one that is none, is of another version or has no end."""
    head: Entry = []
    last: Entry = []
    requests = 0
    for last in entries:
        head = head or last
        requests += last[0] == "request"
        if head[:2] != ["dump", FORMAT]:
            raise UsageError("it is no dump of a crawl")
        if head[2] != VERSION:
            raise UsageError(
                f"it was made by a newer release (version {head[2]}, not {VERSION}); load it with that one"
            )
    if not last or last[0] != "end" or last[1] != requests:
        raise UsageError("it has no end; make the dump again")
    return dict(head[3])


def restore(frontier: RedisFrontier, entries: Iterable[Entry], *, replaces: bool = False) -> None:
    """Makes the crawl what the entries say; nobody else can open it until that is done. `frontier` was opened to load.

    Raises: UsageError for a crawl that is not empty (unless it `replaces` that), NodesAlive.
    """
    rest = iter(entries)
    again = _begin(frontier, next(rest)[3], replaces=replaces)
    stored = {"site": _store_site, "request": _store_requests, "seen": _store_seen}
    position = 0
    for kind, some in _batches(rest):
        if kind == "item":
            _store_items(frontier, position, some)
            position += len(some)
        elif kind == "end":
            if again or frontier.is_cut:
                frontier.repair()
            _end(frontier, some[0])
        else:
            stored[kind](frontier, some)


def _batches(entries: Iterator[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Entries of one kind that follow each other, as many as one call should have."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        grown = sum(len(part) for part in entry if isinstance(part, (str, list)))
        if batch and (entry[0] != batch[0][0] or len(batch) >= IDS_A_CALL or size + grown > CALL_BYTES):
            yield batch[0][0], batch
            batch, size = [], 0
        batch.append(entry)
        size += grown
    if batch:
        yield batch[0][0], batch


def _begin(frontier: RedisFrontier, header: Mapping[str, str], *, replaces: bool) -> bool:
    """Whether the same was begun before."""
    told = [header["id"], header["order"], header["items_as"]]
    answer = wire.text(frontier._run("load_begin", *told, 0)[1])
    if answer in ("full", "other") and replaces:
        frontier.flush()
        answer = wire.text(frontier._run("load_begin", *told, 1)[1])
    if answer == "nodes":
        raise NodesAlive("processes work on the crawl; stop it first")
    if answer in ("full", "other"):
        what = "is not empty" if answer == "full" else "is half loaded from another file"
        raise UsageError(
            f"the crawl {frontier.keys.prefix} at {frontier.server.where} {what}; --replace forgets it first"
        )
    pace = [(name, header[name]) for name in _PACE if name in header]
    frontier._run("set_pace", *(part for pair in pace for part in pair))
    return answer == "again"


def _store_site(frontier: RedisFrontier, entries: list[Entry]) -> None:
    for _, name, fields in entries:
        frontier._run("set_site", name, *(part for pair in fields.items() for part in pair))


def _store_requests(frontier: RedisFrontier, entries: list[Entry]) -> None:
    packed: list[wire.Argument] = [len(entries)]
    for _, coded, site, score, payload, place, moment, reason, retries, losses in entries:
        id = b64decode(coded)
        packed += (id, wire.member(id), site, b64decode(score), b64decode(payload), place, moment, reason)
        packed += (retries, losses)
    frontier._run("load_requests", *packed)


def _store_seen(frontier: RedisFrontier, entries: list[Entry]) -> None:
    pairs = [((top << 4).to_bytes(2, "big"), member) for _, top, members in entries for member in members]
    for some in parcels(pairs, IDS_A_CALL):
        frontier._run("load_seen", len(some), *(part for pair in some for part in pair))


def _store_items(frontier: RedisFrontier, position: int, entries: list[Entry]) -> None:
    packed: list[wire.Argument] = []
    for _, name, page, item in entries:
        packed += (name, b64decode(page), b64decode(item))
    frontier._run("load_items", position, len(entries), *packed)


def _end(frontier: RedisFrontier, entry: Entry) -> None:
    _, _, state, facts, stats = entry
    told: list[wire.Argument] = [state]
    for pairs in (facts, stats):
        told += (len(pairs), *(part for pair in pairs.items() for part in pair))
    frontier.server.run(load("load_end"), [frontier.keys.prefix], told)
