"""robots.txt: asked for once a site, kept in the crawl's store for all its processes, and obeyed.

A site whose robots.txt is unknown is gated: the store hands out one of its requests at a time, so nobody waits in a
worker. Who has that one asks for robots.txt first, and then opens the site.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from gevent.lock import BoundedSemaphore

from scrapy_plus.errors import BadRedirect, DownloadError, DropRequest, NotNow, RobotsForbidden, RobotsUnreachable
from scrapy_plus.frontier.base import Frontier, SiteFacts
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import canonicalize, site
from scrapy_plus.middlewares.redirect import STATUSES, target
from scrapy_plus.middlewares.site_paces import tell
from scrapy_plus.middlewares.statuses import wait_of
from scrapy_plus.rules.robots import LIFETIME_SECONDS, MAX_REDIRECTS, Met, Robots, met_by, product_of, text_of
from scrapy_plus.rules.throttle import CRAWL_DELAY, written

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
TEXT, STATE = "robots", "robots_state"
REMEMBERED_SITES = 10_000
GIVEN_UP_SECONDS = 60.0
"""How long a file that could not be had for good is not asked for again; its site's requests are given up meanwhile."""
CLAIM_SECONDS = 120.0
"""How long the others go on by the old file while one process asks for a new one."""


class _State(NamedTuple):
    """How a robots.txt was met, until when that counts (the store's clock), and how often in a row it was not had."""

    met: Met
    until: float
    failures: int = 0

    def __str__(self) -> str:
        return f"{self.met.value} {self.until:.3f} {self.failures}"

    @classmethod
    def of(cls, facts: SiteFacts) -> _State | None:
        try:
            met, until, failures = facts.facts[STATE].split()
            return cls(Met(met), float(until), int(failures))
        except (KeyError, ValueError):  # never met, or written by somebody else
            return None


class _Known(NamedTuple):
    """What this process knows: `until` is by its monotonic clock."""

    robots: Robots
    met: Met
    until: float


