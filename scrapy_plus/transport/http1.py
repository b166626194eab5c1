"""The head of an HTTP/1 answer: from bytes to status, fields and the framing of the body. Pure; sockets are elsewhere.

Why not `http.client` and its e-mail parser: a header line there also ends at U+0085, a byte that UTF-8 text in a raw
Location often has, so that the rest of the head is lost; the first of two lengths wins; 103 counts as the answer; and
it costs more than all else that happens to a page on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from scrapy_plus.errors import BadAnswer

Fields = list[tuple[str, str]]
BODILESS = frozenset({204, 304})

_STATUS_LINE = re.compile(rb"HTTP/(\d)(?:\.(\d))?[ \t]+(\d{3})(?:[ \t][^\n]*)?").fullmatch
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?").fullmatch


class Head(NamedTuple):
    """Status line and fields of an answer; `version` is 10 for HTTP/1.0, 11 for HTTP/1.1."""

    version: int
    status: int
    fields: Fields


class Frame(NamedTuple):
    """Where the body ends: after `length` bytes, at its last chunk, or (length None) with the connection."""

    length: int | None
    is_chunked: bool
    keeps_alive: bool


def parse_head(head: bytes) -> Head:
    """The head without its closing empty line. Raises BadAnswer if its first line is no status line.

    Lines without a colon are left out, as browsers do. Source: RFC 9112 §4, §5 (folded lines are joined).
    """
    first, _, rest = head.partition(b"\n")
    found = _STATUS_LINE(first.rstrip(b"\r"))
    if found is None or found[3] < b"100":
        raise BadAnswer(f"no status line but {first[:60]!r}")
    fields: Fields = []
    for line in rest.decode("latin-1").split("\n"):
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t"):
            if fields:
                fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}".strip())
        elif colon and (name := name.strip()):
            fields.append((name, value.strip(" \t\r")))
    return Head(10 * int(found[1]) + int(found[2] or 0), int(found[3]), fields)


def frame(method: str, head: Head) -> Frame:
    """How the body of this answer is framed. Raises BadAnswer for lengths that contradict each other or are none.

    Source: RFC 9112 §6.3. A length beside chunks is ignored, and the connection is not used again (request smuggling).
    """
    lengths, codings, options = _framing_fields(head.fields)
    keeps_alive = "close" not in options and (head.version >= 11 or "keep-alive" in options)
    if method == "HEAD" or head.status in BODILESS:
        return Frame(0, False, keeps_alive)
    if codings:
        if codings != ["chunked"]:
            raise BadAnswer(f"Transfer-Encoding {', '.join(codings)!r}, which was not asked for")
        return Frame(None, True, keeps_alive and not lengths)
    if lengths:
        return Frame(_length(lengths), False, keeps_alive)
    return Frame(None, False, False)


def _framing_fields(fields: Fields) -> tuple[list[str], list[str], list[str]]:
    lengths: list[str] = []
    codings: list[str] = []
    options: list[str] = []
    for name, value in fields:
        key = name.lower()
        if key == "content-length":
            lengths += [length.strip() for length in value.split(",")]
        elif key == "transfer-encoding":
            codings += [coding for coding in _tokens(value) if coding != "identity"]
        elif key == "connection":
            options += _tokens(value)
    return lengths, codings, options


def _tokens(value: str) -> list[str]:
    return [token for token in (part.strip().lower() for part in value.split(",")) if token]


def _length(lengths: Iterable[str]) -> int:
    distinct = set(lengths)
    length = distinct.pop()
    if distinct or not (length.isascii() and length.isdecimal() and len(length) < 19):
        raise BadAnswer(f"Content-Length {', '.join(sorted({length, *distinct}))[:60]!r}")
    return int(length)


def chunk_size(line: bytes) -> int:
    """The size that a chunk's first line gives. Raises BadAnswer for what is none."""
    found = _CHUNK_SIZE(line.rstrip(b"\r\n"))
    if found is None:
        raise BadAnswer(f"no chunk size but {line[:40]!r}")
    return int(found[1], 16)
