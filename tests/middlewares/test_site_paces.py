"""Sites that say how they want to be asked: Retry-After, refusals, latency; one store, several processes."""

from __future__ import annotations

import time
from email.utils import formatdate

import gevent
import pytest

from scrapy_plus import FakeTransport, Request, Response, Spider, crawl
from scrapy_plus.errors import NotNow
from scrapy_plus.frontier.base import Lease
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.middlewares import site_paces
from scrapy_plus.middlewares.site_paces import Rests, SitePaces
from scrapy_plus.rules.pace import Pace
from scrapy_plus.rules.throttle import AutoThrottle

SITE, URL = "http://shop.test:80", "http://shop.test/"
FAST = {"RETRY_BACKOFF_SECONDS": 0.01, "SLOWDOWN_MAX_DELAY": 0}


class Many(Spider):
    name = "many"
    start_urls = [f"{URL}{number}" for number in range(12)]

    def parse(self, response):
        yield {"url": response.url}


class Site:
    """Pages that note when they were asked; the first is refused once, with this Retry-After."""

    def __init__(self, status: int = 429, wait: object = "1", *, every: bool = False) -> None:
        self.times: list[float] = []
        self.refused: list[float] = []
        self._status, self._wait, self._every = status, wait, every
        self.transport = FakeTransport(dict.fromkeys(Many.start_urls, self._answer))

    def _answer(self, request):
        self.times.append(time.monotonic())
        gevent.sleep(0.01)
        if not self.refused or (self._every and request.url == f"{URL}0"):
            self.refused.append(time.monotonic())
            wait = self._wait() if callable(self._wait) else self._wait
            return Response(request.url, self._status, {"Retry-After": wait})
        return b"x"


@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after_lets_the_whole_site_rest_and_then_all_pages_come(status):
    site = Site(status)
    result = crawl(Many, site.transport, **FAST, CONCURRENT_REQUESTS=2)
    later = [at - site.refused[0] for at in site.times if at > site.refused[0] + 0.02]
    assert len(result.items) == 12 and result.dead == []
    assert min(later) > 0.95, "one was under way with it; all others wait, whichever they are"


def test_a_date_is_waited_for_as_well():
    site = Site(wait=lambda: formatdate(time.time() + 2, usegmt=True))
    crawl(Many, site.transport, **FAST, CONCURRENT_REQUESTS=1)
    assert site.times[1] - site.times[0] > 0.9


def test_retry_after_is_cut_at_the_setting_and_zero_does_not_heed_it():
    begun = time.monotonic()
    result = crawl(Many, Site(wait="86400").transport, **FAST, RETRY_AFTER_MAX_SECONDS=0.3)
    assert len(result.items) == 12 and time.monotonic() - begun > 0.25
    result = crawl(Many, Site(wait="86400").transport, **FAST, RETRY_AFTER_MAX_SECONDS=0)
    assert len(result.items) == 12


def test_who_is_refused_for_ever_is_a_dead_letter_that_its_errback_saw():
    seen = []

    class Listening(Many):
        def start_requests(self):
            yield Request(f"{URL}0", errback="failed")

        def failed(self, failure):
            seen.append(failure.response.status_code)

    result = crawl(Listening, Site(wait="0", every=True).transport, **FAST, MAX_RETRY_TIMES=2)
    [dead] = result.dead
    assert (dead.reason, dead.attempts, dead.status) == ("RetryStatus: HTTP 429", 3, 429)
    assert seen == [429] and result.stats["retry/max_reached"] == 1 and result.exit_code == 3


def test_a_request_that_was_handed_out_before_the_pause_goes_back():
    frontier = MemoryFrontier()
    paces = SitePaces(frontier)
    request = Request(URL)
    request.lease = Lease(b"x" * 20, ("w", 1), b"", SITE)
    Rests(paces).process_request(request)
    paces.refused(SITE, 503, 30.0)
    with pytest.raises(NotNow):
        Rests(paces).process_request(request)
    assert 29 < frontier.site_facts(SITE).pace.paused_until - frontier.now() <= 30


def test_the_longest_pause_counts():
    frontier = MemoryFrontier()
    frontier.set_site(SITE, paused_until=frontier.now() + 100)
    SitePaces(frontier).refused(SITE, 503, 5.0)
    assert frontier.site_facts(SITE).pace.paused_until - frontier.now() > 99


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def frontier():
    return MemoryFrontier()


def slow_of(frontier) -> float:
    return frontier.site_facts(SITE).pace.slow_seconds


def test_refusals_slow_a_site_down_once_for_many_that_come_together(frontier, monkeypatch):
    paces = SitePaces(frontier)
    for _ in range(16):
        paces.refused(SITE, 429)
    assert slow_of(frontier) == 0.25
    monkeypatch.setattr(site_paces, "STEP_SECONDS", 0.0)
    paces.refused(SITE, 429)
    assert slow_of(frontier) == 0.5


def test_of_two_processes_that_are_refused_together_one_slows_the_site_down(frontier):
    one, two = SitePaces(frontier), SitePaces(frontier)
    one.refused(SITE, 429)
    two.refused(SITE, 429)
    assert slow_of(frontier) == 0.25


