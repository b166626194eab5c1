"""However a callback hands its links on, the crawl is the same; those that are known cost no request."""

from __future__ import annotations

import logging
import random

import pytest

from scrapy_plus import FakeTransport, Request, Response, Spider, StopCrawl, crawl
from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.http import follow
from scrapy_plus.http.codec import decode

PAGES = 30
ODD = ["mailto:x@y.test", "javascript:go()", "//other.test/a", "http://other.test/b", "/file.pdf", "/" + "x" * 90, "#t"]


def body(number: int) -> str:
    chance = random.Random(number)
    links = [f"/p/{chance.randrange(PAGES)}" for _ in range(6)] + chance.sample(ODD, 3)
    links += [f"{chance.randrange(PAGES)}#part", f"../p/{chance.randrange(PAGES)}?b=1&a=2"]
    return "".join(f'<a href="{link}">x</a>' for link in links)


def whole_site() -> FakeTransport:
    urls = {f"http://shop.test/p/{number}{query}": number for number in range(PAGES) for query in ("", "?b=1&a=2")}
    return FakeTransport({url: body(number) for url, number in urls.items()})


class Walk(Spider):
    name = "walk"
    start_urls = ["http://shop.test/p/0"]


class FromAll(Walk):
    def parse(self, response):
        yield {"before": response.url}
        yield from response.follow_all(xpath="//a/@href", callback=self.parse)
        yield {"after": response.url}


class FromElements(Walk):
    def parse(self, response):
        yield {"before": response.url}
        yield from response.follow_all(css="a", callback="parse")
        yield {"after": response.url}


class OneByOne(Walk):
    def parse(self, response):
        yield {"before": response.url}
        for request in response.follow_all(css="a"):  # noqa: UP028  that is what is compared
            yield request
        yield {"after": response.url}


class WithArguments(Walk):
    def parse(self, response):
        yield {"before": response.url}
        yield from response.follow_all(css="a", errback="failed")
        yield {"after": response.url}

    def failed(self, failure): ...


class Watching:
    """A spider middleware that wants to see each request."""

    def __init__(self):
        self.seen = []

    def process_request(self, request):
        self.seen.append((request.url, request.meta.get("depth")))


SETTINGS = {
    "as it comes": {},
    "bounds": {"DEPTH_LIMIT": 3, "URLLENGTH_LIMIT": 60, "DENIED_EXTENSIONS": ["pdf"], "CLOSESPIDER_PAGECOUNT": 0},
    "no filter": {"DUPEFILTER": False, "DEPTH_LIMIT": 1},
    "fragments count": {"FINGERPRINT_FRAGMENTS": True},
    "last in, first out": {"SCHEDULER_ORDER": "lifo"},
    "deep ones first": {"DEPTH_PRIORITY": -1},
}


@pytest.mark.parametrize("spider", [FromAll, FromElements, WithArguments])
@pytest.mark.parametrize("domains", [None, ["shop.test"]])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_crawl_is_the_same_however_the_links_are_handed_on(spider, domains, settings):
    found = []
    for kind in (OneByOne, spider):
        bounded = type(kind.__name__, (kind,), {"allowed_domains": domains})
        result = crawl(bounded, whole_site(), CONCURRENT_REQUESTS=1, ROBOTSTXT_OBEY=False, **settings)
        counts = {name: value for name, value in result.stats.items() if isinstance(value, int)}
        found.append(([one.url for one in result.requests], result.items, counts, result.exit_code))
    assert found[0] == found[1]
    assert len(found[0][0]) > 5


def test_a_middleware_that_wants_to_see_each_request_sees_those_of_known_links_too():
    seen = []
    for kind in (OneByOne, FromAll):
        watching = Watching()
        crawl(kind, whole_site(), CONCURRENT_REQUESTS=1, SPIDER_MIDDLEWARES=[watching])
        seen.append(sorted(watching.seen, key=str))
    assert seen[0] == seen[1]
    assert len(seen[0]) > 200


