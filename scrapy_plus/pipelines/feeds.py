"""Items to a file: jsonl, json or csv, whole lines at every moment, whatever kills the process."""

from __future__ import annotations

import codecs
import errno
import fcntl
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import gevent

from scrapy_plus.core.pipeline import Pipeline
from scrapy_plus.errors import StopCrawl, UsageError
from scrapy_plus.pipelines.formats import Fields, Format, format_of

log = logging.getLogger(__name__)


class BeingWritten(UsageError):
    """Another process is writing that file."""


class Feed(Pipeline):
    """Writes the items of each page to a file with one unbuffered write; "-" is standard output.

    A file that exists is gone on with, behind its last whole line, unless `overwrite`. The format is that of the
    extension, or of `format`. Several spiders may share one Feed: it is closed when the last of them closes.
    `on_claimed` is called when the file is ours alone, before anything of it is read or written.
    Raises: UsageError at open (what cannot be written, no known format), OSError on a full disk, the file left whole.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002  the word of FEEDS
        fields: Fields = None,
        overwrite: bool = False,
        encoding: str = "utf-8",
        csv_safe: bool = True,
    ) -> None:
        self.place = os.fspath(path)
        self.overwrite = overwrite
        self.on_claimed: Callable[[], None] = lambda: None
        self._mark, encoding = _byte_order_mark(encoding)
        self._format = format_of(self.place, format)(fields=fields, encoding=encoding, csv_safe=csv_safe)
        self._sink: _File | _Stream | None = None
        self._spiders = 0

    def open_spider(self, spider: Any) -> None:
        if self._sink is None:
            self._sink = self._open()
        self._spiders += 1

    def _open(self) -> _File | _Stream:
        if self.place == "-":
            # Closed, its number is that of some other file or socket by now.
            if sys.__stdout__ is None or sys.__stdout__.closed:
                raise UsageError("cannot write items to standard output: it is closed")
            return _Stream(sys.__stdout__.fileno(), self._format, self._mark, is_shared=True)
        try:
            return _open(self.place, self._format, self._mark, self.overwrite, self.on_claimed)
        except OSError as error:
            raise UsageError(f"cannot write items to {self.place!r}: {error.strerror or error}") from error

    def store(self, items: list[Any], spider: Any) -> None:
        self.append(self.encode(items))

    def encode(self, items: list[Any]) -> bytes:
        """The items as the next bytes of the file."""
        return self._format.encode(items, is_empty=self._open_sink.is_empty)

    def append(self, data: bytes) -> None:
        self._open_sink.write(data)

    @property
    def end(self) -> int | None:
        """Where the next items will begin; None if they go to a stream, which has no such place."""
        return self._open_sink.end

    @property
    def _open_sink(self) -> _File | _Stream:
        if self._sink is None:
            raise ValueError(f"the feed {self.place!r} is not open")
        return self._sink

    def close_spider(self, spider: Any) -> None:
        self._spiders -= 1
        if self._spiders <= 0 and self._sink is not None:
            self._sink.close()
            self._sink = None


def build_feeds(feeds: Mapping[str, Mapping[str, Any]], *, fields: Fields = None, csv_safe: bool = True) -> list[Feed]:
    """One Feed for each entry of the FEEDS setting, to be shared by all spiders of a run."""
    return [
        Feed(
            path,
            format=options.get("format"),
            fields=options.get("fields") or fields,
            overwrite=bool(options.get("overwrite", False)),
            encoding=options.get("encoding") or "utf-8",
            csv_safe=csv_safe,
        )
        for path, options in ((path, options or {}) for path, options in feeds.items())
    ]


class _File:
    """A regular file: written at its end, over the tail; a write that fails half-way is taken back."""

    def __init__(self, descriptor: int, path: str, format_: Format, mark: bytes, *, overwrite: bool) -> None:
        self._descriptor = descriptor
        self._tail = format_.tail
        self.is_empty = True
        size = os.fstat(descriptor).st_size
        self.end = 0  # here the tail begins
        if size and not overwrite:
            self._resume(path, format_, mark)
        else:
            os.ftruncate(descriptor, 0)
            self._put(mark + format_.head)

    def _resume(self, path: str, format_: Format, mark: bytes) -> None:
        with open(path, "rb") as file:
            self.end, self.is_empty, glue = format_.resume(file)
            file.seek(self.end)
            torn = file.read().strip(b" \t\r\n],")  # without what a whole array ends with
        if torn:
            log.warning("%r ended within a line: cut %d bytes, going on behind the last whole one", path, len(torn))
        os.ftruncate(self._descriptor, self.end)
        self._put(glue if self.end else mark + format_.head)

    def write(self, data: bytes) -> None:
        """Appends whole lines, or raises OSError and leaves the file as it was."""
        try:
            self._put(data)
        except OSError:
            os.ftruncate(self._descriptor, self.end)
            os.pwrite(self._descriptor, self._tail, self.end)
            raise
        self.is_empty = False

    def _put(self, data: bytes) -> None:
        # One call for data and tail: between two the file would be without an end.
        whole = data + self._tail
        if os.pwrite(self._descriptor, whole, self.end) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.end += len(data)

    def close(self) -> None:
        os.close(self._descriptor)


class _Stream:
    """A pipe or a terminal: nothing can be taken back, and the tail is written at the end."""

    end = None

    def __init__(self, descriptor: int, format_: Format, mark: bytes, *, is_shared: bool) -> None:
        self._descriptor = descriptor
        self._is_shared = is_shared
        self._tail = format_.tail
        self._lock = threading.Lock()  # a greenlet that waits for a slow reader must not be overtaken
        self.is_empty = True
        self._begin = mark + format_.head

    def write(self, data: bytes) -> None:
        with self._lock:
            begin, self._begin = self._begin, b""
            self.is_empty = False
            self._put(begin + data)

    def _put(self, data: bytes) -> None:
        # In a native thread: `| less` may let us wait for minutes, and the crawl has other things to do.
        failure = gevent.get_hub().threadpool.apply(_write_all, (self._descriptor, data))
        if isinstance(failure, BrokenPipeError):
            raise StopCrawl("output_closed")
        if failure is not None:
            raise failure

    def close(self) -> None:
        try:
            self._put(self._begin + self._tail)
        except StopCrawl:
            log.debug("the reader of the items has gone")
        if not self._is_shared:
            os.close(self._descriptor)


def _write_all(descriptor: int, data: bytes) -> OSError | None:
    """Returns the error instead of raising it, since the pool would print a traceback of its own."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        return error
    return None


