"""Request <-> bytes: a version, then JSON of the fields that differ from the default. Never pickle: whoever can write
to a shared queue must not be able to run code in its readers.

JSON rather than MessagePack: 75 bytes for a plain GET either way, readable in redis-cli, and no further dependency.
"""

from __future__ import annotations

import json
from typing import Any

from scrapy_plus.errors import NotStorable, Undecodable
from scrapy_plus.http.request import FIELDS, Request
from scrapy_plus.http.storable import from_plain, to_plain

VERSION = b"1"
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
_read = json.JSONDecoder().decode


def encode(request: Request) -> bytes:
    """The request as bytes. Raises NotStorable, naming the field, for what was put into meta after it was made."""
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
    if payload[:1] != VERSION:
        raise Undecodable(f"a request stored in version {payload[:1]!r}; this release reads {VERSION!r}")
    try:
        fields = _read(payload[1:].decode("utf-8", "surrogatepass"))
        is_public = bool(fields.pop(_PUBLIC, 0))
        request = Request(**{_LONG[short]: from_plain(value) for short, value in fields.items()})
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Undecodable(f"not a stored request: {error!r}") from None
    request.from_public = is_public
    return request
