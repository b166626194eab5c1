"""The identity of a request: what makes two of them the same page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha1

from scrapy_plus.http.request import Request
from scrapy_plus.http.url import canonicalize, encode_form

FINGERPRINT_BYTES = 20
SEED = b"seed"


def fingerprint(request: Request, *, include_headers: Iterable[str] = (), keep_fragments: bool = False) -> bytes:
    """20 bytes (sha1) of method, canonical URL with params, and body; of the named headers too, when asked.

    The order of a dict in params, data or json does not matter. Stable between releases: a change would crawl
    everything again.
    """
    is_plain = request.method == "GET" and request.json is None and not (request.params or request.data)
    if is_plain and not include_headers and not keep_fragments:
        return of_plain_get(request.url)
    fragment = request.url.partition("#")[2] if keep_fragments else ""
    url = f"{request.full_url}#{fragment}" if fragment else request.full_url
    parts = [request.method.encode(), canonicalize(url, keep_fragments=keep_fragments).encode()]
    if request.data or request.json is not None:
        parts.append(_body(request))
    if include_headers:
        names = sorted({name.lower() for name in include_headers})
        parts.extend(f"{name}:{value}".encode() for name in names for value in request.headers.getlist(name))
    return sha1(b"\n".join(parts)).digest()


@lru_cache(maxsize=8192)
def of_plain_get(url: str) -> bytes:
    """The fingerprint of `Request(url)`. Remembered, since the links of a page's frame are on all pages of its site:
    0.1 us instead of 1."""
    return sha1(b"GET\n" + canonicalize(url.partition("#")[0]).encode()).digest()


def _body(request: Request) -> bytes:
    """The body, without the order in which a dict happened to be written."""
    if request.json is not None:
        return json.dumps(request.json, sort_keys=True, separators=(",", ":")).encode()
    if isinstance(request.data, dict):
        return encode_form(sorted(request.data.items())).encode()
    return request.body


def occurrence_id(fp: bytes, parent: bytes, occurrence: int) -> bytes:
    """The id of a `filter=False` request: its URL may come many times, but this one, from this parent, comes once.

    Deterministic, so a page that is worked on twice yields the same ids, and what it yielded is taken in once.
    """
    return sha1(fp + parent + b"%d" % occurrence).digest()
