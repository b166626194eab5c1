"""What spiders that are fed make of an entry."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from scrapy_plus.errors import BadEntry
from scrapy_plus.spiders import RedisCrawlSpider, RedisSpider
from scrapy_plus.spiders.fed import Fed

SETTINGS = SimpleNamespace(REDIS_START_URLS_ENCODING="utf-8")


@pytest.mark.parametrize(
    ("kind", "entry", "method"),
    [
        (RedisSpider, b"http://shop.test/", "parse"),
        (RedisCrawlSpider, b"http://shop.test/", "_parse_start"),
        (RedisCrawlSpider, json.dumps({"url": "http://shop.test/", "callback": "tea"}).encode(), "tea"),
    ],
)
def test_the_pages_of_entries_are_first_pages_to_the_rules_unless_they_name_a_method(kind, entry, method):
    spider = kind("shop")
    spider.settings = SETTINGS
    request = spider.make_request_from_data(entry)
    assert (request.url, request.parse) == ("http://shop.test/", method)


def test_what_is_no_entry_is_refused_with_the_reason():
    spider = RedisSpider("shop")
    spider.settings = SETTINGS
    with pytest.raises(BadEntry, match="not an http"):
        spider.make_request_from_data(b"mailto:x")


def test_the_key_may_be_given_on_the_command_line():
    assert RedisSpider("shop").redis_key is Fed.redis_key is None
    assert RedisSpider("shop", redis_key="other").redis_key == "other"
