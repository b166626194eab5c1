"""Header fields out of the bytes of a head, read when somebody first asks for one."""

from __future__ import annotations

import re

from scrapy_plus.http.headers import Headers
from scrapy_plus.transport.http1 import parse_head

_FIELDS = re.compile(r"^([^:\n]+):([^\n]*)", re.MULTILINE).findall
_Kept = dict[str, tuple[str, list[str]]]


class RawHeaders(Headers):
    """The fields of a head as `parse_head` reads them, once."""

    __slots__ = ("_head", "_read")

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._read: _Kept | None = None

    @property
    def _fields(self) -> _Kept:  # type: ignore[override]
        if self._read is None:
            self._read = _read(self._head)
        return self._read


def _read(head: bytes) -> _Kept:
    if b"\n " in head or b"\n\t" in head:  # a folded line belongs to the one before it
        kept: _Kept = Headers(parse_head(head).fields)._fields
        return kept
    fields: _Kept = {}
    text = head.decode("latin-1")
    for name, value in _FIELDS(text, text.find("\n") + 1):
        name = name.strip()
        key = name.lower()
        if key in fields:
            fields[key][1].append(value.strip(" \t\r"))
        elif name:
            fields[key] = (name, [value.strip(" \t\r")])
    return fields
