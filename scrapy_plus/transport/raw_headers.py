"""Header fields out of the bytes of a head, read when somebody first asks for one."""

from __future__ import annotations

import re
from typing import Any

from scrapy_plus.http.headers import Headers
from scrapy_plus.transport.http1 import parse_head

_FIELDS = re.compile(r"^([^:\n]+):([^\n]*)", re.MULTILINE).findall
_PLAIN = b"\r\n" + bytes(range(0x20, 0x7F))
_NAME = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_Kept = dict[str, tuple[str, list[str]]]


class RawHeaders(Headers):
    """The fields of a head as `parse_head` reads them. All are read when more than one value is asked for."""

    __slots__ = ("_head", "_lowered", "_read")

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._lowered: bytes | None = None
        self._read: _Kept | None = None

    @property
    def _fields(self) -> _Kept:  # type: ignore[override]
        if self._read is None:
            self._read = _read(self._head)
        return self._read

    def get(self, name: str, default: Any = None) -> Any:
        """The one value of a field out of the bytes, which is all that is ever asked of most answers."""
        if self._lowered is None:
            if self._read is None and _is_odd(self._head):
                _ = self._fields
            self._lowered = self._head.lower()
        if self._read is not None or type(name) is not str or not _NAME(name):
            return super().get(name, default)
        key = f"\n{name.lower()}:".encode("ascii")
        at = self._lowered.find(key)
        if at < 0:
            return default
        start = at + len(key)
        if self._lowered.find(key, start) >= 0:
            return super().get(name, default)
        return self._head[start : self._head.find(b"\n", start)].strip(b" \t\r").decode("ascii")


def _is_odd(head: bytes) -> bool:
    """Whether there are folded lines, blanks before a colon, or bytes that Python may take for blanks."""
    return b"\n " in head or b" :" in head or bool(head.translate(None, _PLAIN))


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
