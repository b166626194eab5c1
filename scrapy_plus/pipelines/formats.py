"""The file formats of feeds: how items become bytes, and where a file that was left in mid-write goes on."""

from __future__ import annotations

import csv
import io
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, NamedTuple

from scrapy_plus.conf.options import FORMATS
from scrapy_plus.errors import UsageError
from scrapy_plus.item import as_dict
from scrapy_plus.pipelines.plain import to_cell, to_json

log = logging.getLogger(__name__)

_BLOCK_BYTES = 64 * 1024
_BOM = "\ufeff".encode()
Fields = Sequence[str] | Mapping[str, str] | None


class Resume(NamedTuple):
    """Where a file goes on: what is behind `offset` is cut, `glue` put there; `is_empty`: no item is before it."""

    offset: int
    is_empty: bool
    glue: bytes = b""


class Format(ABC):
    """A file is head + items + tail; the next items overwrite the tail, so that the file is whole at any time."""

    head: bytes = b""
    tail: bytes = b""

    def __init__(self, *, fields: Fields = None, encoding: str = "utf-8", csv_safe: bool = True) -> None:
        self._encoding = encoding
        self._csv_safe = csv_safe
        self._names = dict(fields) if isinstance(fields, Mapping) else {name: name for name in fields or ()}

    @abstractmethod
    def encode(self, items: Sequence[Any], *, is_empty: bool) -> bytes:
        """The items as bytes; `is_empty` says that they are the first of the file."""

    @abstractmethod
    def resume(self, file: BinaryIO) -> Resume:
        """Where to go on in a file that has something in it. Raises UsageError if it is no such file."""

    def _chosen(self, item: Any) -> dict[str, Any]:
        """The item's fields, or those asked for, in that order and under the names asked for."""
        fields = as_dict(item)
        if not self._names:
            return fields
        return {shown: fields[name] for name, shown in self._names.items() if name in fields}

    def _line(self, item: Any) -> bytes:
        # A lone surrogate, which no encoding has, becomes its JSON escape this way.
        return to_json(self._chosen(item)).encode(self._encoding, "backslashreplace")

    def _is_item(self, line: bytes) -> bool:
        try:
            return isinstance(json.loads(line.decode(self._encoding)), dict)
        except ValueError:
            return False


class JsonLines(Format):
    """One JSON object a line."""

    def encode(self, items: Sequence[Any], *, is_empty: bool) -> bytes:
        return b"".join(self._line(item) + b"\n" for item in items)

    def resume(self, file: BinaryIO) -> Resume:
        size = file.seek(0, io.SEEK_END)
        start, line = _last_line(file, size)
        if self._is_item(line):  # whole, but for the newline that an editor left out
            return Resume(size, False, b"\n")
        return Resume(start, start == 0)


class JsonArray(Format):
    """One JSON array, an object a line in it."""

    head = b"["
    tail = b"\n]\n"

    def encode(self, items: Sequence[Any], *, is_empty: bool) -> bytes:
        return (b"\n" if is_empty else b",\n") + b",\n".join(map(self._line, items))

    def resume(self, file: BinaryIO) -> Resume:
        end = file.seek(0, io.SEEK_END)
        # Behind the last item stand the tail, a part of it, or what a write that was cut off had put over it.
        for _ in range(2):
            end = _strip(file, end, b" \t\r\n],")
            start, line = _last_line(file, end)
            if end == 0:
                return Resume(0, True)
            if start == 0 and line.lstrip(_BOM) == b"[":
                return Resume(end, True)
            if self._is_item(line):
                return Resume(end, False)
            end = start
        raise UsageError(f"cannot append to {file.name!r}: no JSON array with one item a line; overwrite it instead")


class Csv(Format):
    """Comma-separated values (RFC 4180) below a line of field names: those asked for, else the first item's."""

    def __init__(self, *, fields: Fields = None, encoding: str = "utf-8", csv_safe: bool = True) -> None:
        super().__init__(fields=fields, encoding=encoding, csv_safe=csv_safe)
        self._is_chosen = bool(fields)  # then somebody meant to leave the others out
        self._unknown: set[str] = set()

    def encode(self, items: Sequence[Any], *, is_empty: bool) -> bytes:
        if not self._names:
            self._names = {name: name for name in as_dict(items[0])}
        rows = [[to_cell(name, safe=self._csv_safe) for name in self._names.values()]] if is_empty else []
        rows += [self._row(as_dict(item)) for item in items]
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows(rows)
        return text.getvalue().encode(self._encoding, "replace")

    def _row(self, fields: dict[str, Any]) -> list[str]:
        unknown = fields.keys() - self._names.keys() - self._unknown
        if unknown and not self._is_chosen:
            self._unknown |= unknown
            log.warning("not in the CSV header, left out: %s; name all fields in FEED_EXPORT_FIELDS", sorted(unknown))
        return [to_cell(fields.get(name), safe=self._csv_safe) for name in self._names]

    def resume(self, file: BinaryIO) -> Resume:
        read = whole = quotes = 0
        header = b""
        file.seek(0)
        for line in file:
            read += len(line)
            quotes += line.count(b'"')
            if not whole:
                header += line
            if line.endswith(b"\n") and quotes % 2 == 0:  # a line break inside quotes ends no record
                whole = read
        if whole:
            self._go_on_below(header.decode(self._encoding, "replace"), file.name)
        return Resume(whole, whole == 0)

    def _go_on_below(self, header: str, path: str) -> None:
        [columns] = csv.reader(io.StringIO(header.lstrip("\ufeff"), newline=""))
        if self._names and columns != list(self._names.values()):
            log.warning("%r goes on with the header it has: %s", path, ", ".join(columns))
        asked = {shown: name for name, shown in self._names.items()}
        self._names = {asked.get(column, column): column for column in columns}


_CLASSES: dict[str, type[Format]] = {"jsonl": JsonLines, "json": JsonArray, "csv": Csv}


def format_of(path: str, name: str | None = None) -> type[Format]:
    """The format by its name, else by the path's extension; jsonl on stdout ("-"). Raises UsageError."""
    name = name or ("jsonl" if path == "-" else PurePath(path).suffix.removeprefix("."))
    if name.lower() not in FORMATS:
        raise UsageError(f"{path!r}: no format {name!r} for items; known are {', '.join(FORMATS)}")
    return _CLASSES[FORMATS[name.lower()]]


def _strip(file: BinaryIO, end: int, unwanted: bytes) -> int:
    """The offset behind the last byte before `end` that is not unwanted."""
    while end:
        start = max(0, end - _BLOCK_BYTES)
        kept = _read(file, start, end).rstrip(unwanted)
        if kept:
            return start + len(kept)
        end = start
    return 0


def _last_line(file: BinaryIO, end: int) -> tuple[int, bytes]:
    """Where the line that ends at `end` starts, and the line."""
    start = end
    parts: list[bytes] = []
    while start:
        block_start = max(0, start - _BLOCK_BYTES)
        block = _read(file, block_start, start)
        newline = block.rfind(b"\n")
        parts.insert(0, block[newline + 1 :])
        start = block_start + newline + 1
        if newline >= 0:
            break
    return start, b"".join(parts)


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)
