"""The life of a crawl, from a spider's first request to the exit code, without a network."""

from __future__ import annotations

import time

import gevent
import pytest

from scrapy_plus import (
    DontCloseSpider,
    DropItem,
    DropRequest,
    FakeTransport,
    Item,
    Request,
    Response,
    Spider,
    StopCrawl,
    crawl,
)
from scrapy_plus.errors import ConnectionFailed, DownloadTimeout

A, B, C = "http://shop.test/a", "http://shop.test/b", "http://shop.test/c"


def page(body: str = "", **arguments) -> Response:
    return Response("http://shop.test/", body=body.encode(), **arguments)


def site(*urls: str, **others) -> FakeTransport:
    return FakeTransport({**{url: page(f"<title>{url}</title>") for url in urls}, **others})


class ShopSpider(Spider):
    name = "shop"
    start_urls = [A]


def urls(result) -> list[str]:
    return [request.url for request in result.requests]


# -- what callbacks may give -------------------------------------------------------------------------------------------


def test_a_crawl_follows_links_stores_items_and_ends_by_itself():
    class Follows(ShopSpider):
        def parse(self, response):
            yield {"url": response.url, "title": response.css("title::text").get()}
            if response.url == A:
                yield response.follow("/b")
                yield response.follow("/b")

    result = crawl(Follows, site(A, B))
    assert result.items == [{"url": A, "title": A}, {"url": B, "title": B}]
    assert urls(result) == [A, B]
    assert (result.finish_reason, result.exit_code) == ("finished", 0)
    assert result.stats["dupefilter/filtered"] == 1
    assert result.stats["item_scraped_count"] == result.stats["response_received_count"] == 2


@pytest.mark.parametrize(
    ("given", "items"),
    [
        (lambda: None, []),
        (lambda: {"n": 1}, [{"n": 1}]),
        (lambda: [{"n": 1}, {"n": 2}], [{"n": 1}, {"n": 2}]),
        (lambda: iter([{"n": 1}, None]), [{"n": 1}]),
        (lambda: Item({"n": 1}), [Item({"n": 1})]),
        (lambda: "text", ["text"]),
    ],
    ids=["nothing", "a dict", "a list", "an iterator", "an Item", "a string"],
)
def test_a_callback_may_return_a_generator_a_list_one_object_or_nothing(given, items):
    class Gives(ShopSpider):
        def parse(self, response):
            return given()

    result = crawl(Gives, site(A))
    assert (result.items, result.exit_code) == (items, 0)


def test_an_async_callback_is_refused_with_the_reason():
    class Asks(ShopSpider):
        async def parse(self, response):
            return None

    result = crawl(Asks, site(A))
    assert "async callbacks are not supported" in result.dead[0].reason


def test_both_idioms_of_naming_a_callback_reach_it_with_meta_and_arguments():
    class Two(Spider):
        name = "two"

        def start_requests(self):
            yield Request(A, parse="parse_detail", meta={"page": 1}, filter=False)
            yield Request(B, callback=self.parse_book, cb_kwargs={"shelf": 3}, dont_filter=True)

        def parse_detail(self, response):
            yield Item({"page": response.meta["page"]})

        def parse_book(self, response, shelf):
            return {"shelf": shelf}

    result = crawl(Two, site(A, B))
    assert [getattr(item, "data", item) for item in result.items] == [{"page": 1}, {"shelf": 3}]


def test_unfiltered_requests_are_crawled_each_time_they_come():
    class Again(ShopSpider):
        def parse(self, response):
            return [Request(B, filter=False), Request(B, filter=False), Request(B)] if response.url == A else None

    assert urls(crawl(Again, site(A, B))) == [A, B, B, B]


def test_without_the_dupefilter_every_request_is_crawled():
    class Repeats(ShopSpider):
        start_urls = [A, A, A]

        def parse(self, response):
            return None

    assert len(crawl(Repeats, site(A), DUPEFILTER=False).requests) == 3
    assert len(crawl(Repeats, site(A)).requests) == 1


