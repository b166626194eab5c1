"""Where a crawl's requests come from: `start_requests` while there is room, `on_idle` when nothing is left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gevent
from gevent.event import Event

from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.core.spider import Spider
from scrapy_plus.errors import DontCloseSpider, NotStorable, StopCrawl
from scrapy_plus.http.request import Request
from scrapy_plus.rules.judge import describe

log = logging.getLogger("scrapy_plus.seeder")

IDLE_CHECK_SECONDS = 1.0


class Seeder:
    """Pulls a spider's seeds no faster than the crawl works them off, and ends the seeding.

    `prepare` sends a request through the spider middlewares (None: not wanted); at most about `seeds_ahead` requests
    are queued before more are pulled. Seeding has not ended before `on_idle` had its say, so a crawl cannot be finished
    while the spider may still add to it.
    """

    def __init__(
        self,
        spider: Spider,
        scheduler: Scheduler,
        prepare: Callable[[Request], Request | None],
        *,
        seeds_ahead: int = 1000,
    ) -> None:
        self.has_crashed = False
        self.on_ready: Callable[[], None] = lambda: None
        self.on_stop: Callable[[str], None] = lambda reason: None
        self._spider = spider
        self._scheduler = scheduler
        self._prepare = prepare
        self._seeds_ahead = seeds_ahead
        self._changed = Event()
        self._is_stopped = False

    def run(self) -> None:
        """All seeds, then the idle rounds, then the end of the seeding. Runs in a greenlet of its own."""
        try:
            for request in self._start_requests():
                self._wait_until(self._has_room)
                if self._is_stopped:
                    return
                self._take(request)
            self._idle_rounds()
        except StopCrawl as stop:
            self.on_stop(stop.reason)
            return
        except Exception as failure:
            self.has_crashed = True
            self._log("start_requests failed; what it yielded before is crawled", failure)
        if not self._is_stopped:
            self._scheduler.seed(None)
            self.on_ready()

    def look(self) -> None:
        """A request was handed out, or there was none: what this waits for may have come."""
        if not self._changed.is_set():
            self._changed.set()

    def stop(self) -> None:
        """No more seeds."""
        self._is_stopped = True
        self._changed.set()

    def _start_requests(self) -> Iterator[Request]:
        for request in results_of(self._spider.start_requests()):
            if not isinstance(request, Request):
                raise TypeError(f"start_requests of {self._spider.name} yielded {request!r}, which is no Request")
            yield request

    def _take(self, request: Request) -> None:
        wanted = self._prepare(request)
        try:
            if wanted is not None and self._scheduler.seed(wanted):
                self.on_ready()
        except NotStorable as error:
            self._scheduler.stats.error(describe(error), request.full_url)
            self._log(f"the seed {request!r} is left out", error)

    def _has_room(self) -> bool:
        return self._scheduler.frontier.counts().ready < self._seeds_ahead

    def _is_quiet(self) -> bool:
        return not self._scheduler.has_pending_requests()

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not self._is_stopped and not is_so():
            self._changed.clear()
            self._changed.wait()

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
        except StopCrawl:
            raise
        except Exception as failure:
            self.has_crashed = True
            self._log(f"on_idle of {self._spider.name} failed", failure)
        return False

    def _log(self, what: str, failure: BaseException) -> None:
        log.error("%s", what, exc_info=(type(failure), failure, failure.__traceback__))


def results_of(given: Any) -> Iterable[Any]:
    """What a method of a spider gave, one by one: it may be a generator, a list, a single object or None."""
    if given is None:
        return ()
    if isinstance(given, list | tuple | set | Iterator):
        return given
    if hasattr(given, "__aiter__") or hasattr(given, "__await__"):
        if hasattr(given, "close"):
            given.close()  # a coroutine that is never awaited would warn of itself
        raise TypeError("async callbacks are not supported; write a plain method (gevent makes it concurrent)")
    return (given,)
