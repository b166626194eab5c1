"""A public page never leads to a private address, in memory and over Redis; a private start page may."""

from __future__ import annotations

import pytest

from scrapy_plus import FakeTransport, Response, Spider, crawl
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.request import Request

START = "http://shop.test/"
INNER = ["http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://localhost:8080/", "http://[::ffff:10.0.0.1]/"]
SECRET = dict.fromkeys(INNER, b"secret")


class Follows(Spider):
    name = "follows"
    start_urls = [START]
    failures: list[str] = []

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a", errback=self.failed)

    def failed(self, failure):
        self.failures.append(f"{type(failure.value).__name__} {failure.request.url}")


def links(*urls: str) -> bytes:
    return "".join(f'<a href="{url}">x</a>' for url in urls).encode()


@pytest.fixture(autouse=True)
def failures(monkeypatch) -> list[str]:
    monkeypatch.setattr(Follows, "failures", [])
    return Follows.failures


def test_no_link_of_a_public_page_is_followed_to_a_private_address_and_the_errback_hears_why(failures):
    result = crawl(Follows, FakeTransport({START: links(*INNER), **SECRET}))
    assert [request.url for request in result.requests] == [START]
    assert sorted(failures) == sorted(f"PrivateAddress {Request(url).url}" for url in INNER)
    assert (result.exit_code, result.dead) == (0, [])
    assert result.stats["downloader/exception_type_count/PrivateAddress"] == len(INNER)


def test_nor_when_cookies_make_another_request_of_the_one_that_is_sent():
    class Logged(Follows):
        def start_requests(self):
            yield Request(START, cookies={"session": "x"})

    result = crawl(Logged, FakeTransport({START: links(*INNER), **SECRET}))
    assert [request.url for request in result.requests] == [START]


@pytest.mark.parametrize("inner", INNER)
def test_no_redirect_of_a_public_page_is_followed_to_a_private_address(inner):
    pages = {START: Response(START, 302, {"Location": inner}), **SECRET}
    result = crawl(Follows, FakeTransport(pages))
    assert [request.url for request in result.requests] == [START]
    assert result.items == []


def test_what_came_from_a_public_page_is_remembered_over_several_hops_and_in_the_store():
    pages = {START: links("/a"), f"{START}a": Response(START, 301, {"Location": "/b"}), f"{START}b": links(INNER[0])}
    result = crawl(Follows, FakeTransport({**pages, **SECRET}))
    assert [request.url for request in result.requests] == [START, f"{START}a", f"{START}b"]
    request = Request(INNER[0])
    request.from_public = True
    assert decode(encode(request)).from_public and not decode(encode(Request(INNER[0]))).from_public
    assert request.replace(url=START).from_public


def test_a_private_start_page_is_crawled_with_all_that_it_leads_to():
    pages = {INNER[0]: links("http://192.168.0.7/x"), "http://192.168.0.7/x": links(START), START: links(INNER[1])}
    spider = Follows()
    spider.start_urls = [INNER[0]]
    result = crawl(spider, FakeTransport({**SECRET, **pages}))
    assert [request.url for request in result.requests] == [INNER[0], "http://192.168.0.7/x", START]


@pytest.mark.parametrize(("mode", "asked"), [("off", {START, INNER[0]}), ("always", set())])
def test_the_setting_may_block_every_private_address_or_none(mode, asked):
    spider = Follows()
    spider.start_urls = [START] if mode == "off" else [INNER[0]]
    result = crawl(spider, FakeTransport({START: links(INNER[0]), **SECRET}), BLOCK_PRIVATE=mode)
    assert {request.url for request in result.requests} == asked
