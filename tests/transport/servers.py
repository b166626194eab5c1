"""Servers on loopback that say byte for byte what a test wants; they run on gevent, beside the client."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
from gevent.server import StreamServer

Script = Callable[["Conversation"], None]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Conversation:
    """One connection, seen from the server."""

    def __init__(self, sock: Any, server: Server) -> None:
        self.socket = sock
        self.server = server
        self._buffer = b""

    def hear(self) -> bytes:
        """The next request, head and body; empty if the client has closed."""
        while b"\r\n\r\n" not in self._buffer:
            if not self._receive():
                return b""
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        while len(rest) < length:
            assert self._receive(), "the client closed within its body"
            rest = self._buffer.partition(b"\r\n\r\n")[2]
        self._buffer = rest[length:]
        request = head + b"\r\n\r\n" + rest[:length]
        self.server.requests.append(request)
        return request

    def _receive(self) -> bool:
        piece = self.socket.recv(65536)
        self._buffer += piece
        return bool(piece)

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def answer(self, body: bytes = b"", *headers: bytes, status: bytes = b"200 OK") -> None:
        """A right answer that keeps the connection."""
        lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
        self.say(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """Ends the connection with a RST instead of a FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def wait_for_end(self, seconds: float = 10.0) -> bool:
        """Whether the client closes, or resets, within that time."""
        with gevent.Timeout(seconds, False):
            try:
                while self.socket.recv(65536):
                    pass
            except OSError:
                pass
            return True
        return False


class Server:
    """Runs `script` for every connection. `requests` holds what was heard, `connections` how often somebody came."""

    def __init__(self, script: Script, *, address: str = "127.0.0.1", **options: Any) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended_by_client = 0
        self._script = script
        self._server = StreamServer((address, 0), self._converse, **options)
        self._server.start()
        self.port = self._server.server_port
        self.url = f"{'https' if {'certfile', 'ssl_context'} & options.keys() else 'http'}://127.0.0.1:{self.port}/"

    def _converse(self, sock: Any, address: Any) -> None:
        self.connections += 1
        with contextlib.suppress(OSError):
            self._script(Conversation(sock, self))
        with contextlib.suppress(OSError):
            sock.close()

    def stop(self) -> None:
        self._server.stop(timeout=0)


@contextlib.contextmanager
def serving(script: Script, **options: Any) -> Iterator[Server]:
    server = Server(script, **options)
    try:
        yield server
    finally:
        server.stop()


def saying(*pieces: bytes) -> Script:
    """Hears one request, says `pieces` and closes."""

    def script(conversation: Conversation) -> None:
        conversation.hear()
        conversation.say(*pieces)

    return script


def hear_and_reset(*pieces: bytes) -> Script:
    def script(conversation: Conversation) -> None:
        conversation.hear()
        conversation.say(*pieces)
        gevent.sleep(0.02)
        conversation.reset()

    return script


def answering(body: bytes = b"", *headers: bytes, status: bytes = b"200 OK") -> Script:
    """Answers every request on a connection alike."""

    def script(conversation: Conversation) -> None:
        while conversation.hear():
            conversation.answer(body, *headers, status=status)

    return script


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [*command.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True, timeout=60
    )
    return cert, key
