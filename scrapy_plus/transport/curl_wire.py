"""Exchanges over libcurl: its connections, TLS, HTTP/2 and proxies, and nothing of what it would do above them.

Redirects, cookies, retries, decoding, proxies of the environment and .netrc stay off: they are decided above every
transport. What libcurl gives is checked by the same rules as what `transport.wire` reads.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

import pycurl
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from scrapy_plus.errors import BadAnswer, BodyTooLarge, BodyTruncated, ConnectionFailed, PrivateAddress
from scrapy_plus.rules.addresses import is_public
from scrapy_plus.transport.curl_exchange import END_OF_HEAD, Exchange, Options
from scrapy_plus.transport.curl_failures import as_download_error, is_garbage
from scrapy_plus.transport.curl_loop import CurlLoop
from scrapy_plus.transport.http1 import frame, parse_head
from scrapy_plus.transport.outgoing import Origin, split
from scrapy_plus.transport.wire import Resolve

_IDLE_EXCHANGES = 256
# An answer that was cut off within its body, by these codes; pycurl has no names for those of HTTP/2 and HTTP/3.
_CUT = frozenset({pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_GOT_NOTHING, 16, 92, 95})
_UPGRADE = re.compile(rb"HTTP/1\.\d 101").match


class Ask(NamedTuple):
    """What to send: `target` at `root` ("http://shop.test"), the fields as `lines_of` makes them, a proxy to go by."""

    root: str
    target: str
    lines: tuple[bytes, ...]
    timeout_seconds: float
    max_bytes: int
    method: str = "GET"
    body: bytes = b""
    proxy: Origin | None = None
    only_public: bool = False

    @property
    def host(self) -> str:
        return split(self.root)[0].shown


class Answer(NamedTuple):
    """What came back: the final head with its lines as they came, the body as it was on the wire."""

    head: bytes
    body: bytes
    flags: list[str]
    ip_address: str | None


class _Lane:
    """Connections that may serve each other's requests, and idle handles."""

    __slots__ = ("idle", "loop", "options")

    def __init__(self, options: Options, max_connections: int) -> None:
        self.options = options
        self.loop = CurlLoop(max_connections=max_connections)
        self.idle: list[Exchange] = []

    def take(self) -> Exchange:
        return self.idle.pop() if self.idle else Exchange(self.options)

    def give_back(self, exchange: Exchange) -> None:
        if len(self.idle) < _IDLE_EXCHANGES and not self.loop.is_closed:
            exchange.clear()
            self.idle.append(exchange)
        else:
            exchange.curl.close()

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
        client_certificate: str | None = None,
        connect_timeout_seconds: float | None = None,
        max_connections: int = 256,
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        trusted = DEFAULT_CA_BUNDLE_PATH if verify_tls is True else verify_tls
        self._options = Options(trusted, client_certificate, connect_timeout_seconds)
        self._max_connections = max_connections
        self._resolve = None if resolve is socket.getaddrinfo else resolve
        self._lanes: dict[bool, _Lane] = {}

    def exchange(self, ask: Ask, *, fail_on_dataloss: bool = True) -> Answer:
        """The answer. Raises DownloadError."""
        # What may connect to public addresses only is never lent a connection of what may connect to all.
        lane = self._lanes.get(ask.only_public) or self._new_lane(ask.only_public)
        exchange = lane.take()
        try:
            self._prepare(exchange, ask, lane.loop.is_dead)
            code, said = lane.loop.perform(exchange.curl)
            if exchange.is_stale:
                exchange.clear()
                self._prepare(exchange, ask, None)
                code, said = lane.loop.perform(exchange.curl)
            head, has_head = exchange.head()
            flags = _judge(exchange, ask, code, said, has_head, fail_on_dataloss) if code or not has_head else []
            flags = flags or _flags(ask, head)
            ip_address = exchange.curl.getinfo(pycurl.PRIMARY_IP) if ask.proxy is None else None
            return Answer(head, exchange.body(), flags, ip_address)
        finally:
            lane.give_back(exchange)

    def _prepare(self, exchange: Exchange, ask: Ask, is_dead: Callable[[int], bool] | None) -> None:
        method, proxy = ask.method, ask.proxy
        target = ask.target
        if proxy is not None and ask.root.startswith("http:") and proxy.scheme in ("http", "https"):
            target = ask.root + target
        exchange.ask(ask.root, target, ask.lines, ask.timeout_seconds, ask.max_bytes)
        if method != "GET" or ask.body:
            exchange.use(method, ask.body, is_dead)
        if proxy is not None:
            user, _, password = proxy.userinfo.partition(":")
            exchange.go_through(proxy, unquote(user), unquote(password))
        elif self._resolve is not None:
            self._look_up(exchange, ask)

    def _new_lane(self, only_public: bool) -> _Lane:
        options = self._options._replace(may_connect=is_public if only_public else None)
        lane = self._lanes[only_public] = _Lane(options, self._max_connections)
        return lane

    def _look_up(self, exchange: Exchange, ask: Ask) -> None:
        assert self._resolve is not None
        origin, _ = split(ask.root)
        try:
            found = self._resolve(origin.host, origin.port, 0, socket.SOCK_STREAM)
        except OSError as error:
            raise as_download_error(pycurl.E_COULDNT_RESOLVE_HOST, error.strerror or "", origin.shown) from error
        exchange.connect_to(origin.host, origin.port, [address[0] for *_, address in found])

    def close(self) -> None:
        """Closes all connections; the next exchange opens new ones."""
        while self._lanes:
            self._lanes.popitem()[1].close()


def _judge(exchange: Exchange, ask: Ask, code: int, said: str, has_head: bool, fail_on_dataloss: bool) -> list[str]:
    """The flags of an answer that came in part, or what its failure is raised as."""
    host = ask.host
    if exchange.is_refused:
        raise PrivateAddress(f"{host}: a public page leads to a private address")
    if exchange.is_too_large or code == pycurl.E_FILESIZE_EXCEEDED:
        raise BodyTooLarge(f"{host}: more than {ask.max_bytes} bytes")
    if exchange.is_resent:
        raise ConnectionFailed(f"{host}: closed without an answer")
    if has_head and code in _CUT and not is_garbage(code, said):
        if fail_on_dataloss:
            raise BodyTruncated(f"{host}: {said or 'closed before the end of the body'}")
        return ["dataloss"]
    if code in (0, pycurl.E_GOT_NOTHING) and exchange.lines_heard:
        if exchange.lines_heard[-1] in END_OF_HEAD and _UPGRADE(exchange.lines_heard[0]):
            raise BadAnswer(f"{host}: status 101, which was not asked for")
        raise ConnectionFailed(f"{host}: closed in the head of the answer")
    errno = int(exchange.curl.getinfo(pycurl.OS_ERRNO))
    raise as_download_error(code, said, host, errno=errno, proxy=ask.proxy.shown if ask.proxy else "")


def _flags(ask: Ask, head: bytes) -> list[str]:
    """Whether the end of the connection was that of the body. Raises BadAnswer for lengths that contradict each other.

    One length and no coding, as almost all answers have, cannot be wrong; libcurl has looked whether it is a number.
    """
    lowered = head.lower()
    if lowered.count(b"\ncontent-length:") == 1 and b"\ntransfer-encoding:" not in lowered:
        return []
    parsed = parse_head(head)
    if parsed.version >= 20:
        return []
    try:
        framing = frame(ask.method, parsed)
    except BadAnswer as error:
        raise BadAnswer(f"{ask.host}: {error}") from None
    return ["partial"] if framing.length is None and not framing.is_chunked else []