@pytest.mark.parametrize(
    ("order", "expected"), [("fifo", [A, B, C]), ("LifoQueue", [A, C, B]), ("priority", [A, C, B])]
)
def test_the_queue_class_decides_the_order(order, expected):
    class Orders(ShopSpider):
        def parse(self, response):
            if response.url == A:
                yield Request(B)
                yield Request(C, priority=5)

    assert urls(crawl(Orders, site(A, B, C), SCHEDULER_QUEUE_CLASS=order, CONCURRENT_REQUESTS=1)) == expected


def test_depth_is_counted_and_limited():
    class Deep(ShopSpider):
        def parse(self, response):
            yield {"depth": response.meta.get("depth", 0)}
            yield Request(f"{response.url}x")

    result = crawl(Deep, FakeTransport({}, missing=200), DEPTH_LIMIT=2)
    assert [item["depth"] for item in result.items] == [0, 1, 2]


ORDERS_BY_DEPTH = [(0, 1, "AXYB"), (2, 1, "AXBY"), (0, 0, "AXBY"), (-1, 0, "AXYB")]


@pytest.mark.parametrize(("depth_priority", "own", "order"), ORDERS_BY_DEPTH)
def test_pages_near_the_start_or_far_from_it_come_first(depth_priority, own, order):
    links = {"A": "XB", "X": "Y"}

    class Tree(ShopSpider):
        start_urls = ["http://shop.test/A"]

        def parse(self, response):
            for name in links.get(response.url[-1], ""):
                yield Request(f"http://shop.test/{name}", priority=own if name == "Y" else 0)

    pages = FakeTransport({}, missing=200)
    result = crawl(Tree, pages, DEPTH_PRIORITY=depth_priority, CONCURRENT_REQUESTS=1)
    assert "".join(url[-1] for url in urls(result)) == order
    assert result.stats["scheduler/enqueued"] == 4


def test_a_redirect_is_as_deep_and_as_urgent_as_what_was_redirected():
    class Tree(ShopSpider):
        start_urls = [A]

        def parse(self, response):
            yield {"depth": response.meta.get("depth", 0), "priority": response.request.priority}
            if response.url == A:
                yield Request(B, priority=50)

    pages = FakeTransport({A: b"x", B: Response(B, 302, {"Location": C}), C: b"x"})
    result = crawl(Tree, pages, DEPTH_PRIORITY=10, REDIRECT_PRIORITY_ADJUST=0)
    assert result.items == [{"depth": 0, "priority": 0}, {"depth": 1, "priority": 40}]


def test_what_is_out_of_bounds_never_enters_the_queue_and_is_counted_under_scrapys_names():
    class Bounded(ShopSpider):
        allowed_domains = ["shop.test"]
        start_urls = [A]

        def parse(self, response):
            for url in ("http://other.test/", A + "x" * 60, f"{A}.PDF", B):
                yield Request(url)

    pages = FakeTransport({A: b"x", B: b"x"})
    result = crawl(Bounded, pages, URLLENGTH_LIMIT=60, DENIED_EXTENSIONS=["pdf"], DEPTH_LIMIT=1)
    assert urls(result) == [A, B]
    stats = result.stats
    assert stats["scheduler/enqueued"] == 2
    assert (stats["offsite/filtered"], stats["urllength/request_ignored_count"]) == (2, 2)
    reasons = {name.rpartition("/")[2]: count for name, count in stats.items() if "dropped_reasons" in name}
    assert reasons == {"offsite": 2, "url length": 2, "extension": 1, "depth": 2}


# -- what goes wrong spoils only its own page --------------------------------------------------------------------------


def test_a_callback_that_raises_spoils_only_its_own_page(caplog):
    class Breaks(ShopSpider):
        start_urls = [A, B]

        def parse(self, response):
            yield {"url": response.url}
            if response.url == A:
                raise KeyError("price")

    result = crawl(Breaks, site(A, B))
    assert result.items == [{"url": B}], "a page that fails gives nothing, not half"
    assert result.exit_code == 3
    assert [(letter.reason, letter.attempts) for letter in result.dead] == [("KeyError: 'price'", 1)]
    assert result.stats["spider_exceptions/KeyError"] == 1
    [logged] = [record for record in caplog.records if record.exc_info]
    assert A in logged.getMessage()
    assert "raise KeyError" in caplog.text


