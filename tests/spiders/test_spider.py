"""The base class of spiders."""

from __future__ import annotations

import pytest

from scrapy_plus.core.spider import Spider
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.item import Item


def urls(requests) -> list[str]:
    return [request.url for request in requests]


def test_start_urls_become_requests_in_order():
    class Shop(Spider):
        name = "shop"
        start_urls = ["http://h.test/1", "http://h.test/2"]

    [one, other] = Shop().start_requests()
    assert (one.url, other.url, one.parse, one.filter) == ("http://h.test/1", "http://h.test/2", "parse", True)


@pytest.mark.parametrize("given", ["http://h.test/", ["http://h.test/"], ("http://h.test/",)])
def test_a_single_start_url_is_read_under_either_name(given):
    assert urls(Spider(start_url=given).start_requests()) == ["http://h.test/"]
    assert urls(Spider(start_urls=given).start_requests()) == ["http://h.test/"]


def test_arguments_become_attributes():
    spider = Spider("tea", category="green", pages="3")
    assert (spider.name, spider.category, spider.pages) == ("tea", "green", "3")


def test_a_spider_without_a_name_bears_that_of_its_class():
    class Quotes(Spider):
        pass

    assert Quotes().name == "Quotes" and Quotes().logger.name == "scrapy_plus.spider.Quotes"
    assert repr(Quotes()) == "<Quotes 'Quotes'>"


def test_a_spider_that_parses_nothing_gives_the_body():
    assert list(Spider().parse(Response("http://h.test/", body=b"x"))) == [Item(b"x")]


def test_start_requests_are_pulled_one_by_one():
    made = []

    class Endless(Spider):
        def start_requests(self):
            while True:
                made.append(1)
                yield Request("http://h.test/")

    requests = iter(Endless().start_requests())
    next(requests)
    next(requests)
    assert len(made) == 2


def test_an_async_start_is_pulled_too():
    class Modern(Spider):
        async def start(self):
            for number in range(3):
                yield Request(f"http://h.test/{number}", callback=self.parse)

    assert urls(Modern().start_requests()) == ["http://h.test/0", "http://h.test/1", "http://h.test/2"]


def test_an_async_start_that_waits_says_that_it_cannot():
    class Waits:
        def __await__(self):
            yield

    class Waiting(Spider):
        async def start(self):
            await Waits()
            yield Request("http://h.test/")

    with pytest.raises(TypeError, match="start"):
        list(Waiting().start_requests())


def test_the_hooks_do_nothing_by_themselves():
    assert Spider().on_idle() is None and Spider().closed("finished") is None