def test_known_links_become_no_requests(monkeypatch):
    made = []
    plain_request = follow.plain_request

    def count(*arguments):
        made.append(arguments)
        return plain_request(*arguments)

    monkeypatch.setattr(follow, "plain_request", count)
    result = crawl(FromAll, whole_site(), CONCURRENT_REQUESTS=1)
    assert len(made) == result.stats["item_scraped_count"] // 2, "the first link of each page"
    assert result.stats["dupefilter/filtered"] > 2 * len(result.requests)


def test_what_a_callback_raises_behind_its_links_takes_them_back():
    class Failing(Walk):
        def parse(self, response):
            yield from response.follow_all(css="a")
            raise RuntimeError("no")

    result = crawl(Failing, whole_site(), RETRY_ENABLED=False)
    assert [one.url for one in result.requests] == Walk.start_urls
    assert result.exit_code == 3


def test_all_duplicates_are_logged_when_asked_for(caplog):
    logged = []
    for kind in (OneByOne, FromAll):
        caplog.clear()
        with caplog.at_level(logging.INFO, "scrapy_plus.scheduler"):
            crawl(kind, whole_site(), CONCURRENT_REQUESTS=1, DUPEFILTER_DEBUG=True)
        logged.append(sorted(one.getMessage() for one in caplog.records if "duplicate" in one.getMessage()))
    assert logged[0] == logged[1]
    assert len(logged[0]) > 100


def test_a_known_link_that_was_forgotten_meanwhile_is_taken_in_whole():
    frontier = MemoryFrontier()
    scheduler = Scheduler(frontier)
    page = Response("http://shop.test/", body=b'<a href="/a">a</a><a href="/b">b</a><a href="/c">c</a>')
    for path in "ab":
        scheduler.add_request(Request(f"http://shop.test/{path}"))
    for _ in "ab":
        scheduler.delete_request(scheduler.get_request())
    scheduler.add_request(Request("http://shop.test/"))
    request = scheduler.get_request()
    new, known = scheduler.sort_links(page.follow_all(css="a", callback="item"), 4, from_public=True)
    assert ([one.url for one in new], known.urls) == (["http://shop.test/c"], ["http://shop.test/a", "http://shop.test/b"])
    frontier.forget(known.ids[1:])
    scheduler.delete_request(request, [Request("http://shop.test/a"), *new], links=[known])
    waiting = [decode(payload) for _, payload, _ in frontier.waiting()[0]]
    assert [(one.url, one.parse) for one in waiting] == [("http://shop.test/c", "item"), ("http://shop.test/b", "item")]
    assert waiting[1].meta == {"depth": 4} and waiting[1].from_public
    assert scheduler.stats.get("dupefilter/filtered") == 2, "the request and the link for what is still known"


def test_what_a_callback_yielded_before_it_stopped_the_crawl_is_kept():
    class Stops(Walk):
        def parse(self, response):
            yield {"url": response.url}
            yield response.follow("/p/1?mine")
            yield from response.follow_all(css="a")
            raise StopCrawl("enough")

    result = crawl(Stops, whole_site())
    assert (result.finish_reason, len(result.items)) == ("enough", 1)
    assert [one.url for one in result.requests] == Walk.start_urls
    links = result.stats["scheduler/enqueued"] + result.stats["dupefilter/filtered"] - 1
    assert links == len(list(Response("http://shop.test/p/0", body=body(0).encode()).follow_all(css="a"))) + 1


def test_a_middleware_that_stops_the_crawl_gives_its_page_back():
    class Stopping:
        def process_request(self, request):
            if request.meta.get("depth"):
                raise StopCrawl("enough")

    result = crawl(FromAll, whole_site(), SPIDER_MIDDLEWARES=[Stopping()])
    assert result.finish_reason == "enough"
    assert result.stats["scheduler/enqueued"] == 1 and "item_scraped_count" not in result.stats