def test_a_callback_that_calls_sys_exit_spoils_only_its_own_page():
    class Exits(ShopSpider):
        start_urls = [A, B]

        def parse(self, response):
            if response.url == A:
                raise SystemExit(9)
            return {"url": response.url}

    result = crawl(Exits, site(A, B))
    assert (result.items, result.exit_code) == ([{"url": B}], 3)


@pytest.mark.parametrize("failure", [GeneratorExit(), KeyboardInterrupt(), gevent.Timeout(1)], ids=repr)
def test_no_exception_of_a_callback_takes_a_worker_along(failure):
    class Raises(ShopSpider):
        start_urls = [A, B]

        def parse(self, response):
            if response.url == A:
                raise failure
            return {"url": response.url}

    result = crawl(Raises, site(A, B), CONCURRENT_REQUESTS=1)
    assert (result.items, result.exit_code) == ([{"url": B}], 3)


def test_odd_words_in_meta_do_not_spoil_the_crawl():
    class Odd(Spider):
        name = "odd"

        def start_requests(self):
            yield Request(A, meta={"max_retry_times": "x", "handle_httpstatus_list": 5})
            yield Request(B)

        def parse(self, response):
            return {"url": response.url}

    result = crawl(Odd, site(A, B), MAX_RETRY_TIMES=0)
    assert {"url": B} in result.items
    assert result.exit_code in (0, 3)


def test_a_priority_that_a_middleware_spoils_spoils_only_its_page():
    class Spoils:
        def process_request(self, request):
            if request.url == C:
                request.priority = 1.5
            return request

    class Links(ShopSpider):
        start_urls = [A, B]

        def parse(self, response):
            yield {"url": response.url}
            if response.url == A:
                yield Request(C)

    result = crawl(Links, site(A, B, C), SPIDER_MIDDLEWARES=[Spoils()])
    assert {"url": B} in result.items
    assert "priority: 1.5" in result.dead[0].reason


@pytest.mark.parametrize("name", ["parse_nothing", "__init__", "name"])
def test_a_callback_that_the_spider_does_not_have_is_a_dead_letter(name):
    class Missing(ShopSpider):
        def start_requests(self):
            yield Request(A, parse=name)

    result = crawl(Missing, site(A))
    assert f"has no method '{name}'" in result.dead[0].reason


@pytest.mark.parametrize("failure", [ConnectionFailed("refused"), DownloadTimeout("slow"), page(status_code=503)])
def test_what_may_pass_is_retried_and_then_a_dead_letter(failure):
    result = crawl(ShopSpider, FakeTransport({A: failure}), MAX_RETRY_TIMES=2, RETRY_BACKOFF_SECONDS=0.01)
    assert len(result.requests) == 3
    assert [letter.attempts for letter in result.dead] == [3]
    assert result.stats["retry/count"] == 2
    assert result.stats["retry/max_reached"] == 1
    assert result.exit_code == 3


def test_a_request_that_succeeds_in_the_end_leaves_no_dead_letter():
    class Counts(ShopSpider):
        def parse(self, response):
            return {"retry_time": response.request.retry_time}

    transport = FakeTransport({A: [ConnectionFailed("refused"), page(status_code=500), page("fine")]})
    result = crawl(Counts, transport, RETRY_BACKOFF_SECONDS=0.01)
    assert (result.items, result.exit_code) == ([{"retry_time": 2}], 0)


@pytest.mark.parametrize(("meta", "tries"), [({"dont_retry": True}, 1), ({"max_retry_times": 1}, 2), ({}, 4)])
def test_a_request_may_bring_its_own_number_of_retries(meta, tries):
    class Own(Spider):
        name = "own"

        def start_requests(self):
            yield Request(A, meta=meta)

    result = crawl(Own, FakeTransport({A: ConnectionFailed("refused")}), RETRY_BACKOFF_SECONDS=0.01)
    assert len(result.requests) == tries


def test_while_one_request_waits_for_its_retry_others_are_crawled():
    class Waits(ShopSpider):
        start_urls = [A, B, C]

        def parse(self, response):
            return {"url": response.url}

    transport = site(B, C, **{A: [ConnectionFailed("refused"), page("fine")]})
    result = crawl(Waits, transport, CONCURRENT_REQUESTS=1, RETRY_BACKOFF_SECONDS=0.2)
    assert urls(result) == [A, B, C, A]


