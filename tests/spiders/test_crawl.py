"""CrawlSpider: links followed by rules."""

from __future__ import annotations

from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.links import LinkExtractor
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.spiders.crawl import CrawlSpider, Rule

SITE = {
    "http://h.test/": '<a href="/list">list</a><a href="/item/1">one</a><a href="/out">out</a>',
    "http://h.test/list": '<a href="/item/2">two</a><a href="/item/1">one</a>',
    "http://h.test/item/1": '<h1>One</h1><a href="/item/3">three</a>',
    "http://h.test/item/2": "<h1>Two</h1>",
    "http://h.test/item/3": "<h1>Three</h1>",
    "http://h.test/out": "<h1>Out</h1>",
}


def crawled(spider):
    """(items, URLs in order) of a crawl of SITE in which every request is stored on its way."""
    items, visited = [], []
    waiting = list(spider.start_requests())
    while waiting and len(visited) < 50:
        request = decode(encode(waiting.pop(0)))
        if request.url in visited:
            continue
        visited.append(request.url)
        response = Response(request.url, body=SITE[request.url], request=request)
        for result in getattr(spider, request.parse)(response, **(request.cb_kwargs or {})) or ():
            (waiting if isinstance(result, Request) else items).append(result)
    return items, visited


class Shop(CrawlSpider):
    name = "shop"
    start_urls = ["http://h.test/"]
    rules = (
        Rule(LinkExtractor(allow="/item/"), callback="parse_item", cb_kwargs={"kind": "item"}),
        Rule(LinkExtractor(allow="/list")),
    )

    def parse_item(self, response, kind):
        yield {"title": response.css("h1::text").get(), "kind": kind, "link": response.meta["link_text"]}


def test_rules_are_followed_and_callbacks_get_their_pages():
    items, visited = crawled(Shop())
    assert visited == ["http://h.test/", "http://h.test/item/1", "http://h.test/list", "http://h.test/item/2"]
    assert items == [
        {"title": "One", "kind": "item", "link": "one"},
        {"title": "Two", "kind": "item", "link": "two"},
    ]


def test_pages_with_a_callback_are_followed_when_asked():
    class Deep(Shop):
        rules = (Rule(LinkExtractor(allow="/item/"), callback="parse_item", cb_kwargs={"kind": "x"}, follow=True),)

    assert crawled(Deep())[1] == ["http://h.test/", "http://h.test/item/1", "http://h.test/item/3"]


def test_a_link_belongs_to_the_first_rule_that_takes_it():
    class Two(Shop):
        rules = (Rule(LinkExtractor(allow="/item/1"), callback="first"), Rule(LinkExtractor(), callback="second"))

        def first(self, response):
            return {"first": response.url}

        def second(self, response):
            return [{"second": response.url}]

    assert crawled(Two())[0] == [
        {"first": "http://h.test/item/1"},
        {"second": "http://h.test/list"},
        {"second": "http://h.test/out"},
    ]


def test_links_and_requests_are_changed_or_dropped_on_their_way():
    class Changed(Shop):
        rules = (
            Rule(LinkExtractor(), callback="parse_url", process_links="only_items", process_request="mark"),
            Rule(LinkExtractor(), process_request=lambda request, response: None),
        )

        def only_items(self, links):
            return [link for link in links if "/item/" in link.url]

        def mark(self, request, response):
            return request.replace(meta={**request.meta, "from": response.url})

        def parse_url(self, response):
            yield {"from": response.meta["from"]}

    items, visited = crawled(Changed())
    assert visited == ["http://h.test/", "http://h.test/item/1"] and items == [{"from": "http://h.test/"}]


def test_start_pages_have_a_method_of_their_own_and_results_are_seen_last():
    class Start(Shop):
        rules = ()

        def parse_start_url(self, response):
            yield {"start": response.url}

        def process_results(self, response, results):
            return [{**one, "seen": True} for one in results]

    assert crawled(Start())[0] == [{"start": "http://h.test/", "seen": True}]


def test_a_callback_may_be_called_parse():
    class Named(Shop):
        rules = (Rule(LinkExtractor(allow="/item/"), callback="parse"),)

        def parse(self, response):
            yield {"url": response.url}

    assert crawled(Named())[0] == [{"url": "http://h.test/item/1"}]


def test_requests_made_without_a_callback_go_by_the_rules():
    class Own(Shop):
        def start_requests(self):
            yield Request("http://h.test/list")

    assert [item["title"] for item in crawled(Own())[0]] == ["Two", "One"]


def test_a_failed_page_is_told_to_the_rules_errback():
    told = []

    class Failing(Shop):
        rules = (
            Rule(LinkExtractor(allow="/item/"), callback="parse_item", errback="failed"),
            Rule(LinkExtractor(allow="/list")),
        )

        def failed(self, failure):
            told.append(failure.request.url)

    spider = Failing()
    requests = list(spider._parse_start(Response("http://h.test/", body=SITE["http://h.test/"])))
    assert [request.errback for request in requests] == ["_rule_failed", None]

    class Failure:
        request = decode(encode(requests[0]))

    getattr(spider, requests[0].errback)(Failure)
    assert told == ["http://h.test/item/1"]
