"""HTTP/1.1 over the connections of urllib3: it opens, tunnels, encrypts and pools them; what is said on them is here.

An exchange is one head and body out, one head back; the body is read by whoever wants it. Whatever interrupts either, a
killed greenlet too, closes the connection: only one whose answer was read whole goes back to its pool.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from queue import Empty
from typing import Any

from gevent import monkey
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NameResolutionError, NewConnectionError, ProxyError

from scrapy_plus.errors import BadAnswer, BodyTruncated, PrivateAddress
from scrapy_plus.rules.addresses import is_public
from scrapy_plus.transport.base import Resolve
from scrapy_plus.transport.http1 import Frame, Head, frame, parse_head
from scrapy_plus.transport.outgoing import IDEMPOTENT
from scrapy_plus.transport.reading import MAX_HEAD_BYTES, Body, Reader, Silence

# The patched poll() enters the hub, 30 us a call; with a timeout of 0 the system's own never blocks.
_poll: Callable[[], Any] | None = monkey.get_original("select", "poll") if hasattr(select, "poll") else None


class Answer:
    """A head that came, on a connection that has yet to give the body; `read` it or `close` it."""

    __slots__ = ("_connection", "_pool", "fields", "frame", "ip_address", "status")

    def __init__(self, head: Head, frame: Frame, connection: Any, pool: Any) -> None:
        self.status = head.status
        self.fields = head.fields
        self.frame = frame
        self.ip_address: str | None = connection.ip_address
        self._connection = connection
        self._pool = pool

    def read(self, max_bytes: int, *, fail_on_dataloss: bool = True) -> tuple[bytes, list[str]]:
        """The body as it was on the wire, and its flags; the connection goes back to its pool, or is closed."""
        body = Body(max_bytes)
        flags = ["partial"] if self.frame.length is None and not self.frame.is_chunked else []
        is_whole = False
        try:
            body.read(self._connection.reader, self.frame)
            is_whole = True
        except BodyTruncated:
            if fail_on_dataloss:
                raise
            flags = ["dataloss"]
        finally:
            self._settle(is_whole)
        return bytes(body.pieces[0]) if len(body.pieces) == 1 else b"".join(body.pieces), flags

    def _settle(self, is_whole: bool) -> None:
        # Bytes after the end of the body (a 204 with one, say) would be read as the next answer.
        if is_whole and self.frame.keeps_alive and self._connection.reader.is_empty:
            self._pool._put_conn(self._connection)
        else:
            self._connection.close()


class _Connection:
    """Beside urllib3's connection classes: the reader of the open socket, and whose it is if it is the site's own."""

    _reader: Reader | None = None
    ip_address: str | None = None
    only_public = False
    resolve: Resolve = staticmethod(socket.getaddrinfo)

    @property
    def reader(self) -> Reader:
        if self._reader is None:
            self._reader = Reader(self.sock)  # type: ignore[attr-defined]
        return self._reader

    @property
    def is_connected(self) -> bool:
        """Nothing may be readable on an idle connection: it would be its end, or an answer that nobody asked for."""
        if self.sock is None:  # type: ignore[attr-defined]
            return False
        if _poll is None:
            return bool(super().is_connected)  # type: ignore[misc]
        poll = _poll()
        poll.register(self.sock, select.POLLIN)  # type: ignore[attr-defined]
        return not poll.poll(0)

    def close(self) -> None:
        self._reader = None
        super().close()  # type: ignore[misc]


class _Idle:
    """What urllib3 asks of the queue in which a pool keeps its connections. Its own is one for threads, with locks."""

    def __init__(self, maxsize: int) -> None:
        self._maxsize = maxsize
        self._connections: list[Any] = []

    def put(self, connection: Any, block: bool = True, timeout: float | None = None) -> None:
        if connection is not None:
            if len(self._connections) < self._maxsize:
                self._connections.append(connection)
            else:
                connection.close()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._connections:
            raise Empty
        return self._connections.pop()

    def qsize(self) -> int:
        return len(self._connections)


class _Pool:
    """Beside urllib3's pools: the exchange."""

    QueueCls: Any = _Idle
    connect_timeout_seconds: float | None = None
    resolve: Resolve = staticmethod(socket.getaddrinfo)

    def exchange(
        self,
        method: str,
        head: bytes,
        body: bytes,
        *,
        timeout_seconds: float,
        proxy: str = "",
        tunnel: bool = False,
        only_public: bool = False,
    ) -> Answer:
        """Sends a request and reads the head of its answer.

        A request that may be repeated, whose kept connection ends before a byte of an answer, is sent once more on a
        new one: the server had closed the old one while it was idle. Raises DownloadError, OSError, urllib3's errors.
        """
        connection = self._get_conn()  # type: ignore[attr-defined]
        if only_public and connection.ip_address is not None and not is_public(connection.ip_address):
            connection.close()  # kept by a request that may go there
        connection.only_public = only_public
        was_kept = not connection.is_closed
        try:
            return self._try(connection, method, head, body, timeout_seconds, proxy, tunnel)
        except Silence:
            if not was_kept or method not in IDEMPOTENT:
                raise
        connection = self._new_conn()  # type: ignore[attr-defined]
        connection.only_public = only_public
        return self._try(connection, method, head, body, timeout_seconds, proxy, tunnel)

    def _try(
        self, connection: Any, method: str, head: bytes, body: bytes, timeout_seconds: float, proxy: str, tunnel: bool
    ) -> Answer:
        try:
            connection.timeout = min(timeout_seconds, self.connect_timeout_seconds or timeout_seconds)
            if connection.is_closed:
                self._connect(connection, proxy, tunnel)
            connection.sock.settimeout(timeout_seconds)
            try:
                connection.sock.sendall(head + body if body else head)
            except TimeoutError:
                raise
            except OSError:
                pass  # an early answer (413, say) may be there to be read; if not, reading says what happened
            answer = self._final_head(connection.reader)
            return Answer(answer, frame(method, answer), connection, self)
        except BaseException:
            connection.close()
            raise

    def _connect(self, connection: Any, proxy: str, tunnel: bool) -> None:
        connection.resolve = self.resolve
        try:
            if tunnel:
                self._prepare_proxy(connection)  # type: ignore[attr-defined]
            else:
                connection.connect()
            if proxy:
                connection.ip_address = None  # that of the proxy
        except Exception as error:
            if proxy:
                raise ProxyError(f"the proxy {proxy}", error) from error
            raise

    @staticmethod
    def _final_head(reader: Reader) -> Head:
        """Interim answers (100, 102, 103) are skipped, within the one budget for all heads."""
        budget = MAX_HEAD_BYTES
        while True:
            raw = reader.head(budget)
            head = parse_head(raw)
            if head.status >= 200:
                return head
            budget -= len(raw)
            if head.status == 101 or budget < 0:
                raise BadAnswer(f"status {head.status}, which was not asked for")