def test_a_final_answer_of_the_server_is_counted_and_done():
    result = crawl(ShopSpider, FakeTransport({A: page(status_code=404)}))
    assert (result.items, result.dead, result.exit_code) == ([], [], 0)
    assert result.stats["httperror/response_ignored_status_count/404"] == 1


def test_a_status_that_the_spider_asks_to_see_reaches_its_callback():
    class Sees(ShopSpider):
        handle_httpstatus_list = [404]

        def parse(self, response):
            return {"status": response.status_code}

    assert crawl(Sees, FakeTransport({A: page(status_code=404)})).items == [{"status": 404}]


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [(ConnectionFailed("refused"), "ConnectionFailed", None), (page(status_code=404), "HttpError", 404)],
)
def test_the_errback_sees_a_failure_once_and_may_yield(answer, kind, status):
    class Hears(Spider):
        name = "hears"

        def start_requests(self):
            yield Request(A, errback=self.failed, meta={"n": 7})

        def failed(self, failure):
            response = failure.response
            yield {
                "kind": type(failure.value).__name__,
                "n": failure.request.meta["n"],
                "status": response.status_code if response else None,
            }
            yield Request(B, callback="seen")

        def seen(self, response):
            return {"url": response.url}

    result = crawl(Hears, site(B, **{A: answer}), MAX_RETRY_TIMES=1, RETRY_BACKOFF_SECONDS=0.01)
    assert result.items == [{"kind": kind, "n": 7, "status": status}, {"url": B}]


def test_the_errback_of_a_failed_callback_gets_what_it_raised():
    class Hears(Spider):
        name = "hears"

        def start_requests(self):
            yield Request(A, errback=self.failed)

        def parse(self, response):
            raise KeyError("price")

        def failed(self, failure):
            return {"is_key_error": failure.check(ValueError, KeyError) is KeyError, "url": failure.response.url}

    result = crawl(Hears, site(A))
    assert result.items == [{"is_key_error": True, "url": A}]
    assert result.exit_code == 3


def test_an_errback_that_raises_does_not_keep_its_request_from_the_dead_letters():
    class Breaks(Spider):
        name = "breaks"

        def start_requests(self):
            yield Request(A, errback=self.failed)

        def failed(self, failure):
            raise ValueError("in errback")

    result = crawl(Breaks, FakeTransport({A: ConnectionFailed("refused")}), MAX_RETRY_TIMES=0)
    assert [letter.reason for letter in result.dead] == ["ConnectionFailed: refused"]


def test_meta_that_cannot_be_stored_any_more_spoils_only_its_own_page():
    class Spoils(ShopSpider):
        start_urls = [A, B]

        def parse(self, response):
            request = Request(C)
            if response.url == A:
                request.meta["lock"] = object()
            yield request
            yield {"url": response.url}

    result = crawl(Spoils, site(A, B, C))
    assert "meta['lock']" in result.dead[0].reason
    assert {item["url"] for item in result.items} >= {B, C}


# -- middlewares and pipelines -----------------------------------------------------------------------------------------


def test_a_pipeline_that_raises_makes_its_page_come_again_and_stores_it_once():
    class Fails:
        failures = 1

        def process_item(self, item, spider):
            if item["n"] == 2 and self.failures:
                self.failures -= 1
                raise OSError("disk full")
            return item

    class Two(ShopSpider):
        def parse(self, response):
            return [{"n": 1}, {"n": 2}]

    stored = []

    class Stores:
        def store(self, items, spider):
            stored.extend(items)

    result = crawl(Two, site(A), PIPELINES=[Fails(), Stores()], RETRY_BACKOFF_SECONDS=0.01)
    assert stored == [{"n": 1}, {"n": 2}]
    assert result.exit_code == 0
    assert result.stats["exceptions/OSError"] == 1


def test_a_dropped_item_goes_no_further_and_the_rest_does():
    class Picky:
        def process_item(self, item, spider):
            if item["n"] == 1:
                raise DropItem("not wanted")
            return item

    class Two(ShopSpider):
        def parse(self, response):
            return [{"n": 1}, {"n": 2}]

    result = crawl(Two, site(A), PIPELINES=[Picky()])
    assert result.items == [{"n": 2}]
    assert result.stats["item_dropped_count"] == 1


