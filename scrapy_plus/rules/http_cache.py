"""What a cache of one user may keep, and when it may answer, as RFC 9111 has it. Pure; the clock is an argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

Fields = tuple[tuple[str, str], ...]

HEURISTIC_STATUSES = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
UNSAFE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_HEURISTIC_SECONDS = 86_400.0
_OWN_CONDITIONS = ("if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range")
# A 304 describes the stored body no further than its validators do (RFC 9111 §3.2).
_OF_THE_BODY = frozenset({"content-length", "content-encoding", "content-type", "content-range", "transfer-encoding"})
_OF_THE_CONNECTION = frozenset({"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer: what was asked (the fields of the request that it may vary by), what came, and when."""

    url: str
    status: int
    fields: Fields
    body: bytes
    asked: Fields = ()
    at: float = 0.0
    ip_address: str | None = None

    def values(self, name: str) -> list[str]:
        return values(self.fields, name)

    def value(self, name: str) -> str:
        return next(iter(self.values(name)), "")


def values(fields: Iterable[tuple[str, str]], name: str) -> list[str]:
    return [value for one, value in fields if one.lower() == name]


def directives(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What Cache-Control says, names in lower case; of a directive that comes twice the first counts."""
    found: dict[str, str] = {}
    for part in _split(",".join(values(fields, "cache-control"))):
        name, _, value = part.partition("=")
        if name.strip():
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def _split(text: str) -> list[str]:
    """By commas, but for those within quotes."""
    parts, inside = [""], False
    for character in text:
        inside ^= character == '"'
        if character == "," and not inside:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def seconds(text: str | None) -> float | None:
    """A delta-seconds; one that cannot be read is as if the answer were stale at once (RFC 9111 §4.2.1)."""
    if text is None:
        return None
    return min(float(text), 2.0**31) if text.isascii() and text.isdigit() else 0.0


def http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def is_bypassed(method: str, fields: Iterable[tuple[str, str]]) -> bool:
    """Whether the request goes past the cache both ways: it has conditions of its own, or forbids to store."""
    rows = list(fields)
    has_conditions = any(name.lower() in _OWN_CONDITIONS for name, _ in rows)
    return method not in ("GET", "HEAD") or has_conditions or "no-store" in directives(rows)


def is_storable(entry: Entry) -> bool:
    """Whether keeping the answer is allowed, and of use: it says how long it is good, or can be asked about again."""
    said = directives(entry.fields)
    if "no-store" in said or entry.status in (206, 304) or entry.status < 200 or "*" in _varies_by(entry):
        return False
    has_lifetime = "max-age" in said or bool(entry.value("expires"))
    has_validator = bool(entry.value("etag") or entry.value("last-modified"))
    return has_lifetime or (has_validator and entry.status in HEURISTIC_STATUSES)


def is_match(entry: Entry, fields: Iterable[tuple[str, str]]) -> bool:
    """Whether the answer was to such a request: the same in all that it varies by, and for the same account."""
    rows = list(fields)
    names = _varies_by(entry)
    if "*" in names:
        return False
    return all(_normal(entry.asked, name) == _normal(rows, name) for name in (*names, "authorization"))


def asked_fields(entry: Entry, fields: Iterable[tuple[str, str]]) -> Fields:
    """Those of the request that `is_match` will ask for."""
    wanted = {*_varies_by(entry), "authorization"}
    return tuple((name, value) for name, value in fields if name.lower() in wanted)


def _varies_by(entry: Entry) -> list[str]:
    return [name.strip().lower() for value in entry.values("vary") for name in value.split(",") if name.strip()]


def _normal(fields: Iterable[tuple[str, str]], name: str) -> list[str]:
    return [" ".join(part.split()) for value in values(fields, name) for part in value.split(",")]


def lifetime(entry: Entry) -> float:
    """For how many seconds the answer is good. Source: RFC 9111 §4.2.1, §4.2.2."""
    said = directives(entry.fields)
    if "max-age" in said:
        return seconds(said["max-age"]) or 0.0
    date = http_date(entry.value("date"))
    date = entry.at if date is None else date
    if entry.value("expires"):
        expires = http_date(entry.value("expires"))
        return 0.0 if expires is None else max(0.0, expires - date)
    modified = http_date(entry.value("last-modified"))
    if modified is None or entry.status not in HEURISTIC_STATUSES:
        return 0.0
    return min(LONGEST_HEURISTIC_SECONDS, max(0.0, date - modified) / 10)


def age(entry: Entry, now: float) -> float:
    """How old the answer is. Source: RFC 9111 §4.2.3."""
    date = http_date(entry.value("date"))
    apparent = max(0.0, entry.at - date) if date is not None else 0.0
    told = seconds(entry.value("age") or None) or 0.0
    return max(apparent, told) + max(0.0, now - entry.at)


def is_fresh(entry: Entry, fields: Iterable[tuple[str, str]], now: float) -> bool:
    """Whether the answer may be given without asking again. Source: RFC 9111 §4.2, §5.2.1."""
    rows = list(fields)
    asks, said = directives(rows), directives(entry.fields)
    if "no-cache" in asks or "no-cache" in said or (not asks and "no-cache" in values(rows, "pragma")):
        return False
    how_old, good_for = age(entry, now), lifetime(entry)
    if "max-age" in asks and how_old > (seconds(asks["max-age"]) or 0.0):
        return False
    if "min-fresh" in asks:
        return good_for >= how_old + (seconds(asks["min-fresh"]) or 0.0)
    if good_for > how_old:
        return True
    if "max-stale" not in asks or "must-revalidate" in said:
        return False
    return not asks["max-stale"] or how_old - good_for <= (seconds(asks["max-stale"]) or 0.0)


def may_stand_in(entry: Entry, now: float) -> bool:
    """Whether the stale answer may be given when the server fails. Source: RFC 5861 §4."""
    allowed = directives(entry.fields).get("stale-if-error")
    return allowed is not None and age(entry, now) - lifetime(entry) <= (seconds(allowed) or 0.0)


def conditions(entry: Entry) -> dict[str, str]:
    """The fields that ask whether the stored answer still holds; empty if it cannot be asked about."""
    asked = {"If-None-Match": entry.value("etag"), "If-Modified-Since": entry.value("last-modified")}
    return {name: value for name, value in asked.items() if value}


def renewed(entry: Entry, fields: Iterable[tuple[str, str]], now: float) -> Entry:
    """The stored answer after a 304 with these fields. Source: RFC 9111 §3.2, §4.3.4."""
    ignored = _OF_THE_BODY | _OF_THE_CONNECTION
    new = [(name, value) for name, value in fields if name.lower() not in ignored]
    replaced = {name.lower() for name, _ in new}
    kept = [(name, value) for name, value in entry.fields if name.lower() not in replaced | {"age"}]
    return replace(entry, fields=(*kept, *new), at=now)


