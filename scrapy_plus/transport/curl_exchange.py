"""One exchange over libcurl: a handle, what was set on it, and what it heard.

Handles are used again and again, and an option is set only where it differs from the last time: setting five costs as
much as parsing a head. What only few requests need is cleared by a reset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pycurl

from scrapy_plus.transport.outgoing import IDEMPOTENT, Origin
from scrapy_plus.transport.reading import SCRAP_BYTES

_BODY_EXPECTED = frozenset({"POST", "PUT", "PATCH"})
_SUPPRESS_CONNECT_HEADERS = 265  # pycurl has no name for it
_URL, _REQUEST_TARGET = pycurl.URL, pycurl.REQUEST_TARGET
_RECEIVE_BYTES = 64 * 1024
_END_OF_HEAD = (b"\r\n", b"\n")
_SOCKS = {"socks5": "socks5h", "socks4": "socks4a"}


class Special(NamedTuple):
    """What a request has that a plain GET has not."""

    method: str = "GET"
    body: bytes = b""
    proxy: Origin | None = None


class Options(NamedTuple):
    """What all exchanges of a transport have in common."""

    verify_tls: bool | str
    client_certificate: str | tuple[str, str] | None
    connect_timeout_seconds: float | None
    may_connect: Callable[[str], bool] | None = None


class Exchange:
    """A handle of libcurl. `ask` it, let a loop perform it, then look at `head`, `body` and the rest."""

    __slots__ = (
        "_is_dead",
        "_is_plain",
        "_lines",
        "max_bytes",
        "_options",
        "_root",
        "_sends",
        "_setopt",
        "_size",
        "curl",
        "is_refused",
        "is_resent",
        "is_stale",
        "is_too_large",
        "lines_heard",
        "pieces",
        "timeout_seconds",
    )

    def __init__(self, options: Options) -> None:
        self.curl = pycurl.Curl()
        self._setopt = self.curl.setopt
        self.lines_heard: list[bytes] = []
        self._options = options
        self.pieces: list[Any] = []  # bytes, the first always; scraps are put together in a bytearray
        self._set_up()

    def _set_up(self) -> None:
        """The state between plain requests: no signals, no environment, no protocol but HTTP, nothing by itself."""
        self._is_plain = True
        self._lines: Any = None
        self.max_bytes = -1
        self.timeout_seconds = -1.0
        self._sends = 0
        self._size = 0
        self._root = ""
        self._is_dead: Callable[[int], bool] | None = None
        self.is_too_large = self.is_resent = self.is_refused = self.is_stale = False
        options, setopt = self._options, self.curl.setopt
        setopt(pycurl.NOSIGNAL, 1)
        setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        setopt(pycurl.PATH_AS_IS, 1)
        setopt(pycurl.PROXY, "")
        setopt(pycurl.NOPROXY, "")
        setopt(pycurl.USERAGENT, "")
        setopt(pycurl.BUFFERSIZE, _RECEIVE_BYTES)
        setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        setopt(pycurl.HEADERFUNCTION, self.lines_heard.append)
        setopt(pycurl.WRITEFUNCTION, self._hear)
        if options.connect_timeout_seconds:
            setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(options.connect_timeout_seconds))
        if isinstance(options.verify_tls, str):
            setopt(pycurl.CAINFO, options.verify_tls)
            setopt(pycurl.PROXY_CAINFO, options.verify_tls)
        elif not options.verify_tls:
            for option in (pycurl.SSL_VERIFYPEER, pycurl.SSL_VERIFYHOST):
                setopt(option, 0)
            for option in (pycurl.PROXY_SSL_VERIFYPEER, pycurl.PROXY_SSL_VERIFYHOST):
                setopt(option, 0)
        if options.client_certificate:
            given = options.client_certificate
            cert, key = (given, given) if isinstance(given, str) else given
            setopt(pycurl.SSLCERT, cert)
            setopt(pycurl.SSLKEY, key)
        if options.may_connect is not None:
            setopt(pycurl.OPENSOCKETFUNCTION, self._open)

    # -- before --------------------------------------------------------------------------------------------------------

    def ask(self, root: str, target: str, lines: tuple[bytes, ...], timeout_seconds: float, max_bytes: int) -> None:
        """A GET of `target` at `root` ("http://shop.test"), directly; other methods and ways are set after this.

        The target is given apart: out of a URL libcurl would write %2f as %2F, which some servers take for another.
        """
        setopt = self._setopt
        if root != self._root:
            setopt(_URL, root)
            self._root = root
        setopt(_REQUEST_TARGET, target)
        if lines is not self._lines:
            setopt(pycurl.HTTPHEADER, lines)
            self._lines = lines
        if timeout_seconds != self.timeout_seconds:
            setopt(pycurl.TIMEOUT_MS, _milliseconds(timeout_seconds))
            self.timeout_seconds = timeout_seconds
        if max_bytes != self.max_bytes:
            setopt(pycurl.MAXFILESIZE_LARGE, max_bytes)
            self.max_bytes = max_bytes

    def use(self, method: str, body: bytes, is_dead: Callable[[int], bool] | None) -> None:
        """Another method than GET, or a body. `is_dead` says of a local port whether its idle connection has ended;
        without it a new connection is made."""
        self._is_plain = False
        setopt = self.curl.setopt
        if body or method in _BODY_EXPECTED:
            setopt(pycurl.POST, 1)
            setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
            setopt(pycurl.POSTFIELDS, body)
        if method == "HEAD":
            setopt(pycurl.NOBODY, 1)
            setopt(pycurl.MAXFILESIZE_LARGE, 0)  # no limit: the length is that of a body which does not come
        elif method not in ("GET", "POST") or (body and method != "POST"):
            setopt(pycurl.CUSTOMREQUEST, method)
        if method not in IDEMPOTENT:
            # libcurl sends again what a kept connection broke under; an order must not be sent twice.
            self._is_dead = is_dead
            setopt(pycurl.PREREQFUNCTION, self._may_send)
            setopt(pycurl.FRESH_CONNECT, is_dead is None)

    def go_through(self, proxy: Origin, user: str, password: str) -> None:
        """By way of a proxy. The name is always looked up by the proxy: looked up here, it would tell a resolver what
        the proxy is to hide."""
        self._is_plain = False
        setopt = self.curl.setopt
        host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
        setopt(pycurl.PROXY, f"{_SOCKS.get(proxy.scheme, proxy.scheme)}://{host}:{proxy.port}")
        setopt(pycurl.PROXYHEADER, ["Proxy-Connection:"])
        if user or password:
            setopt(pycurl.PROXYUSERNAME, user)
            setopt(pycurl.PROXYPASSWORD, password)

    def connect_to(self, host: str, port: int, addresses: list[str]) -> None:
        """Instead of looking the name up."""
        self._is_plain = False
        shown = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
        self.curl.setopt(pycurl.RESOLVE, [f"-{host}:{port}", f"+{host}:{port}:{shown}"])

    # -- meanwhile, called by libcurl ----------------------------------------------------------------------------------

    def _hear(self, piece: bytes) -> int | None:
        self._size += len(piece)
        if self._size > self.max_bytes:
            self.is_too_large, self._is_plain = True, False
            return -1
        pieces = self.pieces
        if pieces and len(piece) < SCRAP_BYTES:  # as objects of their own scraps would take 20 times their size
            if type(pieces[-1]) is not bytearray:
                pieces.append(bytearray())
            pieces[-1] += piece
        else:
            pieces.append(piece)
        return None

    def _may_send(self, address: str, own_address: str, port: int, own_port: int) -> int:
        """Called when a connection is there, before anything is sent."""
        self._sends += 1
        self.is_resent = self._sends > 1
        self.is_stale = not self.is_resent and self._is_dead is not None and self._is_dead(own_port)
        return int(pycurl.PREREQFUNC_ABORT if self.is_resent or self.is_stale else pycurl.PREREQFUNC_OK)

    def _open(self, purpose: int, address: Any) -> Any:
        """The socket to connect with; by the very address that is connected to it is decided whether it may be."""
        family, kind, protocol, place = address
        assert self._options.may_connect is not None
        if self._options.may_connect(place[0]):
            import socket

            return socket.socket(family, kind, protocol)
        self.is_refused, self._is_plain = True, False
        return pycurl.SOCKET_BAD

    def clear(self) -> None:
        """Ready for another request."""
        self.lines_heard.clear()
        self.pieces.clear()
        self._size = 0
        if not self._is_plain:
            self.curl.reset()
            self._set_up()


def final_head(lines: list[bytes]) -> tuple[bytes, bool]:
    """The head of the final answer, and whether it came whole; interim answers and trailers are left out."""
    start = 0
    for at, line in enumerate(lines):
        if line not in _END_OF_HEAD:
            continue
        if lines[start].find(b" 1", 6, 10) < 0:
            return b"".join(lines[start : at + 1]), True
        start = at + 1
    return b"".join(lines[start:]), False


def _milliseconds(seconds: float) -> int:
    """At least one: none would be no limit. At most what a long of libcurl's holds on every system."""
    return min(max(1, int(seconds * 1000)), 2**31 - 1)
