"""Names that people know from Scrapy or from the course framework mean here what they mean there."""

from __future__ import annotations

import importlib
import logging

import pytest

import scrapy_plus
from scrapy_plus import (
    CloseSpider,
    FakeTransport,
    FormRequest,
    IgnoreRequest,
    JsonRequest,
    Request,
    Response,
    Spider,
    crawl,
)
from scrapy_plus.core.stats import Stats
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.request import FIELDS

URL = "http://shop.test/"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("http", ["Request", "Response", "FormRequest", "JsonRequest", "LinkExtractor"]),
        ("spiders", ["Spider", "CrawlSpider", "Rule", "SitemapSpider"]),
        ("items", ["Item"]),
        ("errors", ["CloseSpider", "IgnoreRequest", "DropItem", "DontCloseSpider"]),
    ],
)
def test_the_packages_give_what_the_framework_gives(module, names):
    package = importlib.import_module(f"scrapy_plus.{module}")
    assert [getattr(package, name) for name in names] == [getattr(scrapy_plus, name) for name in names]


def test_close_spider_ends_a_crawl_and_ignore_request_drops_one():
    class Shop(Spider):
        name = "shop"
        start_urls = (URL, "http://shop.test/2")

        def parse(self, response):
            raise CloseSpider("enough")

    class Picky:
        def process_request(self, request):
            if request.url == URL:
                raise IgnoreRequest("not this one")

    result = crawl(Shop, FakeTransport({"http://shop.test/2": ""}), DOWNLOADER_MIDDLEWARES=[Picky])
    assert result.finish_reason == "enough"
    assert [request.url for request in result.requests] == ["http://shop.test/2"]


@pytest.mark.parametrize(
    ("request_", "same"),
    [
        (lambda: Request(URL, formdata={"q": "tea"}), Request(URL, "POST", data={"q": "tea"})),
        (lambda: Request(URL, "PUT", formdata={"q": "tea"}), Request(URL, "PUT", data={"q": "tea"})),
        (
            lambda: FormRequest(URL, formdata={"q": "tea"}, callback="found"),
            Request(URL, "POST", data={"q": "tea"}, parse="found"),
        ),
        (lambda: FormRequest(URL, {"q": "tea"}, method="get"), Request(URL, params={"q": "tea"})),
        (lambda: FormRequest(URL), Request(URL)),
        (lambda: JsonRequest(URL, data={"q": "tea"}), Request(URL, "POST", json={"q": "tea"})),
        (lambda: JsonRequest(URL, data=[], method="PUT"), Request(URL, "PUT", json=[])),
        (lambda: JsonRequest(URL), Request(URL)),
        (lambda: Request(URL, dofilter=False), Request(URL, filter=False)),
        (
            lambda: Request(URL).replace(dofilter=False, formdata={"q": "tea"}),
            Request(URL, "POST", data={"q": "tea"}, filter=False),
        ),
        (lambda: Request(URL, proxies="http://p:1"), Request(URL, proxy="http://p:1")),
        (lambda: Request(URL, proxies={"https": "http://s:1", "http": "http://p:1"}), Request(URL, proxy="http://p:1")),
        (lambda: Request(URL, proxies={"all": "http://a:1"}), Request(URL, proxy="http://a:1")),
        (lambda: Request(URL, proxies={"https": "http://s:1"}), Request(URL)),
    ],
)
def test_a_request_written_in_other_words_is_the_same_also_when_stored(request_, same):
    made = request_()
    for one in (made, made.copy(), decode(encode(made))):
        assert type(one) is Request
        assert [getattr(one, name) for name in FIELDS] == [getattr(same, name) for name in FIELDS]
        assert (one.body, one.content_type, one.full_url) == (same.body, same.content_type, same.full_url)


def test_a_form_that_answers_a_page_is_sent_in_the_encoding_of_the_page():
    page = Response(URL, headers={"Content-Type": "text/html; charset=gb18030"}, body=b"<p>\xd6\xd0</p>")
    assert page.follow("/find", formdata={"q": "\u4e2d"}).body == b"q=%D6%D0"


def test_a_response_answers_to_its_other_names():
    page = Response(URL, 404, body="<p>tea</p><p>coffee</p>")
    assert page.selector.css("p::text").getall() == ["tea", "coffee"]
    assert page.code == page.status == 404
    for find in (page.re_find, page.re_find_all, page.find_all, page.re_findall):
        assert find(r"<p>(\w+)") == ["tea", "coffee"]
        assert find(r"\d", "a1b2") == ["1", "2"]


def test_a_spider_may_call_its_first_method_start_request():
    class Several(Spider):
        def start_request(self):
            yield Request(URL)

    class One(Spider):
        def start_request(self):
            return Request(URL)

    class Nothing(Spider):
        def start_request(self):
            return None

    class Both(Several):
        def start_requests(self):
            yield Request("http://shop.test/2")

    got = [[request.url for request in spider().start_requests()] for spider in (Several, One, Nothing, Both)]
    assert got == [[URL], [URL], [], ["http://shop.test/2"]]


def test_a_spider_logs_by_itself(caplog):
    caplog.set_level(logging.DEBUG, logger="scrapy_plus")  # its level may have been set by a crawl before
    Spider("shop").log("quiet")
    Spider("shop").log("loud", logging.WARNING)
    said = [(record.name, record.levelname, record.message) for record in caplog.records]
    assert said == [("scrapy_plus.spider.shop", "DEBUG", "quiet"), ("scrapy_plus.spider.shop", "WARNING", "loud")]


def test_figures_are_kept_under_scrapys_words():
    stats = Stats()
    stats.inc_value("a")
    stats.inc_value("a", count=2)
    stats.set_value("b", "x")
    stats.max_value("c", 3)
    stats.max_value("c", 2)
    assert (stats.get_value("a"), stats.get_value("b"), stats.get_value("c")) == (3, "x", 3)
    assert (stats.get_value("d"), stats.get_value("d", 0)) == (None, 0)
