"""The transport contract: one request out, one answer back, as it was on the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy_plus.errors import DownloadError, DownloadTimeout
from scrapy_plus.http.url import site

if TYPE_CHECKING:
    from scrapy_plus.http.request import Request
    from scrapy_plus.http.response import Response


Resolve = Callable[..., Any]
"""`socket.getaddrinfo`, or what a test gives in its place."""


class Unsendable(DownloadError):
    """The request itself cannot be put on the wire: a line break in a header, a proxy that is no URL."""

    permanent = True


def too_late(url: str, seconds: float) -> DownloadTimeout:
    """The failure of a fetch that was not done in time."""
    return DownloadTimeout(f"{site(url)}: no whole answer within {seconds:g} s")


class Transport(ABC):
    """Fetches what it is told, and nothing else: redirects, cookies, retries and decoding are above every transport.

    `network` says whether it opens sockets; then the gevent patch must have come before `ssl` was imported. One that
    `keeps_deadline` ends by itself, with DownloadTimeout, what takes longer than `timeout_seconds` in all.
    """

    network: bool = True
    keeps_deadline: bool = False

    @abstractmethod
    def fetch(
        self, request: Request, *, timeout_seconds: float, max_bytes: int, fail_on_dataloss: bool = True
    ) -> Response:
        """The answer, its body still compressed. Raises subclasses of DownloadError only.

        `timeout_seconds` bounds each wait for the network, or all of them together (`keeps_deadline`). The caller's
        own `gevent.Timeout` may pass through at any wait and must leave no socket behind. A body over `max_bytes`
        is BodyTooLarge before it is read whole. A body that ends early is BodyTruncated; without `fail_on_dataloss`
        it is given as far as it came, flagged "dataloss". The flag "partial" marks a body that only the end of the
        connection ended: nobody can tell whether more was meant to come. `ip_address` is the one that was connected to,
        unless it was a proxy's. A transport that opens sockets keeps requests from private addresses as it was told, by
        the very address that it connects to (PrivateAddress).
        """

    def close(self) -> None:
        """Closes the connections kept for reuse."""
        return None


def curl_is_missing() -> str:
    """Why the transport on libcurl cannot be had, or nothing if it can."""
    try:
        import pycurl
    except ImportError as error:
        return f"pycurl is not installed ({error})"
    if not pycurl.version_info()[4] & pycurl.VERSION_ASYNCHDNS:
        return "this libcurl looks names up while everything else waits"
    if not hasattr(pycurl, "PREREQFUNCTION"):
        return f"this pycurl is too old ({pycurl.version})"
    return ""
