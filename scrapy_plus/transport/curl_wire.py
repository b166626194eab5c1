"""Exchanges over libcurl: its connections, TLS, HTTP/2 and proxies, and nothing of what it would do above them.

Redirects, cookies, retries, decoding, proxies of the environment and .netrc stay off: they are decided above every
transport. What libcurl gives is checked by the same rules as what `transport.wire` reads.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from urllib.parse import unquote

import certifi
import pycurl

from scrapy_plus.errors import BadAnswer, BodyTooLarge, BodyTruncated, ConnectionFailed, PrivateAddress
from scrapy_plus.rules.addresses import is_public
from scrapy_plus.transport.base import Resolve, too_late
from scrapy_plus.transport.curl_exchange import Exchange, Options, Special, final_head
from scrapy_plus.transport.curl_failures import as_download_error, is_garbage
from scrapy_plus.transport.curl_loop import CurlLoop
from scrapy_plus.transport.http1 import BODILESS, frame, parse_head
from scrapy_plus.transport.outgoing import split

_IDLE_EXCHANGES = 256
# An answer that was cut off within its body, by these codes; pycurl has no names for those of HTTP/2 and HTTP/3.
_CUT = frozenset({pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_GOT_NOTHING, 16, 92, 95})
_PRIMARY_IP = pycurl.PRIMARY_IP
_UPGRADE = re.compile(rb"HTTP/1\.\d 101").match


Answer = tuple[bytes, bytes, list[str], "str | None"]
"""The final head with its lines as they came, the body as it was on the wire, its flags, the address of the site."""


class _Lane:
    """Connections that may serve each other's requests, and idle handles."""

    __slots__ = ("idle", "loop", "options")

    def __init__(self, options: Options, max_connections: int) -> None:
        self.options = options
        self.loop = CurlLoop(max_connections=max_connections)
        self.idle: list[Exchange] = []

    def close(self) -> None:
        while self.idle:
            self.idle.pop().curl.close()
        self.loop.close()