class _Direct(_Connection):
    """Connects by itself, so that the address that was looked at is the one that is connected to."""

    def _new_conn(self) -> socket.socket:
        failure: OSError | None = None
        try:
            found = self.resolve(self._dns_host, self.port, 0, socket.SOCK_STREAM)  # type: ignore[attr-defined]
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error  # type: ignore[attr-defined, arg-type]
        allowed = [one for one in found if not self.only_public or is_public(str(one[4][0]))]
        if found and not allowed:
            raise PrivateAddress("a public page leads to a private address")
        for family, kind, protocol, _, address in allowed:
            try:
                return self._open(family, kind, protocol, address)
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            raise failure
        message = f"Failed to establish a new connection: {failure}"
        raise NewConnectionError(self, message) from failure  # type: ignore[arg-type]

    def _open(self, family: int, kind: int, protocol: int, address: Any) -> socket.socket:
        opened = socket.socket(family, kind, protocol)
        try:
            for option in self.socket_options or ():  # type: ignore[attr-defined]
                opened.setsockopt(*option)
            opened.settimeout(self.timeout)  # type: ignore[attr-defined]
            opened.connect(address)
        except BaseException:
            opened.close()
            raise
        self.ip_address = str(address[0])
        return opened


class PlainConnection(_Direct, HTTPConnection):
    pass


class TlsConnection(_Direct, HTTPSConnection):
    pass


class PlainPool(_Pool, HTTPConnectionPool):
    ConnectionCls = PlainConnection


class TlsPool(_Pool, HTTPSConnectionPool):
    ConnectionCls = TlsConnection


POOLS = {"http": PlainPool, "https": TlsPool}


def socks_pools() -> dict[str, Any]:
    """The same over a SOCKS proxy. Raises ImportError without PySocks."""
    from urllib3.contrib import socks

    class PlainSocksConnection(_Connection, socks.SOCKSConnection):
        pass

    class TlsSocksConnection(_Connection, socks.SOCKSHTTPSConnection):
        pass

    class PlainSocksPool(_Pool, socks.SOCKSHTTPConnectionPool):
        ConnectionCls = PlainSocksConnection

    class TlsSocksPool(_Pool, socks.SOCKSHTTPSConnectionPool):
        ConnectionCls = TlsSocksConnection

    return {"http": PlainSocksPool, "https": TlsSocksPool}
