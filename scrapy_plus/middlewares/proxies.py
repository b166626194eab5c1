"""Proxies: one, or a pool in turn, in which those that fail rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scrapy_plus.errors import ConnectionFailed, DownloadTimeout, NameNotFound, TlsFailed
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response

PROXY_AUTHENTICATION_REQUIRED = 407


@dataclass(slots=True)
class Proxy:
    """A proxy and its health: how often it failed since it last worked, and until when it rests."""

    url: str
    failures: int = 0
    rests_until: float = 0.0


class Pool:
    """Proxies in turn. One that fails rests, twice as long each time it fails again; when all rest, the one that is
    up first is taken. The clock is an argument."""

    def __init__(self, urls: Sequence[str], *, rest_seconds: float = 5.0, rest_limit_seconds: float = 600.0) -> None:
        self.proxies = [Proxy(url) for url in dict.fromkeys(urls)]
        self._by_url = {proxy.url: proxy for proxy in self.proxies}
        self._rest_seconds = rest_seconds
        self._rest_limit_seconds = rest_limit_seconds
        self._next = 0

    def take(self, now: float) -> str:
        for step in range(len(self.proxies)):
            index = (self._next + step) % len(self.proxies)
            if self.proxies[index].rests_until <= now:
                self._next = index + 1
                return self.proxies[index].url
        return min(self.proxies, key=lambda proxy: proxy.rests_until).url

    def failed(self, url: str, now: float) -> None:
        proxy = self._by_url[url]
        proxy.failures += 1
        rest = min(self._rest_limit_seconds, self._rest_seconds * 2.0 ** min(proxy.failures - 1, 30))
        proxy.rests_until = max(proxy.rests_until, now + rest)

    def worked(self, url: str) -> None:
        proxy = self._by_url[url]
        proxy.failures, proxy.rests_until = 0, 0.0


class Proxies:
    """Sends requests through the proxies of `pool`, but for those that say themselves which (`proxy`, meta proxy), or
    none (meta proxy None).

    The proxy is put on a copy: neither a redirect nor a stored request carries its password. What fails through it is
    its failure, but for what lies behind it (a name that does not resolve, a certificate).
    """

    def __init__(self, pool: Pool, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.pool = pool
        self._clock = clock
        self._used: dict[int, str] = {}

    def process_request(self, request: Request) -> Request | None:
        if request.proxy or (request.has_meta and "proxy" in request.meta):
            return None
        sent = request.copy()
        sent.proxy = self._used[id(request)] = self.pool.take(self._clock())
        return sent

    def process_response(self, request: Request, response: Response) -> Response:
        used = self._used.pop(id(request), None)
        if used is not None and "cached" not in response.flags:
            if response.status_code == PROXY_AUTHENTICATION_REQUIRED:
                self.pool.failed(used, self._clock())
            else:
                self.pool.worked(used)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        used = self._used.pop(id(request), None)
        is_its_own = isinstance(exception, ConnectionFailed | DownloadTimeout)
        if used is not None and is_its_own and not isinstance(exception, NameNotFound | TlsFailed):
            self.pool.failed(used, self._clock())
