"""Reading an HTTP/1 answer off a socket: heads, lines and bodies, each with its limit."""

from __future__ import annotations

import re
from typing import Any

import gevent

from scrapy_plus.errors import BadAnswer, BodyTooLarge, BodyTruncated, ConnectionFailed
from scrapy_plus.transport.http1 import Frame, chunk_size

MAX_HEAD_BYTES = 256 * 1024
MAX_LINE_BYTES = 16 * 1024
RECEIVE_BYTES = 64 * 1024
# What a fast server sends is there before it is asked for, so reading it never waits, and without waiting no other
# greenlet has its turn, nor has the deadline.
TURN_BYTES = 512 * 1024
# Not 0: gevent goes through 50 such sleeps before it looks at timers and sockets.
TURN_SECONDS = 1e-6
SCRAP_BYTES = 1024
_EMPTY_LINE = re.compile(rb"\n\r?\n").search


class Silence(ConnectionFailed):
    """The connection ended before a byte of an answer."""


class Reader:
    """What a socket receives, by heads, lines and pieces. One buffer a connection: a fresh large one for every receive
    makes malloc map and trim memory each time, half of all that a page costs here."""

    __slots__ = ("_at", "_buffer", "_socket", "_space", "_turn_bytes", "_view")

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._space = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._space)
        self._buffer = b""
        self._at = 0  # what is before was read; cutting it off for each of 10,000 small chunks would copy gigabytes
        self._turn_bytes = 0

    @property
    def is_empty(self) -> bool:
        return self._at >= len(self._buffer)

    def receive(self) -> bool:
        """Waits for more bytes; False if the other side has closed."""
        count = self._socket.recv_into(self._space)
        rest, self._at = self._buffer[self._at :], 0
        self._buffer = rest + self._view[:count] if rest else bytes(self._view[:count])
        self._turn_bytes += count
        if self._turn_bytes >= TURN_BYTES:
            self._turn_bytes = 0
            gevent.sleep(TURN_SECONDS)
        return bool(count)

    def head(self, limit_bytes: int) -> bytes:
        """The bytes up to an empty line. Raises Silence, ConnectionFailed or BadAnswer."""
        searched = 0
        self._buffer, self._at = self._buffer[self._at :], 0
        while True:
            buffer = self._buffer
            if not buffer.startswith(b"HTTP/") and not b"HTTP/".startswith(buffer):
                raise BadAnswer(f"no HTTP but {buffer[:40]!r}")
            if end := _EMPTY_LINE(buffer, searched):
                self._buffer = buffer[end.end() :]
                return buffer[: end.start()]
            if len(buffer) > limit_bytes:
                raise BadAnswer(f"a head of more than {limit_bytes} bytes")
            searched = max(0, len(buffer) - 3)
            self._receive_head()

    def _receive_head(self) -> None:
        is_silent = not self._buffer
        try:
            if self.receive():
                return
        except ConnectionError as error:
            if not is_silent:
                raise ConnectionFailed(f"{error.strerror or error} in the head of the answer") from error
            raise Silence(f"{error.strerror or error} before an answer") from error
        raise Silence("closed without an answer") if is_silent else ConnectionFailed("closed in the head of the answer")

    def line(self) -> bytes | None:
        """The bytes through the next line feed; None if the other side has closed before it. Raises BadAnswer."""
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            if len(self._buffer) - self._at > MAX_LINE_BYTES:
                raise BadAnswer(f"a line of more than {MAX_LINE_BYTES} bytes within the body")
            if not self.receive():
                return None
        line, self._at = self._buffer[self._at : end + 1], end + 1
        return line

    def piece(self, limit_bytes: int) -> bytes:
        """At least one byte and at most `limit_bytes`; none if the other side has closed."""
        if self.is_empty:
            self.receive()
        piece = self._buffer[self._at : self._at + limit_bytes]
        self._at += len(piece)
        return piece


class Body:
    """The pieces of a body as they come, never more than `max_bytes` of them."""

    __slots__ = ("max_bytes", "pieces", "size")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.pieces: list[bytes | bytearray] = []
        self.size = 0

    def read(self, reader: Reader, frame: Frame) -> None:
        """Reads it whole. Raises BodyTruncated, BodyTooLarge, BadAnswer, TimeoutError; the pieces stay."""
        try:
            if frame.is_chunked:
                self._read_chunks(reader)
            elif frame.length is None:
                while self._take(reader, self.max_bytes + 1):
                    pass
            else:
                self._read_exactly(reader, frame.length)
        except TimeoutError:
            raise
        except OSError as error:
            raise BodyTruncated(f"{error.strerror or error} before the end of the body") from error

    def _take(self, reader: Reader, limit_bytes: int) -> int:
        piece = reader.piece(limit_bytes)
        self.size += len(piece)
        if self.size > self.max_bytes:
            raise BodyTooLarge(f"more than {self.max_bytes} bytes")
        self._keep(piece)
        return len(piece)

    def _keep(self, piece: bytes) -> None:
        """Scraps are put together: as objects of their own they would take 20 times their size."""
        if len(piece) >= SCRAP_BYTES or not self.pieces:
            self.pieces.append(piece)
            return
        if type(self.pieces[-1]) is not bytearray:
            self.pieces.append(bytearray())
        self.pieces[-1] += piece

    def _read_exactly(self, reader: Reader, length: int) -> None:
        if self.size + length > self.max_bytes:
            raise BodyTooLarge(f"{self.size + length} bytes announced, over {self.max_bytes}")
        end = self.size + length
        while self.size < end:
            if not self._take(reader, end - self.size):
                raise BodyTruncated("closed before the end of the body")

    def _read_chunks(self, reader: Reader) -> None:
        while True:
            line = reader.line()
            if line is None:
                raise BodyTruncated("closed before the last chunk of the body")
            size = chunk_size(line)
            if size == 0:
                return self._skip_trailers(reader)
            self._read_exactly(reader, size)
            if (ending := reader.line()) not in (b"\r\n", b"\n", None):
                raise BadAnswer(f"a chunk longer than it said: {ending[:40]!r}")

    @staticmethod
    def _skip_trailers(reader: Reader) -> None:
        """The body is complete at its last chunk (RFC 9112 §8), whatever becomes of the trailers."""
        budget = MAX_HEAD_BYTES
        while (line := reader.line()) not in (b"\r\n", b"\n", None):
            budget -= len(line)
            if budget < 0:
                raise BadAnswer(f"trailers of more than {MAX_HEAD_BYTES} bytes")