@pytest.mark.parametrize(("good_between", "is_slowed"), [(0, True), (1, True), (4, True), (5, False), (49, False)])
def test_a_503_now_and_then_is_of_a_page_and_many_are_of_the_site(frontier, good_between, is_slowed):
    paces, delays = SitePaces(frontier), set()
    for _ in range(20):
        paces.refused(SITE, 503)
        delays.add(slow_of(frontier))
        for _ in range(good_between):
            paces.answered(SITE, 200, None)
    assert (max(delays) > 0) is is_slowed


def test_good_answers_bring_a_site_back_without_a_call_for_each(frontier, monkeypatch):
    monkeypatch.setattr(site_paces, "STEP_SECONDS", 0.0)
    calls = []
    set_site = frontier.set_site
    monkeypatch.setattr(frontier, "set_site", lambda *a, **k: (calls.append(k), set_site(*a, **k)))
    one, two = SitePaces(frontier), SitePaces(frontier)
    for _ in range(4):
        one.refused(SITE, 429)
    assert slow_of(frontier) == 2.0
    two.refused(SITE, 429)
    assert slow_of(frontier) == 2.0, "it hears that others saw to it"
    before, answers = len(calls), 0
    while slow_of(frontier):
        one.answered(SITE, 200, None)
        answers += 1
        assert answers < 200
    assert answers > 20 and len(calls) - before < answers / 2
    assert frontier.site_facts(SITE).pace == Pace() and not frontier.site_facts(SITE).facts


def test_a_page_that_fails_does_not_make_a_site_faster(frontier):
    paces = SitePaces(frontier)
    paces.refused(SITE, 429)
    for _ in range(50):
        paces.answered(SITE, 500, None)
    assert slow_of(frontier) == 0.25


def test_a_crawl_that_is_too_fast_for_a_site_ends_with_all_its_pages():
    times: list[float] = []

    def answer(request):
        now = time.monotonic()
        is_too_fast = len([at for at in times if now - at < 0.5]) >= 5
        times.append(now)
        return Response(request.url, 429) if is_too_fast else b"x"

    transport = FakeTransport(dict.fromkeys(Many.start_urls, answer))
    result = crawl(Many, transport, CONCURRENT_REQUESTS=12, RETRY_BACKOFF_SECONDS=0.1, MAX_RETRY_TIMES=5)
    assert len(result.items) == 12 and result.dead == []


def test_without_the_setting_nothing_slows_down(frontier):
    paces = SitePaces(frontier, overload_max_seconds=0)
    paces.refused(SITE, 429)
    assert slow_of(frontier) == 0


# -- latency ----------------------------------------------------------------------------------------------------------


def test_latency_makes_the_delay_of_all_processes_and_the_second_begins_where_the_first_is():
    frontier = MemoryFrontier(pace=Pace(slow_seconds=5.0))
    one, two = (SitePaces(frontier, auto=AutoThrottle(start_seconds=5.0)) for _ in range(2))
    for _ in range(40):
        one.answered(SITE, 200, 0.4)
    assert slow_of(frontier) == pytest.approx(0.4, rel=0.25)
    two.answered(SITE, 200, 0.4)
    assert slow_of(frontier) == pytest.approx(0.4, rel=0.25)
    two.answered(SITE, 200, 3.0)
    assert slow_of(frontier) == 3.0
    one.answered(SITE, 200, 0.4)
    one.answered(SITE, 200, 3.1)
    assert slow_of(frontier) == pytest.approx(3.0, rel=0.25), "one has heard of it"


def test_what_robots_txt_asks_for_is_kept_whatever_the_latency():
    frontier = MemoryFrontier(pace=Pace(slow_seconds=5.0))
    frontier.set_site(SITE, facts={"crawl_delay": "2"})
    paces = SitePaces(frontier, auto=AutoThrottle(start_seconds=5.0))
    for _ in range(40):
        paces.answered(SITE, 200, 0.1)
    assert slow_of(frontier) == 2.0


def test_a_site_with_auto_throttle_is_asked_by_about_as_many_as_the_target_says():
    running = most = 0
    times = []

    def answer(request):
        nonlocal running, most
        times.append(time.monotonic())
        running += 1
        most = max(most, running)
        gevent.sleep(0.1)
        running -= 1
        return b"x"

    transport = FakeTransport(dict.fromkeys(Many.start_urls, answer))
    throttled = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.3}
    result = crawl(Many, transport, CONCURRENT_REQUESTS=8, **throttled)
    gaps = [after - before for before, after in zip(times, times[1:], strict=False)]
    assert len(result.items) == 12 and most <= 2 and gaps[0] > 0.25 and min(gaps) > 0.08


def test_auto_throttle_never_goes_below_the_delay_of_the_settings():
    times = []

    def answer(request):
        times.append(time.monotonic())
        return b"x"

    class Few(Many):
        start_urls = Many.start_urls[:5]

    transport = FakeTransport(dict.fromkeys(Many.start_urls, answer))
    crawl(Few, transport, AUTOTHROTTLE_ENABLED=True, AUTOTHROTTLE_START_DELAY=0, DOWNLOAD_DELAY=0.2)
    assert min(after - before for before, after in zip(times, times[1:], strict=False)) > 0.18
