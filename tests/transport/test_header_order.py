"""The fields of a request are on the wire as a browser has them: names, order, values."""

from __future__ import annotations

import pytest

from scrapy_plus import Request, Spider, crawl
from tests.transport.servers import answering, serving

BROWSER = {
    "Accept": "text/html", "Accept-Language": "de", "Upgrade-Insecure-Requests": "1", "sec-fetch-mode": "navigate",
}  # fmt: skip


def names(head: bytes) -> list[str]:
    lines = head.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    return [line.partition(b":")[0].decode() for line in lines]


class Visits(Spider):
    name = "visits"
    fields: dict = {}

    def start_requests(self):
        yield Request(self.start_urls[0], **self.fields)

    def parse(self, response):
        yield {"url": response.url}


ORDERS = [
    ({}, ["Host", "User-Agent", *BROWSER, "Accept-Encoding"]),
    ({"cookies": {"a": "b"}}, ["Host", "User-Agent", *BROWSER, "Accept-Encoding", "Cookie"]),
    (
        {"headers": {"Referer": "http://r.test/", "accept-language": "fr"}},
        ["Host", "User-Agent", *BROWSER, "Referer", "Accept-Encoding"],
    ),
    (
        {"headers": {"X-One": "1", "User-Agent": "mine", "Accept": "a", "accept-encoding": "gzip"}},
        ["Host", "X-One", "User-Agent", "Accept", "accept-encoding", *list(BROWSER)[1:]],
    ),
]


@pytest.mark.parametrize(("fields", "expected"), ORDERS)
def test_the_order_of_the_settings_is_that_on_the_wire(fields, expected, make_transport):
    with serving(answering(b"x")) as server:
        Visits.start_urls, Visits.fields = [server.url], fields
        result = crawl(Visits, make_transport(), DEFAULT_REQUEST_HEADERS=BROWSER)
        assert result.exit_code == 0
        [head] = server.requests
        found = [name for name in names(head) if name.lower() != "connection"]
        assert [name.lower() for name in found] == [name.lower() for name in expected]
        assert b"Host: 127.0.0.1:%d\r\n" % server.port in head
    if "headers" in fields and "accept-language" in fields["headers"]:
        assert b"\r\naccept-language: fr\r\n" in head and b"Accept-Language" not in head


@pytest.mark.parametrize("way", ["attribute", "custom_settings", "argument"])
def test_a_spider_has_its_own_user_agent(way, make_transport):
    class Named(Visits):
        custom_settings = {"USER_AGENT": "mine/1"} if way == "custom_settings" else None

    if way == "attribute":
        Named.user_agent = "mine/1"
    with serving(answering(b"x")) as server:
        Named.start_urls, Named.fields = [server.url], {}
        crawl(Named(user_agent="mine/1") if way == "argument" else Named, make_transport())
        assert b"\r\nUser-Agent: mine/1\r\n" in server.requests[0]
