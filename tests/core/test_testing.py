"""`crawl` for tests of spiders: what it gives, and what it says to those who call it wrongly."""

from __future__ import annotations

import pytest

from scrapy_plus import Engine, FakeTransport, Request, Response, Spider, crawl
from scrapy_plus.errors import SettingsError

PAGE = "http://shop.test/"


class ShopSpider(Spider):
    name = "shop"
    start_urls = (PAGE,)
    tag = ""

    def parse(self, response):
        yield {"title": response.css("h1::text").get(), "tag": self.tag}


def test_arguments_go_into_the_spider_and_settings_into_crawl():
    result = crawl(ShopSpider(tag="x"), FakeTransport({PAGE: "<h1>tea</h1>"}), MAX_RETRY_TIMES=0)
    assert result.items == [{"title": "tea", "tag": "x"}]


def test_a_request_that_was_given_up_is_there_with_reason_tries_and_status():
    class Follows(ShopSpider):
        def parse(self, response):
            yield Request("http://shop.test/busy", meta={"from": response.url})

    transport = FakeTransport({PAGE: "", "http://shop.test/busy": Response(PAGE, 503)})
    [dead] = crawl(Follows, transport, MAX_RETRY_TIMES=1, RETRY_BACKOFF_SECONDS=0.01).dead
    assert (dead.request.url, dead.request.meta["from"]) == ("http://shop.test/busy", PAGE)
    assert (dead.reason, dead.attempts, dead.status) == ("RetryStatus: HTTP 503", 2, 503)


def test_a_wrong_setting_is_said_to_be_crawls_own():
    with pytest.raises(SettingsError) as caught:
        crawl(ShopSpider, FakeTransport({}), DEPHT_LIMIT=1, DOWNLOAD_DELAY="soon", tag="x")
    assert [line.count("(crawl(...))") for line in str(caught.value).splitlines()] == [1, 1, 1]
    assert "command line" not in str(caught.value)


@pytest.mark.parametrize("spider", ["shop", None, object, {"shop": ShopSpider}])
def test_what_is_no_spider_is_refused_in_a_sentence(spider):
    with pytest.raises(TypeError, match="is no spider; give the class"):
        crawl(spider, FakeTransport({}))


@pytest.mark.parametrize("transport", [{PAGE: "tea"}, None, FakeTransport])
def test_what_is_no_transport_is_refused_in_a_sentence(transport):
    with pytest.raises(TypeError, match="is no transport; give a FakeTransport"):
        crawl(ShopSpider, transport)


@pytest.mark.parametrize("spiders", [[ShopSpider], ShopSpider, ShopSpider(), "shop"])
def test_an_engine_that_is_given_spiders_says_where_they_belong(spiders):
    with pytest.raises(TypeError, match="list them in SPIDERS of settings.py"):
        Engine(spiders)


class Demands:
    def __init__(self, path):
        self.path = path


class Scrapys:
    @classmethod
    def from_crawler(cls, crawler):
        raise AssertionError("there is no crawler")


class Configured:
    def __init__(self, agent):
        self.agent = agent

    @classmethod
    def from_settings(cls, settings):
        return cls(settings.USER_AGENT)

    def process_item(self, item, spider):
        return {**item, "agent": self.agent}


@pytest.mark.parametrize("setting", ["PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"])
def test_a_part_that_cannot_be_made_without_arguments_is_told_in_a_line(setting):
    line = rf"{setting}: .*Demands.* cannot be made without arguments .*'path'.*from_settings"
    with pytest.raises(SettingsError, match=line):
        crawl(ShopSpider, FakeTransport({PAGE: ""}), **{setting: [Demands]})


def test_a_part_made_by_from_settings_may_want_arguments():
    result = crawl(ShopSpider, FakeTransport({PAGE: ""}), PIPELINES=[Configured], USER_AGENT="tea/1")
    assert result.items[0]["agent"] == "tea/1"


def test_that_from_crawler_is_not_called_is_said(caplog):
    crawl(ShopSpider, FakeTransport({PAGE: ""}), DOWNLOADER_MIDDLEWARES=[Scrapys])
    assert "from_crawler is not called" in caplog.text
