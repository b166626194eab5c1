"""A TCP proxy before Redis that breaks connections at the worst moments.

`arm` says how the next request breaks: "request" (it never arrives), "half" (half of it does), "answer" (it is carried
out, and nobody hears of it). The client cannot tell the three apart.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import gevent
from gevent import socket
from gevent.server import StreamServer

WAYS = ("request", "half", "answer")
READ_BYTES = 65536
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 1.0
LEAST_BYTES = 100
"""Shorter requests are greetings and questions; the others are scripts, which change something."""


class Proxy:
    """Listens on a port of its own and leads to `port`."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.cuts: dict[str, int] = dict.fromkeys(WAYS, 0)
        self._armed: deque[str] = deque()
        self._open: set[Any] = set()
        self._mute: set[Any] = set()
        self._server = StreamServer(("127.0.0.1", 0), self._serve)

    def start(self) -> int:
        """Answers the port."""
        self._server.start()
        return int(self._server.server_port)

    def stop(self) -> None:
        self._server.stop(timeout=0)
        self.cut_all()

    def arm(self, way: str) -> None:
        """The next script that anybody sends is broken in this way."""
        self._armed.append(way)

    @property
    def armed(self) -> int:
        return len(self._armed)

    def lead_to(self, port: int) -> None:
        """Every connection is cut, and new ones lead to `port`: what a failover looks like."""
        self.target = port
        self.cut_all()

    def cut_all(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self, client: Any, address: object) -> None:
        server = None
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=CONNECT_SECONDS)
            server.settimeout(None)
            self._open.update((client, server))
            back = gevent.spawn(self._carry_back, server, client)
            self._carry(client, server, back)
            back.kill()
        except OSError:
            pass  # Redis is away, or either side was killed: to the other it is a connection that ends
        finally:
            self._open.difference_update((client, server))
            self._mute.discard(server)
            for connection in (client, server):
                if connection is not None:
                    connection.close()

    def _carry(self, client: Any, server: Any, back: gevent.Greenlet) -> None:
        while data := client.recv(READ_BYTES):
            if self._armed and len(data) >= LEAST_BYTES:
                self._cut(self._armed.popleft(), data, server, back)
                return
            server.sendall(data)

    def _cut(self, way: str, data: bytes, server: Any, back: gevent.Greenlet) -> None:
        self.cuts[way] += 1
        if way == "half":
            server.sendall(data[: len(data) // 2])
        elif way == "answer":
            self._mute.add(server)
            server.sendall(data)
            back.join(ANSWER_SECONDS)

    def _carry_back(self, server: Any, client: Any) -> None:
        with suppress(OSError):
            while data := server.recv(READ_BYTES):
                if server in self._mute:
                    return
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
