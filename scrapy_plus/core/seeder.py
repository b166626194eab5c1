"""Where a crawl's requests come from: `start_requests` while there is room, `on_idle` when nothing is left."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import gevent
from gevent.event import Event

from scrapy_plus.core.outcome import log_failure, results_of
from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.core.spider import Spider
from scrapy_plus.errors import BadEntry, CursorMoved, DontCloseSpider, FrontierError, NotStorable, StopCrawl, UsageError
from scrapy_plus.frontier.feed import MOST_ENTRIES, Batch, Feed
from scrapy_plus.http.codec import encode
from scrapy_plus.http.request import Request
from scrapy_plus.rules.feed_entry import read_entry
from scrapy_plus.rules.judge import describe

log = logging.getLogger("scrapy_plus.seeder")

IDLE_CHECK_SECONDS = 1.0
FAR_CHECK_SECONDS = 0.25
FEED_CHECK_SECONDS = 1.0
LINGER_SECONDS = 0.05
SEEDS_A_CALL = 100
HOLDS_A_LEASE = 3


class _Overtaken(FrontierError):
    """Another process seeds since: this one was silent for longer than a lease."""


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """A feed, how many entries are moved at a time, their encoding, and how long without any the crawl goes on."""

    feed: Feed
    batch: int = 100
    encoding: str = "utf-8"
    idle_seconds: float = float("inf")


class Seeder:
    """Pulls a spider's seeds no faster than the crawl works them off, and ends the seeding.

    `prepare` sends a request through the spider middlewares (None: not wanted); at most about `seeds_ahead` requests
    are queued before more are pulled. Seeding has not ended before `on_idle` had its say, so a crawl cannot be finished
    while the spider may still add to it. A seeder that starts again goes through `start_requests` again: what the store
    has seen it answers, the rest is taken in.
    """

    def __init__(
        self,
        spider: Spider,
        scheduler: Scheduler,
        prepare: Callable[[Request], Request | None],
        *,
        seeds_ahead: int = 1000,
        feed: FeedOptions | None = None,
    ) -> None:
        self.has_crashed = False
        self.on_ready: Callable[[], None] = lambda: None
        self.on_stop: Callable[[str], None] = lambda reason: None
        self._spider = spider
        self._scheduler = scheduler
        self._prepare = prepare
        self._seeds_ahead = seeds_ahead
        self._feed = feed
        self._is_far = scheduler.committer.is_remote
        self._changed = Event()
        self._is_stopped = False
        self._held_at = 0.0
        self._position = 0
        self._batch: list[Request] = []
        self._linger: gevent.Greenlet | None = None

    def run(self) -> None:
        """All seeds, then the idle rounds, then the end of the seeding. Runs in a greenlet of its own."""
        try:
            while not self._is_stopped and self._may_seed():
                try:
                    self._seed_all()
                    self._watch()
                except (CursorMoved, _Overtaken) as moved:
                    log.warning("%s: %s; going through start_requests again", self._spider.name, moved)
        except StopCrawl as stop:
            self.on_stop(stop.reason)
        except UsageError as failure:
            self.has_crashed = True
            log.error("%s: %s", self._spider.name, failure)
            self.on_stop("feed_error")
        except FrontierError as failure:
            self.has_crashed = True
            log.error("seeding ends: %s", failure)

    # -- who seeds ----------------------------------------------------------------------------------------------------

    def _may_seed(self) -> bool:
        """Waits until nobody else seeds; False if there is nothing to seed any more."""
        has_told = False
        while not self._is_stopped and not self._scheduler.has_been_seeded():
            if not self._is_far or self._hold():
                return True
            if not has_told:
                has_told = True
                log.info("another process seeds the crawl of %s; this one works", self._spider.name)
            self._changed.clear()
            self._changed.wait(IDLE_CHECK_SECONDS)
        return False

    def _hold(self) -> bool:
        asked_at = time.monotonic()
        is_ours = self._scheduler.hold_seeding()
        self._held_at = asked_at if is_ours else float("-inf")
        return is_ours

    def _keep_holding(self) -> None:
        """Before anything is seeded, and while this waits: the seeding stays with this process as long as it lives."""
        is_due = self._is_far and time.monotonic() - self._held_at > self._scheduler.lease_seconds / HOLDS_A_LEASE
        if is_due and not self._hold():
            raise _Overtaken("another process has gone on with the seeding")

    def _watch(self) -> None:
        """A store that was rolled back may have lost the last seeds: then they are gone through again."""
        while self._is_far and not self._is_stopped and self._scheduler.has_been_seeded():
            gevent.sleep(IDLE_CHECK_SECONDS)

    # -- what other programs bring ------------------------------------------------------------------------------------

    def _take_from_feed(self, options: FeedOptions) -> None:
        """Entries of the feed whenever there is room, until nothing has come and nothing was left for long enough.

        A batch stays beside the feed until its requests are in the store, so a process that dies here loses none; the
        next one takes in the very same batch, under the same ids.
        """
        busy_at, counts = time.monotonic(), self._scheduler.frontier.counts()
        while not self._is_stopped:
            self._keep_holding()
            is_over = time.monotonic() - busy_at >= options.idle_seconds
            if counts.pending or is_over:  # while nothing is there nothing changes but by the feed: one call is enough
                counts = self._scheduler.frontier.counts()
            batch = None
            if counts.ready < self._seeds_ahead:
                batch = options.feed.move(uuid.uuid4().hex.encode(), options.batch)
            if batch is not None:
                self._take_batch(batch, options.encoding)
                options.feed.remove(batch)
                counts = self._scheduler.frontier.counts()
            if batch is not None or counts.pending:
                busy_at = time.monotonic()
            elif is_over:
                return
            if batch is None:
                gevent.sleep(FEED_CHECK_SECONDS)

    def _take_batch(self, batch: Batch, encoding: str) -> None:
        requests: list[tuple[int, Request]] = []
        refused: list[tuple[int, bytes, str]] = []
        for number, raw in enumerate(batch.entries):
            try:
                for nth, request in enumerate(self._requests_of(raw, encoding)):
                    wanted = self._prepare(request)
                    if wanted is not None:
                        requests.append((number + nth * MOST_ENTRIES, wanted))
            except Exception as failure:  # whoever fills the feed, or the spider's own way to read it
                reason = str(failure) if isinstance(failure, BadEntry) else describe(failure)
                refused.append((number, raw, reason))
                log.warning("%s: an entry of the feed is no request: %s", self._spider.name, reason)
        self._scheduler.stats.inc("feed/entries", len(batch.entries))
        if refused:
            self._scheduler.stats.inc("feed/refused", len(refused))
        if self._scheduler.take_over(requests, batch.token, refused) or refused:
            self.on_ready()

    def _requests_of(self, raw: bytes, encoding: str) -> Iterable[Request]:
        """What an entry stands for: the spider may read it in its own way, and leave it out (None)."""
        make = getattr(self._spider, "make_request_from_data", None)
        made = read_entry(raw, encoding=encoding) if make is None else make(raw)
        for request in results_of(made):
            if not isinstance(request, Request):
                raise TypeError(f"make_request_from_data gave {request!r}, which is no Request")
            encode(request)  # now, so that it is known which entry cannot be stored
            yield request

    # -- seeds --------------------------------------------------------------------------------------------------------

    def _seed_all(self) -> None:
        self._position, self._batch = 0, []
        try:
            for request in self._start_requests():
                self._take(request)
                if self._is_stopped:
                    return
            self._flush()
            if self._feed is not None:
                self._take_from_feed(self._feed)
            self._idle_rounds()
        except (StopCrawl, FrontierError, UsageError):
            raise
        except Exception as failure:
            self._tell("start_requests failed; what it yielded before is crawled", failure)
        if not self._is_stopped:
            self._flush()
            if not self._position and not self.has_crashed and self._feed is None:
                log.warning("spider %s has nothing to start with: no start_urls, no start_requests", self._spider.name)
            self._scheduler.end_seeding(self._position)
            self.on_ready()

    def look(self) -> None:
        """A request was handed out, or there was none: what this waits for may have come. A far store is asked now and
        then instead."""
        if not self._is_far and not self._changed.is_set():
            self._changed.set()

    def stop(self) -> None:
        """No more seeds."""
        self._is_stopped = True
        self._changed.set()
        if self._linger is not None:
            self._linger.kill(block=False)

    def _start_requests(self) -> Iterator[Request]:
        for request in results_of(self._spider.start_requests()):
            if not isinstance(request, Request):
                raise TypeError(f"start_requests of {self._spider.name} yielded {request!r}, which is no Request")
            yield request

    def _take(self, request: Request) -> None:
        """Near stores are given each seed at once, far ones many together, or after a moment what there is."""
        wanted = self._prepare(request)
        if wanted is None:
            return
        if len(self._batch) + 1 >= (SEEDS_A_CALL if self._is_far else 1):
            self._wait_until(self._has_room)
        self._batch.append(wanted)
        if not self._is_far or len(self._batch) >= SEEDS_A_CALL:
            self._flush()
        elif self._linger is None:
            self._linger = gevent.spawn_later(LINGER_SECONDS, self._flush_late)

    def _flush_late(self) -> None:
        self._linger = None
        try:
            self._flush()
        except FrontierError as error:  # the seeder itself will meet it too, and knows what to do
            log.debug("late seeds: %s", error)

    def _flush(self) -> None:
        self._keep_holding()
        batch, self._batch = self._batch, []
        if not batch or self._is_stopped:
            return
        start, self._position = self._position, self._position + len(batch)
        try:
            taken = self._scheduler.seed(batch, start)
        except NotStorable as error:
            if len(batch) == 1:
                self._scheduler.stats.error(describe(error), batch[0].full_url)
                log_failure(log, f"the seed {batch[0]!r} is left out", error)
                self._position = start
                return
            self._position = start
            for request in batch:
                self._batch = [request]
                self._flush()
            return
        if taken:
            self.on_ready()

    def _has_room(self) -> bool:
        return self._scheduler.frontier.counts().ready < self._seeds_ahead

    def _is_quiet(self) -> bool:
        return not self._scheduler.has_pending_requests()

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not self._is_stopped and not is_so():
            self._keep_holding()
            self._changed.clear()
            self._changed.wait(FAR_CHECK_SECONDS if self._is_far else None)

    def _idle_rounds(self) -> None:
        """Asks the spider for a last round when nothing is left; DontCloseSpider means: ask again later."""
        asks_again = type(self._spider).on_idle is not Spider.on_idle
        while asks_again:
            self._wait_until(self._is_quiet)
            if self._is_stopped:
                return
            asks_again = self._idle_round()
            if asks_again:
                gevent.sleep(IDLE_CHECK_SECONDS)

    def _idle_round(self) -> bool:
        try:
            for request in results_of(self._spider.on_idle()):
                self._take(request)
        except DontCloseSpider:
            return True
        except (StopCrawl, FrontierError):
            raise
        except Exception as failure:
            self._tell(f"on_idle of {self._spider.name} failed", failure)
        finally:
            self._flush()
        return False

    def _tell(self, what: str, failure: Exception) -> None:
        self.has_crashed = True
        self._scheduler.stats.error(describe(failure), f"(the seeds of {self._spider.name})")
        log_failure(log, what, failure)
