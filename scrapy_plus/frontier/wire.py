"""Between the contract's values and what the Lua scripts read and answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from scrapy_plus.frontier.base import DeadLetter, Lease, LeaseAnswer, Location, Page, Record, SiteFacts, Token
from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace

Argument = bytes | str | int | float
ID_BYTES = 20
PACE_FIELDS = ("delay", "limit", "jitter", "slow", "gated")
HEADER_BYTES = 13
"""What stands before a payload in the backup hash: a version, the sort score (8 bytes) and the site's number (4)."""
PRIORITY_LIMIT = 1000
_MEMBER_MASK = (1 << 63) - 1


def member(id: bytes) -> int:
    """What the `seen` bucket of an id holds: the 63 bits after the 12 that choose the bucket."""
    return (int.from_bytes(id[:10], "big") >> 5) & _MEMBER_MASK


def ms(seconds: float) -> int:
    return round(seconds * 1000)


def pack_token(token: Token) -> str:
    return f"{token[0]}:{token[1]}"


def pack_leases(leases: Iterable[tuple[bytes, Token]]) -> list[Argument]:
    packed: list[Argument] = [0]
    for id, token in leases:
        packed += (id, pack_token(token))
    packed[0] = len(packed) // 2
    return packed


def pack_retries(retries: Iterable[tuple[bytes, Token, float]]) -> list[Argument]:
    packed: list[Argument] = [0]
    for id, token, delay_seconds in retries:
        packed += (id, pack_token(token), ms(max(0.0, delay_seconds)))
    packed[0] = len(packed) // 3
    return packed


def pack_records(records: Sequence[Record]) -> list[Argument]:
    packed: list[Argument] = [len(records)]
    for id, site, payload, priority in records:
        clamped = max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT, priority))
        packed += (id, member(id), site, clamped, payload)
    return packed


def pack_page(page: Page, children: Sequence[Record], *, is_part: bool = False) -> list[Argument]:
    """A page with those of its children that have to be sent; a part has no items and does not end the lease."""
    kind = "part" if is_part else "done" if page.reason is None else "dead"
    packed: list[Argument] = [page.id, pack_token(page.token), kind, page.status, page.reason or ""]
    packed += pack_records(children)
    items = () if is_part else page.items
    packed += (len(items), *items)
    counters = {} if is_part else page.counters
    packed.append(len(counters))
    for name, by in counters.items():
        packed += (name, by)
    return packed


def pack_report(last: int, started: Collection[bytes]) -> bytes:
    """What a worker says it started, and up to which token number it knew its leases."""
    return b"%d:%b" % (last, b"".join(started))


def pack_facts(facts: Mapping[str, str]) -> str:
    return json.dumps(dict(facts), ensure_ascii=False)


# -- answers ----------------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def flags(digits: bytes) -> list[bool]:
    return [digit == 49 for digit in digits]


def read_lease(answer: Sequence[Any], worker: str) -> LeaseAnswer:
    state, wait_ms, leases = answer
    return LeaseAnswer(
        [
            Lease(id, (worker, int(number)), payload, text(site), attempt, lost, is_limited == 1)
            for id, number, payload, site, attempt, lost, is_limited in leases
        ],
        None if wait_ms < 0 else wait_ms / 1000,
        text(state),
    )


def read_location(answer: Sequence[Any]) -> Location:
    state, at_ms, worker, attempt, lost, reason, site = answer
    return Location(State(text(state)), float(at_ms) / 1000, text(worker), attempt, lost, text(reason), text(site))


def read_dead(id: bytes, at_ms: float, value: bytes | None, why: bytes | None) -> DeadLetter:
    attempts, lost, status, reason = (why or b"1 0 0 ").split(b" ", 3)
    payload = (value or b"")[HEADER_BYTES:]
    return DeadLetter(id, payload, text(reason), int(attempts), int(lost), int(status), at_ms / 1000)


def read_site(queued: int, fields: Mapping[bytes, bytes], usual: Sequence[bytes]) -> SiteFacts:
    """`usual` is the crawl's delay, limit, jitter, slowness and gate, for what the site's own fields do not say."""
    known = {**dict(zip(PACE_FIELDS, usual, strict=True)), **{text(name): value for name, value in fields.items()}}

    def number(name: str) -> float:
        return float(known.get(name, 0))

    pace = Pace(
        number("delay") / 1000,
        int(number("limit")),
        number("paused") / 1000,
        number("jitter"),
        number("slow") / 1000,
        number("gated") == 1,
    )
    facts = {name[5:]: text(value) for name, value in known.items() if name.startswith("fact:")}
    return SiteFacts(pace, number("next") / 1000, int(number("busy")), queued, facts)