class RobotsTxt:
    """Refuses what a site's robots.txt forbids to `user_agent` (RobotsForbidden), and keeps to its Crawl-delay.

    A 4xx means that all is allowed. While robots.txt answers 5xx, or cannot be had, nothing of the site is asked: it
    rests for everybody, for `backoff(failures)` seconds, and after `max_retries` more tries its requests are given up
    (RobotsUnreachable). A request with meta dont_obey_robotstxt goes anyway. `fetch` asks for a page, `on_open` hears
    that a site may be asked now. `start_seconds` is how slowly a site is asked whose latency is unknown.
    Source: RFC 9309.
    """

    def __init__(
        self,
        frontier: Frontier,
        *,
        user_agent: str,
        product: str | None = None,
        max_retries: int = 3,
        backoff: Callable[[int], float] = lambda failures: 1.0,
        wait_limit_seconds: float = 600.0,
        delay_limit_seconds: float = 60.0,
        start_seconds: float = 0.0,
        count: Callable[..., None] = lambda *_: None,
    ) -> None:
        self.fetch: Callable[[Request], Response | Request] | None = None
        self.on_open: Callable[[], None] = lambda: None
        self._frontier = frontier
        self._user_agent = user_agent
        self._product = product_of(product or user_agent)
        self._max_retries = max_retries
        self._backoff = backoff
        self._wait_limit_seconds = wait_limit_seconds
        self._delay_limit_seconds = delay_limit_seconds
        self._start_seconds = start_seconds
        self._count = count
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._locks: dict[str, BoundedSemaphore] = {}
        self._opened: set[str] = set()

    def process_request(self, request: Request, spider: Any) -> Response | None:
        place = site(request.url)
        if request.has_meta:
            if request.meta.get(_ITS_OWN):
                return None
            if request.meta.get("dont_obey_robotstxt"):
                self._open_unread(place)
                return None
        known = self._known.get(place)
        if known is None or time.monotonic() >= known.until:
            known = self._learn(place, request)
        if _is_the_file(request):
            return _as_answer(request, known)
        if known.met is Met.UNREACHABLE:
            raise RobotsUnreachable(f"{place}: no robots.txt, so nothing may be asked")
        if not known.robots.allows(request.full_url):
            self._count("robotstxt/forbidden")
            raise RobotsForbidden(f"{place}: its robots.txt forbids {request!r}")
        return None

    # -- what is known ------------------------------------------------------------------------------------------------

    def _learn(self, place: str, request: Request) -> _Known:
        """One at a time: a site may be asked for by requests of another, which a middleware has sent there."""
        with self._locks.setdefault(place, BoundedSemaphore()):
            known = self._known.get(place)
            if known is None or time.monotonic() >= known.until:
                known = self._known[place] = self._look_up(place, request)
                while len(self._known) > REMEMBERED_SITES:
                    self._known.popitem(last=False)
        self._locks.pop(place, None)
        return known

    def _look_up(self, place: str, request: Request) -> _Known:
        """What another process or an earlier run has found out, else what the site says."""
        facts, now = self._frontier.site_facts(place), self._frontier.now()
        state = _State.of(facts)
        if state is not None and not facts.pace.is_gated:
            if state.until > now:
                return self._as_known(state, facts.facts.get(TEXT, ""), now)
            # It is old. This process asks for a new one, and the others go on by the old one meanwhile.
            self._frontier.set_site(place, facts={STATE: str(state._replace(until=now + CLAIM_SECONDS))})
        elif facts.pace.paused_until > now and (state is not None and state.failures):
            self._rest(place, request, facts.pace.paused_until, {})
        return self._asked(place, request, facts, 0 if state is None else state.failures)

    def _as_known(self, state: _State, text: str, now: float) -> _Known:
        return _Known(Robots(text, self._product), state.met, time.monotonic() + state.until - now)

    def _asked(self, place: str, request: Request, facts: SiteFacts, failures: int) -> _Known:
        met, text, wait_seconds = self._ask(place, request)
        now = self._frontier.now()
        if met is Met.UNREACHABLE:
            return self._put_off(place, request, facts, failures + 1, wait_seconds, now)
        state = _State(met, now + LIFETIME_SECONDS)
        known = self._as_known(state, text, now)
        delay = known.robots.delay_seconds(limit_seconds=self._delay_limit_seconds)
        changes = {TEXT: text, STATE: str(state), CRAWL_DELAY: written(delay)}
        slow = tell(self._frontier, place, facts, changes, self._start_seconds, is_gated=False)
        gap = max(slow, facts.pace.delay_seconds)
        if gap and facts.pace.is_gated:  # the file was a request as well: the page comes a delay after it
            self._known[place] = known
            self._rest(place, request, max(facts.pace.paused_until, now + gap), {})
        self.on_open()
        return known

    def _put_off(
        self, place: str, request: Request, facts: SiteFacts, failures: int, wait_seconds: float, now: float
    ) -> _Known:
        """Nothing of the site may be asked: it rests, or is given up for a while if that did not help often enough."""
        if failures <= self._max_retries:
            seconds = max(wait_seconds, self._backoff(failures - 1))
            log.info("%s: its robots.txt cannot be had; the site rests for %.1f s", place, seconds)
            state = _State(Met.UNREACHABLE, now, failures)
            self._rest(place, request, max(facts.pace.paused_until, now + seconds), {STATE: str(state)}, is_gated=True)
        log.warning("%s: its robots.txt cannot be had; its requests are given up for now", place)
        state = _State(Met.UNREACHABLE, now + GIVEN_UP_SECONDS, failures)
        self._frontier.set_site(place, is_gated=False, facts={STATE: str(state)})
        self.on_open()
        return self._as_known(state, "", now)

    def _rest(self, place: str, request: Request, until: float, facts: dict[str, str], **pace: bool) -> None:
        """The site is not asked before `until`, nor the one that the store takes the request for. Raises NotNow."""
        self._frontier.set_site(place, paused_until=until, facts=facts, **pace)
        if request.lease is not None and request.lease.site != place:
            self._frontier.set_site(request.lease.site, paused_until=until)
        raise NotNow(f"{place} is not to be asked yet")

    def _open_unread(self, place: str) -> None:
        """A site whose rules nobody wants to know need not wait for them: it is open until somebody does."""
        if place in self._opened or place in self._known:
            return
        self._opened.add(place)
        facts = self._frontier.site_facts(place)
        if STATE not in facts.facts and facts.pace.is_gated:
            self._frontier.set_site(place, is_gated=False)
            self.on_open()

    # -- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, place: str, request: Request) -> tuple[Met, str, float]:
        """How the site's robots.txt was met, its text, and how long the server asks to be left alone."""
        url = canonicalize(f"{place}/robots.txt")
        for _ in range(MAX_REDIRECTS + 1):
            response = self._fetch(place, url, request)
            if response is None:
                return Met.UNREACHABLE, "", 0.0
            if isinstance(response, Request):
                url = response.url
                continue
            met = met_by(response.status_code)
            location = next(iter(response.headers.getlist("Location")), "").strip()
            if response.status_code not in STATUSES or not location:
                text = text_of(response.body) if met is Met.READ else ""
                return met, text, wait_of(response, self._wait_limit_seconds)
            try:
                url = target(url, location)
            except BadRedirect:
                break
        return Met.ABSENT, "", 0.0  # RFC 9309 §2.3.1.2: after five redirects it may count as not there

    def _fetch(self, place: str, url: str, request: Request) -> Response | Request | None:
        """The answer of this URL; None if there was none. Raises what would meet the request itself as well."""
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
            log.debug("%s: %s", url, error)
            return None
        if isinstance(response, Request):
            return response
        self._count("robotstxt/response_count")
        self._count(f"robotstxt/response_status_count/{response.status_code}")
        return response


def _is_the_file(request: Request) -> bool:
    if not request.url.endswith("/robots.txt") or request.method != "GET":
        return False
    return canonicalize(request.full_url) == canonicalize(f"{site(request.url)}/robots.txt")


def _as_answer(request: Request, known: _Known) -> Response | None:
    """What a spider that asks for the file itself gets (for its sitemaps, say): it is not fetched twice."""
    if known.met is not Met.READ:
        return None
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return Response(request.url, 200, headers, known.robots.text.encode(), request=request, flags=["cached"])
