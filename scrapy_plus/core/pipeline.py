"""Pipelines: what happens to the items of a page, one after the other, before the page counts as done."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import DropItem
from scrapy_plus.middlewares.chain import Hook, bind

log = logging.getLogger(__name__)

MAX_DROP_REASONS = 20
MAX_REASON_LENGTH = 120


class Pipeline:
    """The base class for pipelines, though any class with some of these methods will do; `spider` may be left out.

    It is named in PIPELINES and made without arguments, or by its class method `from_settings(settings)` if it has one:
    that is the way to `settings.MYSQL_HOST`. Each spider gets one of its own. A pipeline that stores items says in
    `place` where (a path, a table): the summary shows it.
    """

    def open_spider(self, spider: Any) -> None:
        """Before the first request: open files and connections. An exception ends the run."""

    def process_item(self, item: Any, spider: Any) -> Any:
        """Returns the item, or another, for the next pipeline; raises DropItem to end its way here.

        Any other exception makes the page fail: it is tried again, with all its items.
        """
        return item

    def store(self, items: list[Any], spider: Any) -> None:
        """All items of one page at once, after they came through every pipeline; for those that write them somewhere.

        A page that fails half-way has stored nothing yet, so that its next try stores nothing twice.
        """

    def flush(self) -> None:
        """Writes what is buffered: after it a page counts as done and its items will not come again."""

    def close_spider(self, spider: Any) -> None:
        """After the last item, also of a crawl that was stopped."""


class Processed(NamedTuple):
    """The items of a page that came through all pipelines, and what the crawl's own store is to take in of them."""

    items: list[Any]
    encoded: list[bytes]


class PipelineChain:
    """The pipelines of one spider, in the order of the PIPELINES setting.

    Their methods may leave out `spider`. Raises UnfitHook for those that cannot be called, or are async.
    One may have `encode_items(items, spider)` instead of `store`: what it returns, a list of bytes, is stored in the
    very step in which the page is done. That is the way into the crawl's own store; nothing else can be in that step.
    """

    def __init__(self, pipelines: Sequence[Any], spider: Any, stats: Stats) -> None:
        self._pipelines = list(pipelines)
        self._spider = spider
        self._stats = stats
        self._steps = [
            (type(one).__name__, process_item)
            for one in self._pipelines
            if (process_item := bind(one, "process_item", spider, ("item", "spider")))
        ]
        self._doors = [
            (bind(one, "open_spider", spider, ("spider",)), bind(one, "close_spider", spider, ("spider",)))
            for one in self._pipelines
        ]
        self._stores = [one for one in self._pipelines if hasattr(one, "store")]
        self._encoders = [one for one in self._pipelines if hasattr(one, "encode_items")]
        self._flushes = [one.flush for one in self._pipelines if hasattr(one, "flush")]
        self._forgetful: set[str] = set()
        self._drop_reasons: set[str] = set()
        self._opened: list[Hook] = []

    def open(self) -> None:
        """Opens all of them, in order; if one cannot, those that were opened are closed again."""
        for open_spider, close_spider in self._doors:
            try:
                if open_spider is not None:
                    open_spider(self._spider)
            except BaseException:
                self.close()
                raise
            if close_spider is not None:
                self._opened.append(close_spider)

    def process(self, items: Iterable[Any]) -> Processed:
        """Sends the items of a page through all pipelines and stores them; returns those that came out, as they did."""
        through: list[Any] = []
        encoded: list[bytes] = []
        for item in items:
            try:
                through.append(self._process(item))
            except DropItem as reason:
                self._drop(reason)
        if through:
            encoded = self._encode(through)
            self._store(through)
            self._stats.inc("item_scraped_count", len(through))
        return Processed(through, encoded)

    def _encode(self, items: list[Any]) -> list[bytes]:
        encoded: list[bytes] = []
        for pipeline in self._encoders:
            found = pipeline.encode_items(items, self._spider)
            encoded += found
            self._count_stored(pipeline, len(found))
        return encoded

    def _store(self, items: list[Any]) -> None:
        for pipeline in self._stores:
            pipeline.store(items, self._spider)
            self._count_stored(pipeline, len(items))

    def _count_stored(self, pipeline: Any, count: int) -> None:
        place = getattr(pipeline, "place", None)
        if place and count:
            self._stats.inc(f"item_stored_count/{place}", count)

    def _process(self, item: Any) -> Any:
        for name, process_item in self._steps:
            result = process_item(item, self._spider)
            if result is None:
                self._warn_of_nothing(name)
            else:
                item = result
        return item

    def _drop(self, reason: DropItem) -> None:
        log.debug("item dropped: %s", reason)
        self._stats.inc("item_dropped_count")
        name = type(reason).__name__
        self._stats.inc(f"item_dropped_reasons_count/{name}")
        # Messages that differ from item to item ("no price: http://...") must not become a counter each.
        message = f"{name}: {reason}"[:MAX_REASON_LENGTH] if str(reason) else name
        if message in self._drop_reasons or len(self._drop_reasons) < MAX_DROP_REASONS:
            self._drop_reasons.add(message)
            self._stats.inc(f"item_dropped_messages_count/{message}")

    def _warn_of_nothing(self, name: str) -> None:
        if name not in self._forgetful:
            self._forgetful.add(name)
            log.warning("%s.process_item returned None, the item goes on as it was; return it or raise DropItem", name)

    def flush(self) -> None:
        """Lets every pipeline write what it holds back."""
        for flush in self._flushes:
            flush()

    def close(self) -> None:
        """Closes what was opened, all of it even if one fails, last opened first; the first failure is raised."""
        failures = []
        while self._opened:
            try:
                self._opened.pop()(self._spider)
            except Exception as failure:
                log.exception("a pipeline could not be closed")
                failures.append(failure)
        if failures:
            raise failures[0]
