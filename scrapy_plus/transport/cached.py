"""A transport that remembers: answers out of a cache where its policy allows it, from another transport elsewhere.

It stands where the network is, below all middlewares: what it keeps is what came over the wire, and what it answers
goes the same way as any other answer. It takes no time, so it holds no slot of a site.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrapy_plus.errors import DownloadError, NotCached
from scrapy_plus.http.headers import Headers
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.rules import http_cache as rules
from scrapy_plus.rules.fingerprint import fingerprint
from scrapy_plus.rules.http_cache import Entry
from scrapy_plus.transport.base import Transport

POLICIES = ("dummy", "rfc9111")

if TYPE_CHECKING:
    from scrapy_plus.transport.cache_store import CacheStore

FLAG = "cached"


class CachedTransport(Transport):
    """Answers out of `store`, by `policy`: "rfc9111" as servers allow it, asking again where an answer has grown old;
    "dummy" everything that was ever asked, to work on a spider without its site.

    Entries older than `expiration_seconds` (0: never) are none; answers with a status in `ignored_codes` are not kept.
    With `is_offline` the network is never asked: any entry will do, and NotCached is raised where there is none. A
    retry goes to the network: what was wrong was the stored answer. Meta dont_cache leaves the cache out.
    """

    def __init__(
        self,
        transport: Transport,
        store: CacheStore,
        *,
        policy: str = "dummy",
        expiration_seconds: float = 0.0,
        ignored_codes: Collection[int] = (),
        is_offline: bool = False,
        count: Callable[[str], None] = lambda name: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.network = transport.network and not is_offline
        self.keeps_deadline = transport.keeps_deadline
        self._transport = transport
        self._store = store
        self._is_dummy = policy == "dummy"
        self._expiration_seconds = expiration_seconds
        self._ignored_codes = frozenset(ignored_codes)
        self._is_offline = is_offline
        self._count = count
        self._clock = clock

    def fetch(self, request: Request, **limits: Any) -> Response:
        fields = tuple(request.headers.pairs()) if request.has_headers else ()
        if request.has_meta and request.meta.get("dont_cache"):
            return self._ask(request, limits)
        if not self._is_dummy and rules.is_bypassed(request.method, fields):
            response = self._ask(request, limits)
            if request.method in rules.UNSAFE_METHODS and response.status_code < 400:  # RFC 9111 §4.4
                self._store.delete(_key(request.replace(method="GET", data=None, json=None)))
            return response
        key = _key(request)
        entry = self._known(key, request, fields)
        if entry is not None and self._may_answer(entry, fields):
            self._count("httpcache/hit")
            return _response(entry, request)
        self._count("httpcache/miss" if entry is None else "httpcache/stale")
        if entry is None or self._is_dummy:
            return self._kept(key, fields, self._ask(request, limits))
        return self._revalidated(key, entry, request, fields, limits)

    def _known(self, key: bytes, request: Request, fields: rules.Fields) -> Entry | None:
        if request.retry_time and not self._is_offline:
            return None
        entry = self._store.get(key)
        if entry is None or (self._expiration_seconds and self._clock() - entry.at > self._expiration_seconds):
            return None
        return entry if self._is_dummy or rules.is_match(entry, fields) else None

    def _may_answer(self, entry: Entry, fields: rules.Fields) -> bool:
        return self._is_dummy or self._is_offline or rules.is_fresh(entry, fields, self._clock())

    def _ask(self, request: Request, limits: dict[str, Any]) -> Response:
        if self._is_offline:
            raise NotCached(f"{request!r} is not in the cache, and the network is not asked (HTTPCACHE_IGNORE_MISSING)")
        return self._transport.fetch(request, **limits)

    def _revalidated(
        self, key: bytes, entry: Entry, request: Request, fields: rules.Fields, limits: dict[str, Any]
    ) -> Response:
        """The stored answer if the server says that it still holds, else what it says instead."""
        sent = request.copy()
        for name, value in rules.conditions(entry).items():
            sent.headers[name] = value
        try:
            response = self._ask(sent, limits)
        except DownloadError:
            if not rules.may_stand_in(entry, self._clock()):
                raise
            self._count("httpcache/errorrecovery")
            return _response(entry, request)
        if response.status_code >= 500 and rules.may_stand_in(entry, self._clock()):
            self._count("httpcache/errorrecovery")
            return _response(entry, request)
        if response.status_code != 304 or not rules.conditions(entry):
            self._count("httpcache/invalidate")
            response.request = request
            return self._kept(key, fields, response)
        self._count("httpcache/revalidate")
        entry = rules.renewed(entry, response.headers.pairs(), self._clock())
        self._store.put(key, entry)
        return _response(entry, request)

    def _kept(self, key: bytes, fields: rules.Fields, response: Response) -> Response:
        """The answer, stored if it may be; one that is not whole never is."""
        entry = Entry(
            response.url,
            response.status_code,
            tuple(response.headers.pairs()),
            response.body,
            at=self._clock(),
            ip_address=response.ip_address,
        )
        is_wanted = response.status_code not in self._ignored_codes and not response.flags
        if is_wanted and (self._is_dummy or rules.is_storable(entry)):
            asked = () if self._is_dummy else rules.asked_fields(entry, fields)
            self._store.put(key, replace(entry, asked=asked))
            self._count("httpcache/store")
        elif not self._is_dummy:
            self._store.delete(key)
        return response

    def close(self) -> None:
        self._store.close()
        self._transport.close()


def _key(request: Request) -> bytes:
    """What tells requests apart, and the jars of their cookies: two accounts do not get each other's pages."""
    jar = request.meta.get("cookiejar") if request.has_meta else None
    identity = fingerprint(request)
    return identity if jar is None else hashlib.sha1(identity + repr(jar).encode()).digest()


def _response(entry: Entry, request: Request) -> Response:
    response = Response(entry.url, entry.status, Headers(entry.fields), entry.body, request=request, flags=[FLAG])
    response.ip_address = entry.ip_address
    return response
