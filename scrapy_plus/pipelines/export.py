"""Files from stored items: each item of a crawl with many processes is in the file exactly once, whatever is killed.

The items are in the crawl's store (redis_items.py); one process, the first that claims a file, writes it. That needs
no election: who holds the file's lock writes, the kernel takes the lock from the dead, and the next one goes on. The
master is the only one to try, or every process where there is no master; slaves do not.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import gevent
from gevent.event import Event

from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import FrontierError, StopCrawl, UsageError
from scrapy_plus.pipelines.feeds import BeingWritten, Feed
from scrapy_plus.pipelines.notes import Notes, Position, Progress

log = logging.getLogger("scrapy_plus.export")

LOOK_SECONDS = 1.0
ITEMS_A_LOOK = 500
CLAIM_SECONDS = 3.0


class Store(Protocol):
    """What holds the items, over a connection of its own: a frontier, or the view of it for those who only read."""

    def items(self, cursor: str = "", count: int = 100) -> tuple[list[bytes], str]: ...

    def close(self) -> None: ...


class Export:
    """One file of items from the stores of one or more crawls.

    What is going to be written is noted below `folder` first, so that after a kill the file tells how far it came. A
    file that somebody changed meanwhile is kept under another name, and written anew from the first item. A stream
    ("-") begins with the first item each time, and so does a file with `overwrite`.
    """

    def __init__(self, feed: Feed, folder: Path) -> None:
        self.place = feed.place
        self._feed = feed
        self._notes = Notes(folder, feed.place)
        self._at = Position()
        feed.on_claimed = self._recall

    # -- whose is it --------------------------------------------------------------------------------------------------

    def claim(self, crawl: str) -> bool:
        """Opens the file, to be written from this crawl too; False if another process does that already.

        Raises: BeingWritten if somebody writes it who has nothing to do with this crawl; UsageError as `Feed` does.
        """
        try:
            self._feed.open_spider(None)
        except BeingWritten:
            if crawl in self._notes.crawls():
                return False
            raise
        crawls = {crawl: Progress(), **self._at.crawls}
        if self._feed.end is None:
            self._at = Position(crawls=crawls)
        else:
            self._at = Position.at(self.place, self._feed.end, crawls)
            self._notes.write(self._at)
        return True

    def release(self) -> None:
        """To be called once for each `claim` that was granted."""
        self._feed.close_spider(None)

    def _recall(self) -> None:
        """The file is ours: it is brought to where the notes say that it stands."""
        self._at = Position()
        if self._feed.overwrite or not os.path.getsize(self.place):
            return
        try:
            noted = self._notes.read()
        except ValueError:
            self._set_aside()
            return
        if noted is not None:
            self._at = self._known(*noted) or self._set_aside()

    def _known(self, at: Position, then: Position | None) -> Position | None:
        size = os.path.getsize(self.place)
        with open(self.place, "rb") as file:
            if then is not None and then.fits(file):
                return then
            if not at.fits(file) or (then is not None and size >= then.size):
                return None
        if then is not None:
            os.truncate(self.place, at.size)  # the write that was noted came half-way
        return at

    def _set_aside(self) -> Position:
        aside = next(name for name in _names_beside(self.place) if not os.path.exists(name))
        shutil.copyfile(self.place, aside)
        os.truncate(self.place, 0)  # not moved: the lock is on this one
        log.warning("%r is not as it was left: kept as %r, and written anew from the first item", self.place, aside)
        return Position()

    # -- items --------------------------------------------------------------------------------------------------------

    def progress(self, crawl: str) -> Progress:
        return self._at.crawls.get(crawl, Progress())

    def write(self, crawl: str, stored: Sequence[bytes], cursor: str) -> None:
        """Adds these items of the crawl, behind which its store's cursor stands. Raises: OSError, StopCrawl."""
        data = self._feed.encode([_item(one) for one in stored])
        if self._feed.end is None:
            self._feed.append(data)  # others may write meanwhile
            self._at = Position(crawls=self._moved(crawl, len(stored), cursor))
            return
        then = Position.after(data, self._feed.end + len(data), self._moved(crawl, len(stored), cursor))
        self._notes.write(self._at, then)
        self._feed.append(data)
        self._at = then
        self._notes.write(then)

    def _moved(self, crawl: str, count: int, cursor: str) -> dict[str, Progress]:
        return {**self._at.crawls, crawl: Progress(cursor, self.progress(crawl).written + count)}

    def take(self, crawl: str, store: Store) -> int:
        """Writes the next items of the crawl's store, a few hundred at most; how many there were."""
        found, cursor = store.items(self.progress(crawl).cursor, ITEMS_A_LOOK)
        if found:
            self.write(crawl, found, cursor)
        return len(found)


