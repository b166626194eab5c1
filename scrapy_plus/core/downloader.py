"""From a request to its answer: the middlewares, the transport, the deadline, the counting."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import gevent

from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import DownloadError, PrivateAddress
from scrapy_plus.http.headers import Headers
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import host_of, site
from scrapy_plus.middlewares.chain import DownloaderChain
from scrapy_plus.rules.addresses import is_guarded, is_private_host, is_public
from scrapy_plus.transport.base import Transport, too_late

UNLIMITED_BYTES = 1 << 62
_NO_META: dict[str, Any] = {}


class Downloader:
    """Fetches through `chain` and `transport`, each fetch within a total deadline and a size limit (0: none).

    What a public page leads to is kept from private addresses, as `block_private` says (`rules.addresses.MODES`).
    A request may set its own: `timeout` or meta download_timeout (seconds), download_maxsize (bytes, 0: no limit),
    download_fail_on_dataloss.
    """

    def __init__(
        self,
        transport: Transport,
        chain: DownloaderChain,
        *,
        stats: Stats,
        timeout_seconds: float = 60.0,
        max_bytes: int = 64 << 20,
        fail_on_dataloss: bool = True,
        block_private: str = "redirect",
    ) -> None:
        self.transport = transport
        self._chain = chain
        self._stats = stats
        self._timeout_seconds = timeout_seconds
        self._max_bytes = max_bytes
        self._fail_on_dataloss = fail_on_dataloss
        self._block_private = block_private
        self._last_fields: object | None = None
        self._last_size = 0

    def get_response(self, request: Request) -> Response | Request:
        """The answer, or the request to make instead (a redirect). Raises DownloadError, RetryStatus, DropRequest, or
        what a middleware raised."""

        def fetch(sent: Request) -> Response:
            response = self._fetch(sent)
            request.from_public = sent.from_public  # a middleware may have sent a copy
            return response

        return self._chain.download(request, fetch)

    def _fetch(self, request: Request) -> Response:
        counts = {"downloader/request_count": 1, _counter("request_method", request.method): 1}
        counts["downloader/request_bytes"] = self._size(request)
        try:
            if is_guarded(self._block_private, from_public=request.from_public):
                self._refuse_private(request)
            response = self._fetch_in_time(request)
            counts["downloader/response_count"] = counts[_counter("response_status", response.status_code)] = 1
            counts["downloader/response_bytes"] = len(response.body)
        except DownloadError as error:
            counts["downloader/exception_count"] = counts[_counter("exception_type", type(error).__name__)] = 1
            raise
        finally:
            self._stats.add(counts)
        response.request = request
        if not request.from_public:
            request.from_public = _is_from_public(request, response)
        return response

    @staticmethod
    def _refuse_private(request: Request) -> None:
        """By what the URL says; a name's address is looked at by the transport, as it connects."""
        place = site(request.url)
        if is_private_host(host_of(place)):
            raise PrivateAddress(f"{place}: a public page leads to a private address")

    def _fetch_in_time(self, request: Request) -> Response:
        meta = request._meta or _NO_META
        seconds = float(request.timeout or meta.get("download_timeout") or self._timeout_seconds)
        max_bytes = int(meta.get("download_maxsize", self._max_bytes)) or UNLIMITED_BYTES
        strict = bool(meta.get("download_fail_on_dataloss", self._fail_on_dataloss))
        fetch = self.transport.fetch
        if self.transport.keeps_deadline:
            return fetch(request, timeout_seconds=seconds, max_bytes=max_bytes, fail_on_dataloss=strict)
        deadline = gevent.Timeout.start_new(seconds)
        try:
            return fetch(request, timeout_seconds=seconds, max_bytes=max_bytes, fail_on_dataloss=strict)
        except gevent.Timeout as timeout:
            if timeout is not deadline:
                raise
            raise too_late(request.url, seconds) from None
        finally:
            deadline.close()

    def _size(self, request: Request) -> int:
        """About what the request takes on the wire: its line, its headers, its body."""
        size = len(request.method) + len(request.url) + 12
        if request.has_headers:
            size += self._size_of_fields(request.headers)
        return size + len(request.body) if request.data or request.json is not None else size

    def _size_of_fields(self, headers: Headers) -> int:
        """Most requests of a crawl have the same headers, which are counted once."""
        fixed = headers.fixed
        if fixed is None or fixed is not self._last_fields:
            self._last_fields = fixed
            self._last_size = sum(len(name) + len(value) + 4 for name, value in headers.pairs())
        return self._last_size

    def close(self) -> None:
        """Closes the connections kept for reuse."""
        self.transport.close()


@lru_cache(maxsize=256)
def _counter(kind: str, of: object) -> str:
    return f"downloader/{kind}_count/{of}"


def _is_from_public(request: Request, response: Response) -> bool:
    """By the address that was connected to, or by what the URL says if that is not known (a proxy)."""
    if response.ip_address is not None:
        return is_public(response.ip_address)
    return not is_private_host(host_of(site(request.url)))
