"""The transport on libcurl, by way of `curl_wire`: from a Request to its lines, from an answer to its Response."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import gevent

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.rules.addresses import is_guarded
from scrapy_plus.transport.base import Resolve, Transport, Unsendable, too_late
from scrapy_plus.transport.curl_exchange import Special
from scrapy_plus.transport.curl_failures import TooStrict
from scrapy_plus.transport.curl_wire import CurlWire, status_of
from scrapy_plus.transport.outgoing import (
    IDEMPOTENT,
    Origin,
    body_of,
    fields_of,
    lines_of,
    parse_proxy,
    proxy_of,
    split,
)
from scrapy_plus.transport.raw_headers import RawHeaders

if TYPE_CHECKING:
    from scrapy_plus.transport.requests_session import RequestsTransport

_KNOWN_FIELDS = 1024
_KNOWN_ROOTS = 4096
_NOWHERE = Origin("http", "", 80, "", "", None)


class CurlTransport(Transport):
    """Fetches through libcurl.

    `verify_tls` may name a file of certificates to trust instead of those of `certifi`; `client_certificate` is a PEM
    file with a certificate and its key. `max_connections` are kept in all. `block_private` is one of
    `rules.addresses.MODES`; `resolve` stands for `socket.getaddrinfo`.
    """

    keeps_deadline = True

    def __init__(
        self,
        *,
        verify_tls: bool | str = True,
        client_certificate: str | None = None,
        connect_timeout_seconds: float | None = None,
        max_connections: int = 256,
        block_private: str = "off",
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        self._second: RequestsTransport | None = None
        self._options: dict[str, Any] = {
            "verify_tls": verify_tls,
            "client_certificate": client_certificate,
            "connect_timeout_seconds": connect_timeout_seconds,
            "resolve": resolve,
        }
        self._wire = CurlWire(**self._options, max_connections=max_connections)
        self._block_private = block_private
        self._known_lines: dict[Any, tuple[bytes, ...]] = {}
        self._plain_roots: set[str] = set()
        self._last_fields: object | None = None
        self._last_lines: tuple[bytes, ...] = ()

    def fetch(
        self, request: Request, *, timeout_seconds: float, max_bytes: int, fail_on_dataloss: bool = True
    ) -> Response:
        url = request.full_url
        at = url.find("/", 8)
        root, target, special = url[:at], url[at:], None
        is_plain = request.method == "GET" and not request.data and request.json is None and not proxy_of(request)
        if is_plain and root in self._plain_roots:
            lines = self._plain_lines(request)
        else:
            root, target, lines, special = self._look_closely(request, url)
        if " " in target or not target.isprintable():
            raise Unsendable("a line break, NUL or space where the request line or a header cannot have one")
        mode = self._block_private
        only_public = mode != "off" and is_guarded(mode, from_public=request.from_public)
        try:
            head, body, flags, ip_address = self._wire.exchange(
                root, target, lines, timeout_seconds, max_bytes, special, only_public, fail_on_dataloss
            )
        except TooStrict:
            if request.method not in IDEMPOTENT:
                raise
            with gevent.Timeout(timeout_seconds, too_late(request.url, timeout_seconds)):
                return self._lenient().fetch(
                    request, timeout_seconds=timeout_seconds, max_bytes=max_bytes, fail_on_dataloss=fail_on_dataloss
                )
        response = Response(url, status_of(head), None, body, request=request, flags=flags)
        response.headers = RawHeaders(head)
        response.ip_address = ip_address
        return response

    def _look_closely(self, request: Request, url: str) -> tuple[str, str, tuple[bytes, ...], Special | None]:
        """Root, target and lines of any request, and what is special about it."""
        origin, target = split(url)
        root = f"{origin.scheme}://{origin.shown}"
        proxy = proxy_of(request)
        through = parse_proxy(proxy) if proxy else None
        body = body_of(request)
        lines = lines_of(fields_of(request, origin, body), origin.shown)
        if request.method != "GET" or body or through is not None:
            return root, target, lines, Special(request.method, body, through)
        if url.startswith(f"{root}/"):  # nothing in it is left out, as a password would be
            if len(self._plain_roots) >= _KNOWN_ROOTS:
                self._plain_roots.clear()
            self._plain_roots.add(root)
        return root, target, lines, None

    def _plain_lines(self, request: Request) -> tuple[bytes, ...]:
        """The lines of a GET's head; most requests of a crawl have the same."""
        fixed = request.headers.fixed if request.has_headers else None
        if fixed is not None and fixed is self._last_fields:
            return self._last_lines
        lines = self._lines_by_fields(request)
        self._last_fields, self._last_lines = fixed, lines
        return lines

    def _lines_by_fields(self, request: Request) -> tuple[bytes, ...]:
        key = tuple(request.headers.pairs()) if request.has_headers else ()
        lines = self._known_lines.get(key)
        if lines is None:
            if len(self._known_lines) >= _KNOWN_FIELDS:
                self._known_lines.clear()
            lines = self._known_lines[key] = lines_of(fields_of(request, _NOWHERE, b""), "")
        return lines

    def _lenient(self) -> RequestsTransport:
        """For the few servers whose heads have lines that are none: other clients pass them over, libcurl does not."""
        if self._second is None:
            from scrapy_plus.transport.requests_session import RequestsTransport  # most crawls need none

            self._second = RequestsTransport(**self._options, block_private=self._block_private)
        return self._second

    def close(self) -> None:
        self._wire.close()
        if self._second is not None:
            self._second.close()
