"""robots.txt in whole crawls: fetched once, obeyed, and what happens when it cannot be had."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_plus import FakeTransport, Request, Response, Spider, crawl
from scrapy_plus.errors import ConnectionFailed

HOME, ROBOTS = "http://shop.test/", "http://shop.test/robots.txt"
OPEN = {"ROBOTSTXT_OBEY": True, "RETRY_BACKOFF_SECONDS": 0.01}


class ShopSpider(Spider):
    name = "shop"
    start_urls = [HOME]
    failures: list[str] = []

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a", errback=self.failed)

    def failed(self, failure):
        self.failures.append(type(failure.value).__name__)


def page(*paths: str) -> bytes:
    return "".join(f'<a href="{path}">x</a>' for path in paths).encode()


def asked(result: Any) -> list[str]:
    return [request.url.removeprefix("http://shop.test") for request in result.requests]


SITE = {HOME: page("/open", "/shut/a", "/shut/b"), **{f"{HOME}{path}": b"x" for path in ("open", "shut/a", "shut/b")}}
RULES = b"User-agent: *\nDisallow: /shut"


@pytest.fixture(autouse=True)
def failures(monkeypatch) -> list[str]:
    monkeypatch.setattr(ShopSpider, "failures", [])
    return ShopSpider.failures


def test_it_is_asked_for_once_and_first_and_what_it_forbids_is_not_asked(failures):
    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: RULES}), **OPEN)
    assert asked(result)[:2] == ["/robots.txt", "/"] and sorted(asked(result)[2:]) == ["/open"]
    assert failures == ["RobotsForbidden"] * 2
    assert (result.exit_code, result.dead) == (0, [])
    stats = result.stats
    assert (stats["robotstxt/forbidden"], stats["robotstxt/request_count"]) == (2, 1)
    assert stats["robotstxt/response_status_count/200"] == 1


def test_without_the_setting_nobody_asks_for_it():
    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: RULES}))
    assert sorted(asked(result)) == ["/", "/open", "/shut/a", "/shut/b"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_4xx_allows_everything(status):
    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: Response(ROBOTS, status, body=RULES)}), **OPEN)
    assert len(result.items) == 4


@pytest.mark.parametrize("trouble", [Response(ROBOTS, 500), Response(ROBOTS, 429), ConnectionFailed("gone")])
def test_while_it_cannot_be_had_nothing_is_asked_and_when_it_can_the_crawl_goes_on(trouble):
    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: [trouble, RULES]}), **OPEN)
    assert asked(result) == ["/robots.txt", "/robots.txt", "/", "/open"]
    assert result.exit_code == 0 and "retry/count" not in result.stats, "no page is to blame for it"


def test_a_site_whose_rules_can_never_be_had_ends_in_the_dead_letters():
    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: Response(ROBOTS, 503)}), **OPEN, MAX_RETRY_TIMES=1)
    assert asked(result) == ["/robots.txt"] * 2
    assert result.exit_code == 3 and result.dead[0].reason.startswith("RobotsUnreachable: http://shop.test:80")


@pytest.mark.parametrize("hops", [1, 5])
def test_redirects_are_followed_also_to_another_host(hops):
    chain = {ROBOTS: Response(ROBOTS, 301, {"Location": "http://other.test/1"})}
    for hop in range(1, hops):
        url = f"http://other.test/{hop}"
        chain[url] = Response(url, 302, {"Location": f"/{hop + 1}"})
    result = crawl(ShopSpider, FakeTransport({**SITE, **chain, f"http://other.test/{hops}": RULES}), **OPEN)
    assert result.stats["robotstxt/forbidden"] == 2


def test_after_too_many_redirects_it_counts_as_not_there():
    for_ever = Response(ROBOTS, 302, {"Location": "/robots.txt"})
    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: for_ever}), **OPEN)
    assert len(result.items) == 4 and result.stats["robotstxt/request_count"] == 6


def test_a_request_may_say_that_it_goes_anyway():
    class Anyway(ShopSpider):
        def start_requests(self):
            yield Request(f"{HOME}shut/a", meta={"dont_obey_robotstxt": True})

    result = crawl(Anyway, FakeTransport({**SITE, ROBOTS: b"User-agent: *\nDisallow: /"}), **OPEN)
    assert asked(result) == ["/shut/a"]


def test_it_is_asked_for_through_the_users_middlewares_too():
    class Proxied:
        def process_request(self, request, spider):
            request.meta["proxy"] = "http://proxy.test"

    result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: RULES}), **OPEN, DOWNLOADER_MIDDLEWARES=[Proxied])
    assert {request.meta.get("proxy") for request in result.requests} == {"http://proxy.test"}
    assert result.stats["robotstxt/forbidden"] == 2


def test_what_a_middleware_answers_itself_needs_no_robots_txt():
    class Offline:
        def process_request(self, request, spider):
            return Response(request.url, body=SITE[request.url])

    result = crawl(ShopSpider, FakeTransport({}), **OPEN, DOWNLOADER_MIDDLEWARES=[Offline])
    assert (result.requests, len(result.items)) == ([], 4)


def test_the_crawler_is_called_by_the_name_it_is_given():
    rules = b"User-agent: teabot\nDisallow: /shut\n\nUser-agent: *\nDisallow: /"
    for named in ({"USER_AGENT": "TeaBot/2.0 (+http://h.test)"}, {"ROBOTSTXT_USER_AGENT": "teabot"}):
        result = crawl(ShopSpider, FakeTransport({**SITE, ROBOTS: rules}), **OPEN, **named)
        assert sorted(asked(result)) == ["/", "/open", "/robots.txt"]


def test_each_site_has_its_own_and_a_redirect_is_looked_up_where_it_leads():
    pages = {
        HOME: Response(HOME, 302, {"Location": "http://other.test/shut"}),
        ROBOTS: b"",
        "http://other.test/robots.txt": RULES,
        "http://other.test/shut": b"x",
    }
    result = crawl(ShopSpider, FakeTransport(pages), **OPEN)
    assert [request.url for request in result.requests] == [ROBOTS, HOME, "http://other.test/robots.txt"]


def test_many_requests_of_a_site_wait_for_it_in_the_store_and_not_in_workers():
    class Many(ShopSpider):
        start_urls = [f"{HOME}{number}" for number in range(50)] + ["http://other.test/"]

    seen: list[str] = []

    def slow_robots(request):
        import gevent

        gevent.sleep(0.2)
        seen.append("robots")
        return RULES

    def other(request):
        seen.append("other")
        return b"x"

    pages = {ROBOTS: slow_robots, "http://other.test/": other, **{f"{HOME}{number}": b"x" for number in range(50)}}
    result = crawl(Many, FakeTransport(pages), **OPEN, CONCURRENT_REQUESTS=4)
    assert seen == ["other", "robots"] and len(result.items) == 51
    assert asked(result).count("/robots.txt") == 1


def test_limits_and_delays_hold_when_it_is_known():
    running = most = 0

    def slow(request):
        nonlocal running, most
        import gevent

        running += 1
        most = max(most, running)
        gevent.sleep(0.01)
        running -= 1
        return b"x"

    class Many(ShopSpider):
        start_urls = [f"{HOME}{number}" for number in range(20)]

    pages = {ROBOTS: b"", **{f"{HOME}{number}": slow for number in range(20)}}
    crawl(Many, FakeTransport(pages), **OPEN, CONCURRENT_REQUESTS_PER_DOMAIN=3)
    assert most == 3
    most = 0
    crawl(Many, FakeTransport(pages), **OPEN, DOWNLOAD_SLOTS={"shop.test": {"concurrency": 2}})
    assert most == 2
    most = 0
    Many.start_urls = Many.start_urls[:4]
    crawl(Many, FakeTransport({**pages, ROBOTS: b"User-agent: *\nCrawl-delay: 0.3"}), **OPEN)
    assert most == 1, "a page takes a thirtieth of the Crawl-delay"
