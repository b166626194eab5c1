"""robots.txt: asked for once a site, kept in the crawl's store for all its processes, and obeyed.

While a site's robots.txt is unknown the store hands out one of its requests at a time, so nobody waits in a worker: who
has that one asks for robots.txt first, and then opens the site with the pace that it is to have.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from gevent.lock import BoundedSemaphore

from scrapy_plus.errors import BadRedirect, DownloadError, DropRequest, RobotsForbidden, RobotsUnreachable
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import canonicalize, site
from scrapy_plus.middlewares.redirect import STATUSES, target
from scrapy_plus.rules.pace import Pace
from scrapy_plus.rules.robots import LIFETIME_SECONDS, MAX_REDIRECTS, Robots, product_of, text_of

log = logging.getLogger("scrapy_plus.robots")

_ITS_OWN = "robotstxt"
# So it comes back as it is, by way of the same proxies and middlewares as the pages.
_ASKED_WITH = {
    _ITS_OWN: True,
    "dont_redirect": True,
    "dont_retry": True,
    "handle_httpstatus_all": True,
    "dont_merge_cookies": True,
}
REMEMBERED_SITES = 10_000
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 300.0
TOO_MANY = 429


class _Known(NamedTuple):
    robots: Robots
    until: float


class RobotsTxt:
    """Refuses what a site's robots.txt forbids to `user_agent` (RobotsForbidden), and keeps to its Crawl-delay.

    `pace_of` says how a site is asked otherwise. A 4xx means that all is allowed; while robots.txt answers 5xx, or
    cannot be had, nothing of the site is asked: it is paused for everybody, and its requests are retried. A request
    with meta dont_obey_robotstxt goes anyway. `fetch` asks for a page, `on_open` hears that a site may be asked now.
    Source: RFC 9309.
    """

    def __init__(
        self,
        frontier: Frontier,
        *,
        user_agent: str,
        product: str | None = None,
        pace_of: Callable[[str], Pace] = lambda place: Pace(),
        delay_limit_seconds: float = 60.0,
        count: Callable[..., None] = lambda *_: None,
    ) -> None:
        self.fetch: Callable[[Request], Response | Request] | None = None
        self.on_open: Callable[[], None] = lambda: None
        self._frontier = frontier
        self._user_agent = user_agent
        self._product = product_of(product or user_agent)
        self._pace_of = pace_of
        self._delay_limit_seconds = delay_limit_seconds
        self._count = count
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._locks: dict[str, BoundedSemaphore] = {}
        self._failures: dict[str, int] = {}
        self._opened: set[str] = set()

    def process_request(self, request: Request, spider: Any) -> None:
        place = site(request.url)
        if request.has_meta:
            if request.meta.get(_ITS_OWN):
                return
            if request.meta.get("dont_obey_robotstxt"):
                self._open_unread(place)
                return
        if not self._robots(place, request).allows(request.full_url):
            self._count("robotstxt/forbidden")
            raise RobotsForbidden(f"{place}: its robots.txt forbids {request!r}")

    # -- what is known ------------------------------------------------------------------------------------------------

    def _robots(self, place: str, request: Request) -> Robots:
        known = self._known.get(place)
        if known is not None and time.time() < known.until:
            return known.robots
        with self._locks.setdefault(place, BoundedSemaphore()):
            known = self._known.get(place)
            if known is None or time.time() >= known.until:
                known = self._stored(place) or self._asked(place, request)
                self._known[place] = known
                while len(self._known) > REMEMBERED_SITES:
                    self._known.popitem(last=False)
        self._locks.pop(place, None)
        return known.robots

    def _stored(self, place: str) -> _Known | None:
        """What another process, or an earlier run, has found out."""
        facts = self._frontier.site_facts(place).facts
        until = float(facts.get("robots_until", 0))
        if until <= time.time():
            return None
        return _Known(Robots(facts.get("robots", ""), self._product), until)

    def _asked(self, place: str, request: Request) -> _Known:
        text = self._text(place, request)
        robots = Robots(text, self._product)
        until = time.time() + LIFETIME_SECONDS
        self._open(place, robots, {"robots": text, "robots_until": f"{until:.0f}"})
        return _Known(robots, until)

    def _open(self, place: str, robots: Robots | None, facts: dict[str, str]) -> None:
        pace = self._pace_of(place)
        asked = 0.0 if robots is None else robots.delay_seconds(limit_seconds=self._delay_limit_seconds)
        delay = max(pace.delay_seconds, asked)
        # The request that is at hand goes now; the store did not know yet that the next one has to keep away from it.
        paused_until = self._frontier.now() + delay if delay else None
        self._frontier.set_site(
            place,
            delay_seconds=delay,
            limit=pace.limit,
            paused_until=paused_until,
            jitter=pace.jitter,
            facts=facts,
        )
        self.on_open()

    def _open_unread(self, place: str) -> None:
        """A site whose rules nobody wants to know need not wait for them."""
        if place in self._opened or place in self._known:
            return
        self._opened.add(place)
        if "robots_until" not in self._frontier.site_facts(place).facts:
            self._open(place, None, {})

    # -- asking -------------------------------------------------------------------------------------------------------

    def _text(self, place: str, request: Request) -> str:
        """The robots.txt of a site; empty if it has none. Raises RobotsUnreachable."""
        url = canonicalize(f"{place}/robots.txt")
        for _ in range(MAX_REDIRECTS + 1):
            response = self._fetch(place, url, request)
            if isinstance(response, Request):
                url = response.url
                continue
            status = response.status_code
            if status >= 500 or status == TOO_MANY:
                raise self._unreachable(place, f"HTTP {status}")
            location = response.headers.get("Location", "")
            if status not in STATUSES or not location:
                self._failures.pop(place, None)
                return text_of(response.body) if status < 300 else ""
            try:
                url = target(url, str(location))
            except BadRedirect:
                return ""
        return ""  # RFC 9309 §2.3.1.2: after five redirects it may count as not there

    def _fetch(self, place: str, url: str, request: Request) -> Response | Request:
        assert self.fetch is not None
        asked = Request(url, headers={"User-Agent": self._user_agent}, proxy=request.proxy, meta=_ASKED_WITH)
        asked.from_public = request.from_public
        if request.has_meta and "proxy" in request.meta:
            asked.meta["proxy"] = request.meta["proxy"]
        self._count("robotstxt/request_count")
        try:
            response = self.fetch(asked)
        except DropRequest:
            return Response(url, 404)  # a middleware of the user's does not want it to be asked for
        except DownloadError as error:
            self._count("robotstxt/exception_count")
            self._count(f"robotstxt/exception_type_count/{type(error).__name__}")
            if error.permanent and site(url) == place:
                raise
            raise self._unreachable(place, str(error)) from error
        if isinstance(response, Request):
            return response
        self._count("robotstxt/response_count")
        self._count(f"robotstxt/response_status_count/{response.status_code}")
        return response

    def _unreachable(self, place: str, why: str) -> RobotsUnreachable:
        """Pauses the site for everybody, longer each time."""
        times = self._failures[place] = self._failures.get(place, 0) + 1
        seconds = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2 ** min(times - 1, 20))
        self._frontier.set_site(place, paused_until=self._frontier.now() + seconds)
        log.info("%s: its robots.txt cannot be had (%s); the site is paused for %.0f s", place, why, seconds)
        return RobotsUnreachable(f"{place}: no robots.txt, so nothing may be asked ({why})")