def test_a_middleware_may_answer_drop_or_fail_a_request():
    class Middle:
        def process_request(self, request):
            if request.url == A:
                return page("from the middleware")
            if request.url == B:
                raise DropRequest("unwanted: b")
            raise RuntimeError("broken middleware")

    class Three(ShopSpider):
        start_urls = [A, B, C]

        def parse(self, response):
            return {"text": response.text}

    result = crawl(
        Three, site(A, B, C), DOWNLOADER_MIDDLEWARES=[Middle()], MAX_RETRY_TIMES=1, RETRY_BACKOFF_SECONDS=0.01
    )
    assert result.items == [{"text": "from the middleware"}]
    assert result.requests == []
    assert result.stats["request_dropped_reasons_count/unwanted"] == 1
    assert [letter.reason for letter in result.dead] == ["RuntimeError: broken middleware"]


def test_spider_middlewares_see_every_request_response_and_item():
    class Marks:
        def process_request(self, request):
            request.meta["marked"] = True
            return request

        def process_item(self, item):
            return {**item, "checked": True}

    class Looks(ShopSpider):
        def parse(self, response):
            yield {"marked": response.meta["marked"]}

    assert crawl(Looks, site(A), SPIDER_MIDDLEWARES=[Marks()]).items == [{"marked": True, "checked": True}]


# -- redirects walk through the frontier -------------------------------------------------------------------------------


def hop(to: str, status: int = 302) -> Response:
    return page(status_code=status, headers={"Location": to})


def test_a_redirect_leads_to_the_callback_with_its_chain():
    class Lands(ShopSpider):
        def parse(self, response):
            return {
                "url": response.url,
                "from": response.meta["redirect_urls"],
                "status": response.history[0].status_code,
            }

    result = crawl(Lands, site(C, **{A: hop("/b"), B: hop("http://shop.test/c", 301)}))
    assert result.items == [{"url": C, "from": [A, B], "status": 302}]


def test_a_page_reached_by_a_redirect_and_by_a_link_is_crawled_once():
    class Both(ShopSpider):
        start_urls = [A, B, C]

        def parse(self, response):
            return {"url": response.url}

    result = crawl(Both, site(B, **{A: hop("/b"), C: hop("/b")}))
    assert urls(result).count(B) == 1
    assert result.items == [{"url": B}]


def test_a_redirect_loop_ends_in_one_recorded_error():
    result = crawl(ShopSpider, FakeTransport({A: hop("/b"), B: hop("/a")}), REDIRECT_MAX_TIMES=5)
    assert len(result.requests) == 6
    assert len(result.dead) == 1
    assert result.dead[0].reason.startswith("BadRedirect")


def test_a_page_that_redirects_to_itself_once_for_a_cookie_is_reached():
    transport = FakeTransport(
        {A: [page(status_code=302, headers={"Location": "/a", "Set-Cookie": "seen=1"}), page("in")]}
    )

    class Enters(ShopSpider):
        def parse(self, response):
            return {"text": response.text}

    result = crawl(Enters, transport)
    assert result.items == [{"text": "in"}]
    assert [request.headers.get("Cookie") for request in result.requests] == [None, "seen=1"]


# -- begin and end -----------------------------------------------------------------------------------------------------


def test_stop_crawl_keeps_what_was_yielded_before_and_stops():
    class Stops(ShopSpider):
        start_urls = [A, B, C]

        def parse(self, response):
            yield {"url": response.url}
            raise StopCrawl("enough")

    result = crawl(Stops, site(A, B, C), CONCURRENT_REQUESTS=1)
    assert (result.items, result.finish_reason, result.exit_code) == ([{"url": A}], "enough", 0)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"CLOSESPIDER_PAGECOUNT": 5}, "closespider_pagecount"),
        ({"CLOSESPIDER_ITEMCOUNT": 5}, "closespider_itemcount"),
        ({"CLOSESPIDER_ERRORCOUNT": 2}, "closespider_errorcount"),
        ({"CLOSESPIDER_TIMEOUT": 0.2}, "closespider_timeout"),
        ({"CLOSESPIDER_TIMEOUT_NO_ITEM": 0.2}, "closespider_timeout_no_item"),
    ],
)
def test_an_endless_crawl_ends_at_its_limit(setting, reason):
    class Endless(ShopSpider):
        def parse(self, response):
            yield Request(f"{response.url}x")
            if len(response.url) % 4 and "TIMEOUT_NO_ITEM" not in str(setting):
                yield {"url": response.url}
            if "ERRORCOUNT" in str(setting):
                yield from self.start_requests_of_errors()

        def start_requests_of_errors(self):
            yield Request("http://shop.test/error" + str(time.monotonic_ns()), callback="parse_error")

        def parse_error(self, response):
            raise ValueError("an error")

    result = crawl(Endless, EndlessTransport(), URLLENGTH_LIMIT=0, **setting)
    assert result.finish_reason == reason
    assert result.stats["response_received_count"] < 5000


