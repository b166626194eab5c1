"""What is remembered of a file that is written from stored items: how far, and by what it is known again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

TAIL_BYTES = 1024


class Progress(NamedTuple):
    """How far one crawl's items are in the file: the store's cursor, and how many were written."""

    cursor: str = ""
    written: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A file up to `size`, known by the hash of the `tail_bytes` before it, with what it holds of which crawl."""

    size: int = 0
    tail_bytes: int = 0
    tail_hash: str = ""
    crawls: Mapping[str, Progress] = field(default_factory=dict)

    @classmethod
    def after(cls, data: bytes, size: int, crawls: Mapping[str, Progress]) -> Position:
        """Where a file will stand whose last bytes before `size` are `data`."""
        tail = data[-TAIL_BYTES:]
        return cls(size, len(tail), _hash(tail), crawls)

    @classmethod
    def at(cls, path: str, size: int, crawls: Mapping[str, Progress]) -> Position:
        """Where a file stands that is there."""
        with open(path, "rb") as file:
            return cls.after(_read(file, max(0, size - TAIL_BYTES), size), size, crawls)

    def fits(self, file: BinaryIO) -> bool:
        """Whether the file begins as it did, or at least looks so from here."""
        tail = _read(file, self.size - self.tail_bytes, self.size)
        return len(tail) == self.tail_bytes and _hash(tail) == self.tail_hash


class Notes:
    """The notes of one file: where it stands (`at`), and where it will after the write that is under way (`then`)."""

    def __init__(self, folder: Path, place: str) -> None:
        real = os.path.realpath(place)
        self._path = folder / f"{os.path.basename(real)[:80]}-{hashlib.sha1(real.encode()).hexdigest()[:12]}.json"
        self._place = real

    def read(self) -> tuple[Position, Position | None] | None:
        """None if nothing was noted. Raises ValueError if what was noted cannot be read."""
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        try:
            return _position(found["at"]), _position(found["then"]) if found["then"] else None
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self._path} holds no notes") from error

    def write(self, at: Position, then: Position | None = None) -> None:
        """Notes in one step. They are not forced onto the disk, no more than the file is: it is processes that die."""
        text = json.dumps({"file": self._place, "at": asdict(at), "then": then and asdict(then)})
        new = self._path.with_suffix(".new")
        try:
            new.write_text(text, "utf-8")
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(text, "utf-8")
        os.replace(new, self._path)

    def crawls(self) -> set[str]:
        """The crawls that were noted."""
        with contextlib.suppress(ValueError):
            if noted := self.read():
                return set(noted[0].crawls)
        return set()


def _position(found: Mapping[str, Any]) -> Position:
    crawls = {crawl: Progress(*progress) for crawl, progress in found["crawls"].items()}
    return Position(found["size"], found["tail_bytes"], found["tail_hash"], crawls)


def _hash(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)
