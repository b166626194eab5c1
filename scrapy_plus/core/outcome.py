"""What a page led to, and how what went wrong is told."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

from scrapy_plus.core.children import KnownLinks
from scrapy_plus.core.stats import ErrorGroup, Stats
from scrapy_plus.errors import CallbackFailed, DropRequest, HttpError
from scrapy_plus.frontier.base import Counts, DeadLetter, SiteFacts
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.rules.judge import Bury, Finish, Retry, Verdict, describe
from scrapy_plus.rules.scope import KINDS_IN_SCRAPY


@dataclass(slots=True)
class Failure:
    """What an errback gets: the request, the response if there was one, and the exception."""

    request: Request
    exception: BaseException
    response: Response | None = None

    @property
    def value(self) -> BaseException:
        return self.exception

    def check(self, *kinds: type[BaseException]) -> type[BaseException] | None:
        """The first of `kinds` that the exception is an instance of, or None."""
        return next((kind for kind in kinds if isinstance(self.exception, kind)), None)


@dataclass(slots=True)
class Page:
    """What one request led to, until it is settled; `links`: further children, of which it is known that they were
    seen; `encoded`: what the crawl's store takes in of the items.

    `is_public`: it came from the public internet, and so does what it leads to.
    """

    children: list[Request] = field(default_factory=list)
    links: list[KnownLinks] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    encoded: list[bytes] = field(default_factory=list)
    is_public: bool = False
    response: Response | None = None


@dataclass(frozen=True, slots=True)
class CrawlSnapshot:
    """One spider's crawl at one moment, for displays."""

    spider: str
    counts: Counts
    stats: dict[str, Any]
    errors: list[ErrorGroup]
    sites: list[tuple[str, SiteFacts]]
    finish_reason: str | None
    dead: list[DeadLetter]


def results_of(given: Any) -> Iterable[Any]:
    """What a method of a spider gave, one by one: it may be a generator, a list, a single object or None."""
    if type(given) is GeneratorType or isinstance(given, (list, tuple, set, Iterator)):
        return given
    if given is None:
        return ()
    if hasattr(given, "__aiter__") or hasattr(given, "__await__"):
        if hasattr(given, "close"):
            given.close()  # a coroutine that is never awaited would warn of itself
        raise TypeError("async callbacks are not supported; write a plain method (gevent makes it concurrent)")
    return (given,)


def refuse_hidden_requests(result: Any, name: str) -> None:
    """A generator or a list of requests, yielded whole, would end as an item, and its pages would never be crawled."""
    if type(result) is dict:
        return
    is_hidden = isinstance(result, Iterator) or (
        isinstance(result, (list, tuple)) and any(isinstance(one, Request) for one in result)
    )
    if is_hidden:
        raise TypeError(f"{name} yielded a {type(result).__name__} of results; write `yield from`")


def count_dropped(stats: Stats, log: logging.Logger, request: Request, dropped: DropRequest) -> None:
    """Counts what is not wanted by its kind, the first words of the reason, and under Scrapy's name if it has one."""
    log.debug("dropped %r: %s", request, dropped)
    kind = str(dropped).partition(":")[0] or "unsaid"
    stats.inc("request_dropped_count")
    stats.inc(f"request_dropped_reasons_count/{kind}")
    if kind in KINDS_IN_SCRAPY:
        stats.inc(KINDS_IN_SCRAPY[kind])


def count_failure(
    stats: Stats, log: logging.Logger, request: Request, failure: BaseException, verdict: Verdict
) -> None:
    """Counts and logs a failure under Scrapy's names, and groups it by reason once it is final."""
    reason = describe(failure)
    if isinstance(failure, CallbackFailed):
        cause = failure.__cause__ or failure
        stats.inc("spider_exceptions_count")
        stats.inc(f"spider_exceptions/{type(cause).__name__}")
        log_failure(log, f"{failure} on {request!r}", cause)
    elif not hasattr(failure, "permanent"):  # no failure of the network, but of somebody's code
        stats.inc(f"exceptions/{type(failure).__name__}")
        log_failure(log, f"a middleware or pipeline failed on {request!r}", failure)
    if isinstance(verdict, Retry):
        stats.inc("retry/count")
        stats.inc(f"retry/reason_count/{type(failure).__name__}")
        log.debug("retrying %r in %.1f s: %s", request, verdict.delay_seconds, reason)
        return
    stats.error(reason, request.full_url)
    if isinstance(verdict, Finish) and isinstance(failure, HttpError):
        stats.inc("httperror/response_ignored_count")
        stats.inc(f"httperror/response_ignored_status_count/{failure.response.status_code}")
        log.info("ignored %r: %s", request, reason)
    elif isinstance(verdict, Finish):
        log.info("not asked %r: %s", request, reason)
    elif isinstance(verdict, Bury):
        if request.retry_time:
            stats.inc("retry/max_reached")
        log.warning("buried %r after %d tries: %s", request, request.attempt, reason)


def log_failure(log: logging.Logger, what: str, failure: BaseException) -> None:
    """An error line with the failure's own traceback."""
    log.error("%s", what, exc_info=(type(failure), failure, failure.__traceback__))