class EndlessTransport(FakeTransport):
    """Every URL is there."""

    def __init__(self) -> None:
        super().__init__({})

    def fetch(self, request, **limits):
        gevent.sleep(0.001)
        return Response(request.full_url, body=b"x", request=request)


def test_seeds_are_pulled_no_faster_than_they_are_worked_off():
    pulled = []

    class Millions(Spider):
        name = "millions"

        def start_requests(self):
            for number in range(10_000_000):
                pulled.append(number)
                yield Request(f"http://shop.test/{number}")

        def parse(self, response):
            return None

    crawl(Millions, EndlessTransport(), CLOSESPIDER_PAGECOUNT=100, START_REQUESTS_BUFFER=50)
    assert 100 <= len(pulled) <= 250


def test_a_start_requests_that_raises_is_told_and_what_came_before_is_crawled(caplog):
    class Breaks(Spider):
        name = "breaks"

        def start_requests(self):
            yield Request(A)
            raise ValueError("no more seeds")

        def parse(self, response):
            return {"url": response.url}

    result = crawl(Breaks, site(A))
    assert (result.items, result.exit_code) == ([{"url": A}], 1)
    assert "no more seeds" in caplog.text


def test_one_wrong_start_url_does_not_cost_the_others(caplog):
    class Slips(Spider):
        name = "slips"
        start_urls = [A, "shop.test/no-scheme", 7, B]

        def parse(self, response):
            return {"url": response.url}

    result = crawl(Slips, site(A, B))
    assert [item["url"] for item in result.items] == [A, B]
    assert (result.exit_code, result.finish_reason) == (1, "start_error")
    assert "shop.test/no-scheme" in caplog.text


def test_a_spider_with_nothing_to_start_with_says_so(caplog):
    class Typo(Spider):
        name = "typo"
        start_ursl = [A]

    assert crawl(Typo, site(A)).exit_code == 0
    assert "has nothing to start with" in caplog.text


@pytest.mark.parametrize("hidden", [lambda r: r.follow_all(["/b"]), lambda r: [Request(B)]], ids=["generator", "list"])
def test_requests_that_would_be_lost_inside_an_item_are_refused(hidden):
    class Forgets(ShopSpider):
        def parse(self, response):
            yield hidden(response)

    result = crawl(Forgets, site(A, B))
    assert "write `yield from`" in result.dead[0].reason


def test_a_list_without_requests_is_an_item():
    class Lists(ShopSpider):
        def parse(self, response):
            yield [1, 2]

    assert crawl(Lists, site(A)).items == [[1, 2]]


def test_a_seed_that_is_no_request_is_told(caplog):
    class Wrong(Spider):
        name = "wrong"

        def start_requests(self):
            yield A

    assert crawl(Wrong, site(A)).exit_code == 1
    assert "which is no Request" in caplog.text


def test_a_crawl_without_seeds_ends_at_once():
    class Nothing(Spider):
        name = "nothing"

    result = crawl(Nothing, site())
    assert (result.finish_reason, result.exit_code, result.requests) == ("finished", 0, [])


def test_on_idle_is_asked_once_when_nothing_is_left_and_may_yield():
    calls = []

    class Idles(ShopSpider):
        def parse(self, response):
            return {"url": response.url}

        def on_idle(self):
            calls.append(len(calls))
            yield Request(B, filter=False)

    result = crawl(Idles, site(A, B))
    assert [item["url"] for item in result.items] == [A, B]
    assert calls == [0]