class Exporter:
    """Writes the files of one crawl while it goes on, in a greenlet; at its end all that is stored.

    `stats` are told how many items are in which file. `on_stop` is told that a reader of the items went away.
    """

    def __init__(
        self,
        store: Store,
        crawl: str,
        exports: Sequence[Export],
        stats: Stats,
        *,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self.on_stop: Callable[[str], None] = lambda reason: None
        self._store = store
        self._crawl = crawl
        self._stats = stats
        self._look_seconds = look_seconds
        self._unclaimed = list(exports)
        self._claimed: list[Export] = []
        self._is_stopping = Event()
        self._greenlet: gevent.Greenlet | None = None
        self._trouble = ""

    def start(self) -> None:
        """Claims the files. Raises: UsageError for one that cannot be written, or that another crawl writes."""
        self._claim(within_seconds=CLAIM_SECONDS)
        for export in self._unclaimed:
            log.info("%r is written by another process of this crawl; this one takes over if that ends", export.place)
        self._greenlet = gevent.spawn(self._run)

    def _claim(self, *, within_seconds: float = 0.0) -> None:
        until = time.monotonic() + within_seconds
        for export in list(self._unclaimed):
            while True:
                try:
                    is_ours = export.claim(self._crawl)
                    break
                except BeingWritten:  # perhaps by one that starts this moment, and has not noted for whom yet
                    if time.monotonic() >= until:
                        raise
                    gevent.sleep(0.1)
            if is_ours:
                self._unclaimed.remove(export)
                self._claimed.append(export)
                self._tell(export)

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            count = 0
            try:
                count = self._look()
                self._claim()
                self._trouble = ""
            except (FrontierError, UsageError, OSError) as error:
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    log.warning("items stay in the store for now: %s", error)
            if not count:
                self._is_stopping.wait(self._look_seconds)

    def _look(self) -> int:
        return sum(self._take(export) for export in list(self._claimed))

    def _take(self, export: Export) -> int:
        try:
            count = export.take(self._crawl, self._store)
        except StopCrawl as stop:
            self._claimed.remove(export)
            export.release()
            self.on_stop(stop.reason)
            return 0
        if count:
            self._tell(export)
        return count

    def _tell(self, export: Export) -> None:
        # Set, not counted: what is counted is added up over all processes, and this is the crawl's number already.
        self._stats.set(f"item_stored_count/{export.place}", export.progress(self._crawl).written)

    def stop(self) -> None:
        """Writes what is stored by now, and lets go of the files."""
        self._is_stopping.set()
        try:
            if self._greenlet is not None:
                self._greenlet.join()
                self._claim_what_is_free()
                while self._look():
                    pass
        finally:
            for export in self._claimed:
                export.release()
            self._claimed.clear()
            self._store.close()

    def _claim_what_is_free(self) -> None:
        try:
            self._claim()
        except BeingWritten as error:
            log.warning("%s; the items of this one are in the store (scrapy-plus items)", error)


def _item(stored: bytes) -> Any:
    """The item as a feed takes it; what a pipeline stored that is no JSON goes as its text."""
    try:
        return json.loads(stored)
    except ValueError:
        return stored.decode("utf-8", "replace")


def _names_beside(path: str) -> Iterator[str]:
    return (f"{path}.{number}" for number in range(1, 1_000_000))
