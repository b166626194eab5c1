"""What other programs may put into a feed: a URL, or a JSON object of a request's fields. Decided without effects."""

from __future__ import annotations

import json
from typing import Any

from scrapy_plus.errors import BadEntry, NotStorable
from scrapy_plus.http.request import Request

VERSION = 1
# field: (the types that JSON may give it, how they are called). bool is an int in Python, hence the check by type().
_TEXT, _PAIRS, _FLAG = ((str,), "a text"), ((dict,), "an object"), ((bool,), "true or false")
_BODY = ((str, dict, list), "a text, an object or a list of pairs")
_FIELDS: dict[str, tuple[tuple[type, ...], str]] = {
    "url": _TEXT,
    "method": _TEXT,
    "headers": _PAIRS,
    "params": ((dict, list), "an object or a list of pairs"),
    "cookies": ((dict, list), "an object or a list of objects"),
    "data": _BODY,
    "body": _TEXT,
    "meta": _PAIRS,
    "priority": ((int,), "a whole number"),
    "callback": _TEXT,
    "parse": _TEXT,
    "errback": _TEXT,
    "cb_kwargs": _PAIRS,
    "dont_filter": _FLAG,
    "filter": _FLAG,
    "timeout": ((int, float), "a number of seconds"),
    "proxy": _TEXT,
    "encoding": _TEXT,
}
_SAME = (("data", "body"), ("data", "json"), ("body", "json"), ("callback", "parse"), ("dont_filter", "filter"))


def read_entry(raw: bytes, *, encoding: str = "utf-8") -> Request:
    """The request that an entry of a feed stands for.

    Raises: BadEntry, with the reason in one line, for whatever is not a URL or an object of known, well-typed fields.
    """
    try:
        text = raw.decode(encoding).strip()
    except UnicodeDecodeError as error:
        raise BadEntry(f"not {encoding}: {error.reason} at byte {error.start}") from None
    fields = _object(text) if text[:1] in ("{", "[", '"') else {"url": text}
    try:
        request = Request(**fields)
        # Parameters, bodies and encodings are looked at when they are sent: too late to say which entry was wrong.
        _ = request.full_url, request.body
    except (ValueError, TypeError, AttributeError, LookupError, NotStorable, RecursionError) as error:
        raise BadEntry(" ".join(str(error).split()) or type(error).__name__) from None
    return request


def _object(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadEntry(f"no JSON: {error}") from None
    if type(given) is not dict:
        raise BadEntry("neither a URL nor a JSON object")
    version = given.pop("version", VERSION)
    if type(version) is not int or version != VERSION:
        raise BadEntry(f"version {version!r}; this release reads {VERSION}")
    _check(given)
    return given


def _check(given: dict[str, Any]) -> None:
    if "url" not in given:
        raise BadEntry("no url")
    for name, value in given.items():
        if name == "json":
            continue
        if name not in _FIELDS:
            raise BadEntry(f"unknown field {name!r}")
        types, wanted = _FIELDS[name]
        if type(value) not in types:
            raise BadEntry(f"{name} must be {wanted}, not {type(value).__name__}")
    for one, other in _SAME:
        if one in given and other in given:
            raise BadEntry(f"both {one} and {other}: they mean the same thing")