def test_dont_close_spider_makes_on_idle_come_again(monkeypatch):
    monkeypatch.setattr("scrapy_plus.core.seeder.IDLE_CHECK_SECONDS", 0.01)
    calls = []

    class Idles(ShopSpider):
        def parse(self, response):
            return {"url": response.url}

        def on_idle(self):
            calls.append(len(calls))
            if len(calls) == 2:
                yield Request(B)
            if len(calls) < 4:
                raise DontCloseSpider

    result = crawl(Idles, site(A, B))
    assert [item["url"] for item in result.items] == [A, B]
    assert calls == [0, 1, 2, 3]


def test_closed_is_called_with_the_reason_and_pipelines_are_closed():
    told = []

    class Pipe:
        def open_spider(self, spider):
            told.append("pipeline opened")

        def close_spider(self, spider):
            told.append("pipeline closed")

    class Tells(ShopSpider):
        def parse(self, response):
            return None

        def closed(self, reason):
            told.append(reason)

    crawl(Tells, site(A), PIPELINES=[Pipe()])
    assert told == ["pipeline opened", "pipeline closed", "finished"]


def test_start_requests_that_still_wait_are_ended_before_anything_is_closed():
    told = []

    class Waits(ShopSpider):
        def start_requests(self):
            try:
                yield Request(A)
                gevent.sleep(60)
            finally:
                told.append("seeds ended")

        def parse(self, response):
            raise StopCrawl("enough")

        def closed(self, reason):
            told.append(reason)

    assert crawl(Waits, site(A)).exit_code == 0
    assert told == ["seeds ended", "enough"]


def test_a_closed_that_raises_does_not_hang_and_is_in_the_exit_code(caplog):
    class Breaks(ShopSpider):
        def parse(self, response):
            return None

        def closed(self, reason):
            raise ValueError("in closed")

    assert crawl(Breaks, site(A)).exit_code == 1
    assert "in closed" in caplog.text


# -- concurrency and pace ----------------------------------------------------------------------------------------------


class Watched(FakeTransport):
    """Every URL is there after a moment; it notes when each was asked, and how many at a time."""

    def __init__(self, seconds: float = 0.02) -> None:
        super().__init__({})
        self.seconds = seconds
        self.started: list[float] = []
        self.running = self.most = 0

    def fetch(self, request, **limits):
        self.started.append(time.monotonic())
        self.running += 1
        self.most = max(self.most, self.running)
        gevent.sleep(self.seconds)
        self.running -= 1
        return Response(request.full_url, body=b"x", request=request)


class Many(Spider):
    name = "many"
    start_urls = [f"http://shop.test/{n}" for n in range(40)]

    def parse(self, response):
        return None


def test_concurrency_is_reached_and_never_exceeded():
    transport = Watched()
    crawl(Many, transport, CONCURRENT_REQUESTS=7)
    assert transport.most == 7


def test_a_domain_is_asked_no_more_at_a_time_than_allowed():
    transport = Watched()
    crawl(Many, transport, CONCURRENT_REQUESTS=20, CONCURRENT_REQUESTS_PER_DOMAIN=3)
    assert transport.most == 3
    assert len(transport.started) == 40


def test_a_delay_holds_between_all_requests_to_a_site():
    transport = Watched(0.0)

    class Few(Many):
        start_urls = Many.start_urls[:6]

    crawl(Few, transport, DOWNLOAD_DELAY=0.05)
    gaps = [later - earlier for earlier, later in zip(transport.started, transport.started[1:], strict=False)]
    assert len(gaps) == 5
    assert min(gaps) >= 0.049


def test_a_slot_may_have_a_pace_of_its_own():
    transport = Watched()
    crawl(Many, transport, CONCURRENT_REQUESTS=20, DOWNLOAD_SLOTS={"shop.test": {"concurrency": 2}})
    assert transport.most == 2


def test_waiting_for_a_slow_page_costs_no_cpu():
    class One(Many):
        start_urls = Many.start_urls[:1]

    before = time.process_time()
    crawl(One, Watched(2.0), CONCURRENT_REQUESTS=64)
    assert time.process_time() - before < 0.5, "a busy wait would have taken about 2 s"