class CurlWire:
    """Exchanges over libcurl, each in the greenlet that asks. `resolve` stands for `socket.getaddrinfo`."""

    def __init__(
        self,
        *,
        verify_tls: bool | str = True,
        client_certificate: str | tuple[str, str] | None = None,
        connect_timeout_seconds: float | None = None,
        max_connections: int = 256,
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        trusted = certifi.where() if verify_tls is True else verify_tls
        self._options = Options(trusted, client_certificate, connect_timeout_seconds)
        self._max_connections = max_connections
        self._resolve = None if resolve is socket.getaddrinfo else resolve
        self._lanes: dict[bool, _Lane] = {}

    def exchange(
        self,
        root: str,
        target: str,
        lines: tuple[bytes, ...],
        timeout_seconds: float,
        max_bytes: int,
        special: Special | None = None,
        only_public: bool = False,
        fail_on_dataloss: bool = True,
    ) -> Answer:
        """Asks for `target` at `root` ("http://shop.test"), the fields as `outgoing.lines_of` makes them. Raises
        DownloadError. A proxy may be anywhere, hence `only_public` says nothing of a request that goes by one.
        """
        proxy = special.proxy if special is not None else None
        # What may connect to public addresses only is never lent a connection of what may connect to all.
        guarded = only_public and proxy is None
        lane = self._lanes.get(guarded) or self._new_lane(guarded)
        exchange = lane.idle.pop() if lane.idle else Exchange(lane.options)
        try:
            exchange.ask(root, target, lines, timeout_seconds, max_bytes)
            if special is not None or self._resolve is not None:
                self._prepare(exchange, root, target, special or Special(), lane.loop.is_dead)
            code, said = lane.loop.perform(exchange.curl)
            if exchange.is_stale:
                exchange.clear()
                exchange.ask(root, target, lines, timeout_seconds, max_bytes)
                self._prepare(exchange, root, target, special or Special(), None)
                code, said = lane.loop.perform(exchange.curl)
            head = b"".join(exchange.lines_heard)
            flags: list[str] = []
            if code or not _is_simple(head):
                head, flags = _look_closely(exchange, root, special or Special(), code, said, fail_on_dataloss)
            pieces = exchange.pieces
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            return head, body, flags, exchange.curl.getinfo(_PRIMARY_IP) if proxy is None else None
        finally:
            exchange.clear()
            lane.idle.append(exchange)
            if len(lane.idle) > _IDLE_EXCHANGES or lane.loop.is_closed:
                lane.idle.pop().curl.close()

    def _prepare(
        self, exchange: Exchange, root: str, target: str, special: Special, is_dead: Callable[[int], bool] | None
    ) -> None:
        method, body, proxy = special
        if method != "GET" or body:
            exchange.use(method, body, is_dead)
        if proxy is not None:
            user, _, password = proxy.userinfo.partition(":")
            exchange.go_through(proxy, unquote(user), unquote(password))
            if root.startswith("http:") and proxy.scheme in ("http", "https"):
                exchange.curl.setopt(pycurl.REQUEST_TARGET, root + target)
        elif self._resolve is not None:
            self._look_up(exchange, root)

    def _new_lane(self, only_public: bool) -> _Lane:
        options = self._options._replace(may_connect=is_public if only_public else None)
        lane = self._lanes[only_public] = _Lane(options, self._max_connections)
        return lane

    def _look_up(self, exchange: Exchange, root: str) -> None:
        assert self._resolve is not None
        origin, _ = split(root)
        try:
            found = self._resolve(origin.host, origin.port, 0, socket.SOCK_STREAM)
        except OSError as error:
            raise as_download_error(pycurl.E_COULDNT_RESOLVE_HOST, error.strerror or "", origin.shown) from error
        exchange.connect_to(origin.host, origin.port, [address[0] for *_, address in found])

    def close(self) -> None:
        """Closes all connections; the next exchange opens new ones."""
        while self._lanes:
            self._lanes.popitem()[1].close()


def status_of(head: bytes) -> int:
    at = head.index(b" ") + 1
    return int(head[at : at + 3])


def _is_simple(head: bytes) -> bool:
    """Whether this is one whole head of a final answer whose framing cannot be wrong: one length, which libcurl has
    looked at, and no coding. Almost all are."""
    lowered = head.lower()
    return (
        lowered.count(b"\ncontent-length:") == 1
        and head.find(b"\r\n\r\n") + 4 == len(head)
        and head.find(b" 1", 6, 10) < 0  # of "HTTP/1.1 103", "HTTP/2 103"
        and b"\ntransfer-encoding:" not in lowered
    )


def _look_closely(
    exchange: Exchange, root: str, special: Special, code: int, said: str, fail_on_dataloss: bool
) -> tuple[bytes, list[str]]:
    """The head of the final answer, and the flags of its body. Raises DownloadError."""
    head, has_head = final_head(exchange.lines_heard)
    host = split(root)[0].shown
    if not code and has_head:
        return head, _framing_flags(special.method, head, host)
    if exchange.is_refused:
        raise PrivateAddress(f"{host}: a public page leads to a private address")
    if has_head and code == pycurl.E_FILESIZE_EXCEEDED and parse_head(head).status in BODILESS:
        return head, []  # the length of a body that does not come
    if exchange.is_too_large or code == pycurl.E_FILESIZE_EXCEEDED:
        raise BodyTooLarge(f"{host}: more than {exchange.max_bytes} bytes")
    if exchange.is_resent:
        raise ConnectionFailed(f"{host}: closed without an answer")
    if has_head and code in _CUT and not is_garbage(code, said):
        if fail_on_dataloss:
            raise BodyTruncated(f"{host}: {said or 'closed before the end of the body'}")
        return head, ["dataloss"]
    if exchange.lines_heard and code in (0, pycurl.E_GOT_NOTHING):
        if _UPGRADE(exchange.lines_heard[0]) and exchange.lines_heard[-1] == b"\r\n":
            raise BadAnswer(f"{host}: status 101, which was not asked for")
        raise ConnectionFailed(f"{host}: closed in the head of the answer")
    if code == pycurl.E_OPERATION_TIMEDOUT and said.startswith("Operation"):  # it would tell of bytes: no two alike
        raise too_late(root, exchange.timeout_seconds)
    errno = int(exchange.curl.getinfo(pycurl.OS_ERRNO))
    raise as_download_error(code, said, host, errno=errno, proxy=special.proxy.shown if special.proxy else "")


def _framing_flags(method: str, head: bytes, host: str) -> list[str]:
    """Whether the end of the connection was that of the body. Raises BadAnswer for lengths that contradict."""
    parsed = parse_head(head)
    if parsed.version >= 20:
        return []
    try:
        framing = frame(method, parsed)
    except BadAnswer as error:
        raise BadAnswer(f"{host}: {error}") from None
    return ["partial"] if framing.length is None and not framing.is_chunked else []
