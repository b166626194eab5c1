"""One spider's crawl: the life of each of its requests, its seeds, and its end."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial
from types import GeneratorType
from typing import Any

import gevent
from gevent.event import Event

from scrapy_plus.core.attendants import Attendant
from scrapy_plus.core.downloader import Downloader
from scrapy_plus.core.limits import Limits
from scrapy_plus.core.outcome import (
    CrawlSnapshot,
    Failure,
    Page,
    count_dropped,
    count_failure,
    log_failure,
    refuse_hidden_requests,
    results_of,
)
from scrapy_plus.core.pipeline import PipelineChain
from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.core.seeder import FeedOptions, Seeder
from scrapy_plus.core.spider import Spider
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import CallbackFailed, DropRequest, FrontierError, NotNow, NotStorable, StopCrawl
from scrapy_plus.frontier.base import Counts
from scrapy_plus.http.follow import Links
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.chain import SpiderChain
from scrapy_plus.rules.judge import Retry, judge

log = logging.getLogger("scrapy_plus.crawl")

FINISHED, DRAINED = "finished", "drained"
START_ERROR = "start_error"
FAR_LOOK_SECONDS = 1.0
END_SECONDS = 2.0


class Crawl:
    """One spider with its scheduler, downloader, middlewares and pipelines.

    `on_ready` is called when there may be work for a parked worker. `seeds_ahead` bounds how many requests may be
    queued before `start_requests` is asked for more.
    """

    def __init__(
        self,
        spider: Spider,
        scheduler: Scheduler,
        downloader: Downloader,
        pipelines: PipelineChain,
        middlewares: SpiderChain,
        stats: Stats,
        *,
        limits: Limits | None = None,
        max_retries: int = 3,
        backoff_seconds: float = 0.5,
        backoff_limit_seconds: float = 60.0,
        seeds_ahead: int = 1000,
        seeds: bool = True,
        feed: FeedOptions | None = None,
        depth_priority: int = 0,
        attendants: Sequence[Attendant] = (),
    ) -> None:
        self.spider = spider
        self.scheduler = scheduler
        self.downloader = downloader
        self.stats = stats
        self.on_ready: Callable[[], None] = lambda: None
        self.ended = Event()
        self.finish_reason: str | None = None
        self.active = 0
        self._pipelines = pipelines
        self._middlewares = middlewares
        self._limits = limits or Limits()
        self._max_retries = max_retries
        self._judge = partial(judge, backoff_seconds=backoff_seconds, backoff_limit_seconds=backoff_limit_seconds)
        self._seeder = Seeder(spider, scheduler, self._prepare, seeds_ahead=seeds_ahead, feed=feed)
        self._feed = feed
        self._seeder.on_stop = self.stop
        self._seeder.on_ready = lambda: self.on_ready()
        self._seeds = seeds
        self._depth_priority = depth_priority
        self._seeding: gevent.Greenlet | None = None
        self._attendants = attendants
        self._has_crashed = False
        self._started_at = 0.0
        self._ended_after = 0.0
        self._is_closing = False
        self._closed = Event()
        self._final: CrawlSnapshot | None = None
        self._latest: CrawlSnapshot | None = None
        self._looked_at = 0.0
        self._look_every_seconds = FAR_LOOK_SECONDS if scheduler.committer.is_remote else 0.0

    @property
    def has_crashed(self) -> bool:
        """Whether something failed that no dead letter stands for: seeds, pipelines at their end, the store."""
        return self._has_crashed or self._seeder.has_crashed

    def crash(self) -> None:
        """Something failed that no page is to blame for."""
        self._has_crashed = True
        self.stop("crashed")

    # -- its begin ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens what has to be open before the first request."""
        self._started_at = time.monotonic()
        self.stats.set("start_time", datetime.now(timezone.utc).isoformat(timespec="seconds"))
        self.scheduler.open(self.spider)
        if self.scheduler.is_finished():
            how = "--again seeds it once more and crawls what is new, --fresh starts anew"
            log.warning("the crawl of %s is finished already; %s", self.spider.name, how)
        self.scheduler.committer.on_news = self._news
        self._pipelines.open()
        for attendant in self._attendants:
            attendant.start()
        log.info("spider %s opened", self.spider.name)

    def seed(self) -> None:
        """Pulls the seeds, if this process does; runs in a greenlet of its own."""
        self._seeding = gevent.getcurrent()
        if self._seeds:
            self._seeder.run()

    def _news(self) -> None:
        """The committer has leases, or the store's state changed, or it is out of reach for good."""
        committer = self.scheduler.committer
        if committer.failure is not None:
            log.error("the crawl of %s ends: %s", self.spider.name, committer.failure)
            self.crash()
        elif committer.is_draining:
            self.stop(DRAINED)
        elif committer.state == "stopped":
            self.stop("stopped")
        elif committer.state == FINISHED:
            self.check_end()
        self.on_ready()

    def look_again(self) -> None:
        """A site may be asked now that could not before."""
        self.scheduler.committer.poke()
        self.on_ready()

    # -- the life of a request ----------------------------------------------------------------------------------------

    def next_request(self) -> Request | None:
        """The next request to crawl, or None: then nothing may be asked now, or the crawl is at its end."""
        if self.finish_reason is not None:
            return None
        request = self.scheduler.get_request()
        self._seeder.look()
        if request is None:
            self.check_end()
        return request

    def crawl(self, request: Request) -> None:
        """Fetch, parse and settle one request. Its failures end here, as a verdict."""
        page = Page()
        self.stats.begin_page()
        try:
            answer = self.downloader.get_response(request)
            page.is_public = request.from_public
            self.scheduler.fetched(request)
            if isinstance(answer, Request):
                self._add_children([answer], page, depth=0)
            else:
                self._parse(request, answer, page)
            if not self.scheduler.is_ours(request):
                self.scheduler.drop_request(request)
                return
            self._store(page)
            self.scheduler.delete_request(request, page.children, page.encoded, page.links)
        except DropRequest as dropped:
            self._drop(request, dropped)
        except NotNow:
            self.scheduler.release_request(request)
        except StopCrawl as stop:
            self.scheduler.release_request(request)
            self.stop(stop.reason)
        except (Exception, gevent.Timeout) as failure:
            self._fail(request, failure, page)
        except BaseException:  # the worker is killed: the request goes back as it was
            self.scheduler.release_request(request)
            raise
        else:
            self._after_page(bool(page.children))
        finally:
            self.stats.end_page()

    def _parse(self, request: Request, response: Response, page: Page) -> None:
        page.response = response
        self.stats.inc("response_received_count")
        log.debug("crawled %r", response)
        response = self._middlewares.process_response(response)
        page.response = response
        self._run(request.parse, response, page, **(request.cb_kwargs or {}))

    def _run(self, name: str, argument: Any, page: Page, **arguments: Any) -> None:
        """Calls a method of the spider and sorts what it gives into the page's children and items."""
        depth = page.response.meta.get("depth", 0) + 1 if page.response is not None else 1
        children: list[Request] = []
        try:
            try:
                self._collect(results_of(self._method(name)(argument, **arguments)), name, children, page, depth)
            except StopCrawl as stop:
                self.stop(stop.reason)  # what was yielded before is kept
            self._add_children(children, page, depth)
        except (gevent.GreenletExit, StopCrawl):
            raise  # the worker is killed, or a middleware stops the crawl: no failure of the page, which comes again
        except BaseException as error:  # sys.exit() or a cancelled future of a callback must not take the worker along
            raise CallbackFailed(f"{self.spider.name}.{name} failed") from error

    def _collect(self, results: Any, name: str, children: list[Request], page: Page, depth: int) -> None:
        is_generator = type(results) is GeneratorType
        for result in results:
            if isinstance(result, Request):
                children.append(result)
                if is_generator and type(links := results.gi_yieldfrom) is Links:
                    self._add_links(links, children, page, depth)
            elif result is not None:
                refuse_hidden_requests(result, name)
                page.items.append(self._middlewares.process_item(result))

    def _add_links(self, links: Links, children: list[Request], page: Page, depth: int) -> None:
        """What is left of the links that the callback yields from."""
        new, known = self.scheduler.sort_links(links, depth, from_public=page.is_public)
        children += new
        if not known.ids:
            return
        if self._middlewares.passes_all(known.urls, depth):
            page.links.append(known)
        else:
            children += known.requests()

    def _add_children(self, requests: list[Request], page: Page, depth: int) -> None:
        children = self._through_middlewares(requests, depth)
        if page.is_public:
            for child in children:
                child.from_public = True
        page.children += children

    def _method(self, name: str) -> Callable[..., Any]:
        """The spider's method of that name; looked up in its class, so that a stored name is never more than that."""
        if name.startswith("__") or not callable(getattr(type(self.spider), name, None)):
            raise AttributeError(f"the spider {self.spider.name!r} has no method {name!r}")
        method: Callable[..., Any] = getattr(self.spider, name)
        return method

    def _through_middlewares(self, requests: list[Request], depth: int) -> list[Request]:
        """Those that are wanted, as the middlewares would have them; the others are counted."""
        if depth:
            for request in requests:
                if request._meta:
                    request._meta["depth"] = depth
                else:
                    request._meta = {"depth": depth}
                if self._depth_priority:
                    request.priority -= depth * self._depth_priority
        return self._middlewares.process_requests(requests, self._refuse, depth)

    def _refuse(self, request: Request, dropped: DropRequest) -> None:
        count_dropped(self.stats, log, request, dropped)

    def _prepare(self, request: Request) -> Request | None:
        """A request of start_requests, if it is wanted."""
        return next(iter(self._through_middlewares([request], 0)), None)

    def _store(self, page: Page) -> None:
        if page.items:
            through, page.encoded = self._pipelines.process(page.items)
            self._limits.items_stored(len(through), time.monotonic())
            self._pipelines.flush()

    # -- what did not go well -----------------------------------------------------------------------------------------

    def _drop(self, request: Request, dropped: DropRequest) -> None:
        count_dropped(self.stats, log, request, dropped)
        self.scheduler.delete_request(request)
        self._after_page(False)

    def _fail(self, request: Request, failure: BaseException, page: Page) -> None:
        verdict = self._judge(failure, request.retry_time, max_retries=self._retries_of(request), dice=random.random())
        count_failure(self.stats, log, request, failure, verdict)
        outcome = Page(is_public=request.from_public)
        if not isinstance(verdict, Retry) and request.errback:
            self._run_errback(request, failure, page.response, outcome)
        status = getattr(getattr(failure, "response", None), "status_code", 0)
        try:
            self.scheduler.fail_request(
                request, verdict, status=status, children=outcome.children, items=outcome.encoded, links=outcome.links
            )
        except NotStorable as error:
            log_failure(log, f"what the errback of {request!r} yielded is left out", error)
            self.scheduler.fail_request(request, verdict, status=status, items=outcome.encoded)
        self._after_page(True)

    def _retries_of(self, request: Request) -> int:
        retries = request.meta.get("max_retry_times")
        if request.meta.get("dont_retry"):
            return 0
        return retries if isinstance(retries, int) else self._max_retries

    def _run_errback(self, request: Request, failure: BaseException, response: Response | None, page: Page) -> None:
        page.response = getattr(failure, "response", None) or response
        exception = failure.__cause__ if isinstance(failure, CallbackFailed) and failure.__cause__ else failure
        try:
            self._run(str(request.errback), Failure(request, exception, page.response), page)
            self._store(page)
        except StopCrawl as stop:
            self.stop(stop.reason)
        except Exception as error:
            log_failure(log, f"errback of {request!r} failed", error)

    # -- its end ------------------------------------------------------------------------------------------------------

    def _after_page(self, may_have_work: bool) -> None:
        if may_have_work:
            self.on_ready()
        reason = self._limits.reached(self.stats, self._elapsed())
        if reason:
            self.stop(reason)

    def check_limits(self) -> None:
        """Stops the crawl if its time is over; called now and then, since time passes without pages too."""
        reason = self._limits.reached(self.stats, self._elapsed(), time.monotonic())
        if reason:
            self.stop(reason)

    def _elapsed(self) -> float:
        return time.monotonic() - self._started_at

    def stop(self, reason: str) -> None:
        """No new requests from now on; the pages in flight are finished. The first reason stays."""
        if self.finish_reason is None:
            log.info("spider %s stops: %s", self.spider.name, reason)
            self.finish_reason = reason
            self._seeder.stop()
        self._end_if_quiet()

    def check_end(self) -> None:
        """Ends the crawl if the store says that nothing is left to do."""
        if self.finish_reason is None and self.scheduler.finish():
            self.finish_reason = START_ERROR if self._seeder.has_crashed else FINISHED
        self._end_if_quiet()

    def worker_left(self) -> None:
        """A worker is done with a page; the last one of a stopping crawl ends it."""
        self.active -= 1
        self._end_if_quiet()

    def _end_if_quiet(self) -> None:
        if self.finish_reason is not None and self.active == 0 and not self.ended.is_set():
            self._ended_after = self._elapsed()
            self.ended.set()

    def close(self, reason: str | None = None) -> None:
        """Closes pipelines, transport and frontier, once; each gets its turn even if another fails."""
        if self._is_closing:
            self._closed.wait()
            return
        self._is_closing = True
        self.finish_reason = self.finish_reason or reason or "stopped"
        self._end_seeding()
        self._try("closing the pipelines", self._pipelines.close)
        self._try(f"{self.spider.name}.closed", partial(self.spider.closed, self.finish_reason))
        self._try("closing the transport", self.downloader.close)
        for attendant in self._attendants:
            self._try(f"stopping the {type(attendant).__name__.lower()}", attendant.stop)
        self._finish_stats()
        self._try("the last look at the store", self._keep_final)
        self._try("closing the store", self.scheduler.close)
        if self._feed is not None:
            self._try("closing the feed", self._feed.feed.close)
        self._closed.set()

    def _end_seeding(self) -> None:
        """Nobody seeds any more, or waits to: in the middle of a call it would meet a store that is closed."""
        self._seeder.stop()
        if self._seeding is not None:
            self._seeding.kill(timeout=END_SECONDS)

    def _try(self, what: str, step: Callable[[], Any]) -> None:
        try:
            step()
        except Exception as failure:
            self._has_crashed = True
            log_failure(log, f"{what} failed", failure)

    def _keep_final(self) -> None:
        self._final = self._look()

    def _finish_stats(self) -> None:
        self.stats.set("finish_reason", self.finish_reason)
        self.stats.set("finish_time", datetime.now(timezone.utc).isoformat(timespec="seconds"))
        self.stats.set("elapsed_time_seconds", round(self._ended_after or self._elapsed(), 3))

    def snapshot(self) -> CrawlSnapshot:
        """The crawl as it stands; after its end, as it ended. A far store is asked once a second at most."""
        now = time.monotonic()
        if self._final is None and (self._latest is None or now - self._looked_at >= self._look_every_seconds):
            try:
                self._latest, self._looked_at = self._look(), now
            except FrontierError as error:
                log.debug("no news of %s: %s", self.spider.name, error)
        latest = self._final or self._latest
        return latest or CrawlSnapshot(self.spider.name, Counts(), self.stats.as_dict(), [], [], self.finish_reason, [])

    def _look(self) -> CrawlSnapshot:
        frontier = self.scheduler.frontier
        dead = frontier.dead_letters(0, 20)[0] if self.finish_reason else []
        # What all processes counted, and what this one has not told yet or will not: times, reasons.
        counted = {**self.stats.as_dict(), **frontier.stats()} if self.scheduler.committer.is_remote else {}
        return CrawlSnapshot(
            self.spider.name,
            frontier.counts(),
            counted or self.stats.as_dict(),
            self.stats.errors(),
            frontier.sites(5),
            self.finish_reason,
            dead,
        )
