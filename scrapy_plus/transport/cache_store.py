"""Where cached answers are: one SQLite file, which several processes may use at once."""

from __future__ import annotations

import json
import logging
import sqlite3
import zlib
from contextlib import suppress
from pathlib import Path

from scrapy_plus.rules.http_cache import Entry

log = logging.getLogger("scrapy_plus.httpcache")

BUSY_SECONDS = 5.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, at REAL, head TEXT, body BLOB, sum INTEGER)"


class CacheStore:
    """Answers by key. One that cannot be read is not there, and a file that is no database is begun anew: a cache
    may always forget."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._has_warned = False
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            log.warning("the cache %s is begun anew: %s", path, error)
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            self._open()

    def _open(self) -> None:
        self._database = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            # Written ahead, readers wait for nobody; a crash of the machine may cost the last answers, never the file.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(_SCHEMA)
        except sqlite3.DatabaseError:
            self._database.close()
            raise

    def get(self, key: bytes) -> Entry | None:
        try:
            row = self._database.execute("SELECT at, head, body, sum FROM answers WHERE key = ?", (key,)).fetchone()
            return None if row is None else _entry(*row)
        except (sqlite3.Error, ValueError, TypeError, AttributeError) as error:
            self._warn("an answer cannot be read", error)
            return None

    def put(self, key: bytes, entry: Entry) -> None:
        head = json.dumps([entry.url, entry.status, entry.fields, entry.asked, entry.ip_address])
        total = zlib.crc32(entry.body, zlib.crc32(head.encode()))
        row = (key, entry.at, head, entry.body, total)
        try:
            self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            self._warn("an answer cannot be stored", error)

    def delete(self, key: bytes) -> None:
        try:
            self._database.execute("DELETE FROM answers WHERE key = ?", (key,))
        except sqlite3.Error as error:
            self._warn("an answer cannot be taken out", error)

    def _warn(self, what: str, error: Exception) -> None:
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        log.log(level, "%s (%s): %s", what, self._path, error)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._database.close()


def _entry(at: float, head: str, body: bytes, total: int) -> Entry:
    """Raises ValueError, TypeError or AttributeError for a row that is not what was stored."""
    if zlib.crc32(body, zlib.crc32(head.encode())) != total:
        raise ValueError("its sum is wrong")
    url, status, fields, asked, ip_address = json.loads(head)
    return Entry(url, status, _pairs(fields), body, _pairs(asked), float(at), ip_address)


def _pairs(rows: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows)
