"""Request <-> bytes: a version, then JSON of the fields that differ from the default. Never pickle: whoever can write
to a shared queue must not be able to run code in its readers.

JSON rather than MessagePack: 75 bytes for a plain GET either way, readable in redis-cli, and no further dependency.
"""

from __future__ import annotations

import json
from base64 import b64encode
from operator import attrgetter
from typing import Any

from scrapy_plus.errors import NotStorable, Undecodable
from scrapy_plus.http.request import FIELDS, Request, plain_request
from scrapy_plus.http.storable import from_plain, to_plain
from scrapy_plus.http.url import is_clean

VERSION = b"1"
REFUSED = b"x"
"""Instead of a version: what somebody put into a feed is no request. It becomes a dead letter when its turn comes."""
# Short names: a crawl stores millions of these. An unlisted field would be a KeyError in every test.
_SHORT = {
    "url": "u",
    "method": "m",
    "headers": "h",
    "params": "q",
    "data": "d",
    "json": "j",
    "parse": "p",
    "errback": "e",
    "filter": "f",
    "meta": "t",
    "cookies": "c",
    "priority": "r",
    "cb_kwargs": "k",
    "timeout": "o",
    "proxy": "x",
    "encoding": "n",
}
_PUBLIC = "b"
_LONG = {short: name for name, short in _SHORT.items()}
_DEFAULTS: dict[str, Any] = {"method": "GET", "parse": "parse", "filter": True, "priority": 0, "encoding": "utf-8"}
_STORED = [(name, _SHORT[name], _DEFAULTS.get(name)) for name in FIELDS if name not in ("url", "headers", "meta")]
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_read = json.JSONDecoder().raw_decode
# What is the same in nearly every request of a crawl; the others' values are written field by field.
_UNSET = ("params", "data", "json", "errback", "cookies", "timeout", "proxy", "cb_kwargs")
_unset = attrgetter(*_UNSET)
_NOTHING = (None,) * len(_UNSET)
_PLAIN_FIELDS = frozenset("utp")


def encode(request: Request) -> bytes:
    """The request as bytes. Raises NotStorable, naming the field, for what was put into meta after it was made."""
    return _encode_plain(request) or _encode_any(request)


def is_plain(request: Request) -> bool:
    """Whether it is a GET with nothing of its own but a callback and a depth, as most are."""
    meta = request._meta
    return (
        _unset(request) == _NOTHING
        and not request._headers
        and request.method == "GET"
        and type(request.priority) is int
        and not request.priority
        and request.filter is True
        and request.encoding == "utf-8"
        and type(request.parse) is str
        and (not meta or (len(meta) == 1 and type(meta.get("depth")) is int))
    )


def _encode_plain(request: Request) -> bytes:
    """What `_encode_any` gives for a plain request; b"" for any other."""
    if not is_plain(request):
        return b""
    depth = f',"t":{{"depth":{request.meta["depth"]}}}' if request.has_meta else ""
    parse = "" if request.parse == "parse" else f',"p":{_write(request.parse)}'
    public = f',"{_PUBLIC}":1' if request.from_public else ""
    return VERSION + f'{{"u":{_write(request.url)}{depth}{parse}{public}}}'.encode("utf-8", "surrogatepass")


def _encode_any(request: Request) -> bytes:
    fields: dict[str, Any] = {"u": request.url}
    if request.has_headers:
        fields["h"] = list(request.headers.pairs())
    if request.has_meta:
        fields["t"] = to_plain(request.meta, "meta")
    for name, short, default in _STORED:
        value = getattr(request, name)
        if value != default:
            fields[short] = value if type(value) is str else to_plain(value, name)
    if request.from_public:
        fields[_PUBLIC] = 1
    try:
        # surrogatepass: JSON from the web holds halves of surrogate pairs, and they end up in meta.
        return VERSION + _write(fields).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError) as error:
        raise NotStorable(f"{request!r} cannot be stored: {error}") from None


def decode(payload: bytes) -> Request:
    """The request that `encode` wrote. Raises Undecodable for broken bytes or a newer version."""
    if payload[:1] == REFUSED:
        raise Undecodable(_refusal(payload))
    if payload[:1] != VERSION:
        raise Undecodable(f"a request stored in version {payload[:1]!r}; this release reads {VERSION!r}")
    try:
        text = payload[1:].decode("utf-8", "surrogatepass")
        fields, end = _read(text)
        if end != len(text):
            raise ValueError(f"{text[end:][:40]!r} behind it")
        is_public = bool(fields.pop(_PUBLIC, 0))
        request = _decode_plain(fields) or Request(**{_LONG[key]: from_plain(one) for key, one in fields.items()})
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Undecodable(f"not a stored request: {error!r}") from None
    request.from_public = is_public
    return request


def encode_refused(raw: bytes, reason: str) -> bytes:
    """What is stored of an entry that is no request: its bytes, and why."""
    entry = {"reason": reason, "entry": raw.decode("utf-8", "replace"), "base64": b64encode(raw).decode("ascii")}
    return REFUSED + _write(entry).encode("utf-8", "surrogatepass")


def _refusal(payload: bytes) -> str:
    try:
        return f"an entry of the feed: {json.loads(payload[1:])['reason']}"
    except (ValueError, TypeError, KeyError):
        return "an entry of the feed that cannot be read"


def _decode_plain(fields: dict[str, Any]) -> Request | None:
    """The request that `_encode_plain` wrote; None for what may have been written otherwise, or by others."""
    if not _PLAIN_FIELDS.issuperset(fields):
        return None
    url, parse, meta = fields.get("u"), fields.get("p", "parse"), fields.get("t")
    if type(url) is not str or not is_clean(url) or type(parse) is not str or not parse.isidentifier():
        return None
    if meta is not None and not (type(meta) is dict and len(meta) == 1 and type(meta.get("depth")) is int):
        return None
    request = plain_request(url, parse)
    request._meta = meta
    return request