def _open(path: str, format_: Format, mark: bytes, overwrite: bool, on_claimed: Callable[[], None]) -> _File | _Stream:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _Stream(descriptor, format_, mark, is_shared=False)
        _claim(descriptor, path)
        on_claimed()
        return _File(descriptor, path, format_, mark, overwrite=overwrite)
    except BaseException:
        os.close(descriptor)
        raise


def _claim(descriptor: int, path: str) -> None:
    """Two processes that write at their own ends of one file would write over each other's items."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BeingWritten(f"{path!r} is being written by another crawl; give this one another file") from None
    except OSError as error:
        log.debug("no locks on this file system: %s", error)


def _byte_order_mark(encoding: str) -> tuple[bytes, str]:
    """What a new file starts with, and the encoding of what follows. Raises UsageError if it cannot serve."""
    try:
        name = codecs.lookup(encoding).name
        serves = "\n[],{}".encode(encoding).endswith(b"\n[],{}")
    except LookupError:
        raise UsageError(f"no encoding {encoding!r} for items; utf-8 is the best choice") from None
    if not serves:
        raise UsageError(f"the encoding {encoding!r} cannot be appended to; use utf-8, or utf-8-sig for spreadsheets")
    return (codecs.BOM_UTF8, "utf-8") if name == "utf-8-sig" else (b"", encoding)
