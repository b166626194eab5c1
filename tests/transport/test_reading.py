"""Bodies as they come off a socket that has always more to give."""

from __future__ import annotations

import sys

import gevent
import pytest

from scrapy_plus.transport.http1 import Frame
from scrapy_plus.transport.reading import RECEIVE_BYTES, Body, Reader


class Flood:
    """A socket whose peer is so fast that nobody ever waits for it; it ends after `receives` buffers."""

    def __init__(self, chunk: bytes, receives: int) -> None:
        self._data = (chunk * (RECEIVE_BYTES // len(chunk) + 1))[: RECEIVE_BYTES // len(chunk) * len(chunk)]
        self._left = receives

    def recv_into(self, space: bytearray) -> int:
        if not self._left:
            return 0
        self._left -= 1
        space[: len(self._data)] = self._data
        return len(self._data)


CHUNKED = Frame(length=None, is_chunked=True, keeps_alive=False)


def test_a_body_that_never_waits_does_not_outlive_its_deadline():
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.01):
        Body(1 << 62).read(Reader(Flood(b"1\r\nx\r\n", 200)), CHUNKED)


def test_a_body_in_scraps_takes_about_its_size():
    scraps = Body(1 << 62)
    with pytest.raises(Exception, match="closed before the last chunk"):
        scraps.read(Reader(Flood(b"2\r\nxy\r\n", 20)), CHUNKED)
    assert b"".join(scraps.pieces) == b"xy" * (scraps.size // 2)
    assert scraps.size > 100_000
    assert sum(map(sys.getsizeof, scraps.pieces)) < 2 * scraps.size
