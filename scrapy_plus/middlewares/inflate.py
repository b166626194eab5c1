"""Compressed bodies undone, pure and bounded: a kilobyte on the wire may mean to be gigabytes."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any

from scrapy_plus.errors import BodyCorrupt, BodyTooLarge


def _if_installed(*names: str) -> Any:
    """The first of these modules that is there, or None: they come with the extra `compression`."""
    for name in names:
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


brotli = _if_installed("brotli", "brotlicffi")
zstandard = _if_installed("zstandard")

Decoder = Callable[[bytes, int], Iterator[bytes]]
PIECE_BYTES = 256 * 1024
GZIP, ZLIB, RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
# A block of zstd makes 128 KB of as little as 4 bytes; so few of them at a time keep an overrun small.
_ZSTD_FEED_BYTES = 512
_ZSTD_WINDOW_BYTES = 128 << 20


class _Broken(Exception):
    """The stream ends early or is none; what came before stands."""


def inflate(
    body: bytes, codings: Sequence[str], max_bytes: int, *, keep_partial: bool = False
) -> tuple[bytes, list[str], bool]:
    """The body with `codings` (as in Content-Encoding, in the order they were applied) undone, those that are left
    because they are unknown (browsers ignore them as well), and whether the stream was whole.

    A stream that is cut or corrupt is BodyCorrupt, or kept as far as it went with `keep_partial`; BodyTooLarge comes
    before more than `max_bytes` (and one piece) were made.
    """
    left = [coding for coding in codings if coding not in ("", "identity")]
    is_whole = True
    while left and left[-1] in DECODERS:
        coding = left.pop()
        pieces: list[bytes] = []
        try:
            _collect(DECODERS[coding](body, max_bytes), max_bytes, pieces)
        except _Broken as broken:
            if not keep_partial:
                raise BodyCorrupt(f"the body is no whole {coding} stream: {broken}") from None
            is_whole = False
        body = b"".join(pieces)
    return body, left, is_whole


def _collect(stream: Iterator[bytes], max_bytes: int, pieces: list[bytes]) -> None:
    size = 0
    for piece in stream:
        size += len(piece)
        if size > max_bytes:
            raise BodyTooLarge(f"inflates to more than {max_bytes} bytes")
        pieces.append(piece)


def gunzip(data: bytes, max_bytes: int) -> Iterator[bytes]:
    """All members of a gzip stream; garbage after the first whole one is ignored, as browsers and gzip itself do."""
    members = 0
    while data:
        try:
            data = yield from _zlib(data, GZIP, max_bytes)
        except _Broken:
            if members and not data.startswith(b"\x1f\x8b"):
                return
            raise
        members += 1


def undeflate(data: bytes, max_bytes: int) -> Iterator[bytes]:
    """A zlib stream, as "deflate" is defined (RFC 9110 §8.4.1.2), or a raw one, as some servers understand it."""
    try:
        zlib.decompressobj(ZLIB).decompress(data[:256], 1)
        window = ZLIB
    except zlib.error:
        window = RAW
    yield from _zlib(data, window, max_bytes)


def _zlib(data: bytes, window: int, max_bytes: int) -> Generator[bytes, None, bytes]:
    """Yields the pieces of one stream and returns what follows it."""
    stream = zlib.decompressobj(window)
    piece_bytes = min(PIECE_BYTES, max_bytes + 1)
    while not stream.eof:
        try:
            piece = stream.decompress(data, piece_bytes)
        except zlib.error as error:
            raise _Broken(str(error)) from None
        if piece:
            yield piece
        elif not stream.eof and not stream.unconsumed_tail:
            raise _Broken("it is cut")
        data = stream.unconsumed_tail
    return stream.unused_data  # noqa: B901  the caller takes it with `yield from`


def unbrotli(data: bytes, max_bytes: int) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    try:
        piece = stream.process(data, output_buffer_limit=PIECE_BYTES)
        yield piece
        while not stream.is_finished():
            if stream.can_accept_more_data() and not piece:
                raise _Broken("it is cut")
            piece = stream.process(b"", output_buffer_limit=PIECE_BYTES)
            yield piece
    except brotli.error as error:
        raise _Broken(str(error) or "it is corrupt") from None


def unzstd(data: bytes, max_bytes: int) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    try:
        while data:
            stream = decompressor.decompressobj()
            at = 0
            while at < len(data) and not stream.eof:
                yield stream.decompress(data[at : at + _ZSTD_FEED_BYTES])
                at += _ZSTD_FEED_BYTES
            if not stream.eof:
                raise _Broken("it is cut")
            data = stream.unused_data + data[at:]
    except zstandard.ZstdError as error:
        raise _Broken(str(error)) from None


DECODERS: dict[str, Decoder] = {"gzip": gunzip, "x-gzip": gunzip, "deflate": undeflate, "x-deflate": undeflate}
if brotli is not None and hasattr(brotli.Decompressor, "can_accept_more_data"):  # 1.2 and later can be bounded
    DECODERS["br"] = unbrotli
if zstandard is not None:
    DECODERS["zstd"] = unzstd
ACCEPTED = ", ".join(coding for coding in ("gzip", "deflate", "br", "zstd") if coding in DECODERS)
"""What is asked for in Accept-Encoding: what can be undone here."""
