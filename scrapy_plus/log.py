"""The log: lines that no crawled text can forge, on standard error or in a file, counted into the statistics."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import UsageError
from scrapy_plus.http.secrets import redact

FORMAT = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"
DATEFORMAT = "%Y-%m-%d %H:%M:%S"
SPIDER_LOGGER = "scrapy_plus.spider."

# Terminals obey C0 and C1; line separators would forge lines; bidirectional controls show text in another order.
_UNSEEN = [*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _UNSEEN}
_ESCAPES |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_BLOCK_ESCAPES = {code: shown for code, shown in _ESCAPES.items() if code not in (9, 10)}
_STANDARD_FIELDS = frozenset([*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"])


def printable(text: str, *, lines: bool = False) -> str:
    """The text as it may be shown: control characters escaped, secrets hidden; `lines` keeps its newlines."""
    text = redact(text)
    return text if text.isprintable() else text.translate(_BLOCK_ESCAPES if lines else _ESCAPES)


class LineFormatter(logging.Formatter):
    """One record, one line, then its traceback; fields given as `extra` follow the message as key=value."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        extra = record.__dict__.keys() - _STANDARD_FIELDS
        fields = "".join(f" {name}={getattr(record, name)!r}" for name in sorted(extra))
        record.message = printable(record.message + fields)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802
        return printable(super().formatException(ei), lines=True)  # type: ignore[arg-type]


class _StandardError(logging.Handler):
    """Writes to what sys.stderr is at that moment: a live panel puts itself there, to let the lines scroll above it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


class _Counter(logging.Handler):
    """Counts each record by level: for the spider whose logger it came through, else for all of them together."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[tuple[str, Stats]] = []

    def emit(self, record: logging.LogRecord) -> None:
        names = [name for name, _ in self.counts if f"{record.name}.".startswith(f"{SPIDER_LOGGER}{name}.")]
        owner = max(names, key=len, default="")  # books.test is another spider than books
        for name, stats in self.counts:
            if name == owner:
                stats.inc(f"log_count/{record.levelname}")


_counter = _Counter()
_ours: list[logging.Handler] = []


def setup(
    level: int | str = "INFO",
    file: str | os.PathLike[str] | None = None,
    format: str = FORMAT,  # noqa: A002  the words of LOG_FORMAT
    datefmt: str = DATEFORMAT,
) -> None:
    """Sends the log of the framework and of the project to `file`, else to standard error; may be called again.

    A program that has set up Python's logging itself keeps its handlers, and gets the records at its own level.
    Raises: UsageError if the file cannot be written.
    """
    root = logging.getLogger()
    for handler in _ours:
        root.removeHandler(handler)
        handler.close()
    _ours.clear()
    if not root.handlers:
        handler = _handler(file)
        handler.setFormatter(LineFormatter(format, datefmt))
        root.addHandler(handler)
        _ours.append(handler)
        root.setLevel(level.upper() if isinstance(level, str) else level)
    root.addHandler(_counter)
    _ours.append(_counter)
    # A line for each connection, at DEBUG, of what a line for each page says already.
    logging.getLogger("urllib3").setLevel(max(logging.INFO, root.level))


def _handler(file: str | os.PathLike[str] | None) -> logging.Handler:
    if file is None:
        return _StandardError()
    try:
        folder = os.path.dirname(os.path.abspath(file))
        os.makedirs(folder, exist_ok=True)
        return logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"cannot write the log to {os.fspath(file)!r}: {error.strerror} (LOG_FILE)") from error


def count_into(stats: Stats, spider: str = "") -> None:
    """From now on records are counted here as log_count/<LEVEL>: those of one spider's own logger, or with no name
    those that come from none of the spiders that are counted by name."""
    _counter.counts.append((spider, stats))


def stop_counting(stats: Stats) -> None:
    """Ends `count_into`."""
    _counter.counts = [one for one in _counter.counts if one[1] is not stats]


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person with a screen sees it; not asked of rich, which FORCE_COLOR makes see terminals everywhere."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    except ValueError:  # closed
        return False
