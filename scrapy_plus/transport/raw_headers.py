"""Header fields out of the bytes of a head, read when somebody first asks for one."""

from __future__ import annotations

import re
from functools import lru_cache
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
        self._lowered = b""
        self._read: _Kept | None = None
        self._is_shared = False

    @property
    def _fields(self) -> _Kept:
        if self._read is None:
            self._read = _read(self._head)
        return self._read

    @_fields.setter
    def _fields(self, fields: _Kept) -> None:
        self._read = fields

    def get(self, name: str, default: Any = None) -> Any:
        """The one value of a field out of the bytes, which is all that is ever asked of most answers."""
        key = self._key(name)
        if key is None:
            return super().get(name, default)
        lowered = self._lowered
        at = lowered.find(key)
        if at < 0:
            return default
        start = at + len(key)
        if lowered.find(key, start) >= 0:
            return super().get(name, default)
        return self._head[start : self._head.find(b"\n", start)].strip(b" \t\r").decode("ascii")

    def __contains__(self, name: object) -> bool:
        key = self._key(name)
        return super().__contains__(name) if key is None else key in self._lowered

    def _key(self, name: object) -> bytes | None:
        """What a field of this name begins with in `_lowered`; None if the fields have to be read."""
        if self._read is not None or type(name) is not str:
            return None
        key = _key_of(name)
        if key is not None and not self._lowered:
            if _is_odd(self._head):
                _ = self._fields
                return None
            self._lowered = self._head.lower()
        return key


@lru_cache(maxsize=256)
def _key_of(name: str) -> bytes | None:
    return f"\n{name.lower()}:".encode("ascii") if _NAME(name) else None


def _is_odd(head: bytes) -> bool:
    """Whether there are folded lines, blanks before a colon, or bytes that Python may take for blanks."""
    if b"\n " in head or b" :" in head or head.count(b"\r") != head.count(b"\r\n"):
        return True
    return bool(head.translate(None, _PLAIN))


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
