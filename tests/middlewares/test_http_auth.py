"""An account goes to its domain and nowhere else."""

from __future__ import annotations

from base64 import b64encode

import pytest

from scrapy_plus import FakeTransport, Response, Spider, crawl
from scrapy_plus.errors import SettingsError
from scrapy_plus.http.request import Request
from scrapy_plus.middlewares.http_auth import HttpAuth

BASIC = "Basic " + b64encode("ü:p:w".encode()).decode()

ASKED = [
    ("http://a.test/", {}, BASIC),
    ("https://a.test:8443/x", {}, BASIC),
    ("http://www.a.test/", {}, BASIC),
    ("http://A.TEST./", {}, BASIC),
    ("http://ba.test/", {}, None),
    ("http://a.test.evil.test/", {}, None),
    ("http://b.test/?a.test", {}, None),
    ("http://x:y@a.test/", {}, None),
    ("http://a.test/", {"headers": {"Authorization": "own"}}, "own"),
    ("http://a.test/", {"meta": {"redirect_urls": ["https://a.test/"]}}, None),
    ("https://a.test/", {"meta": {"redirect_urls": ["http://a.test/"]}}, BASIC),
]


@pytest.mark.parametrize(("url", "fields", "expected"), ASKED)
def test_an_account_is_sent_to_its_domain_alone(url, fields, expected):
    request = Request(url, **fields)
    sent = HttpAuth("ü", "p:w", "A.test").process_request(request) or request
    assert sent.headers.get("Authorization") == expected
    assert request.headers.get("Authorization") in (None, "own")


class Logs(Spider):
    name = "logs"
    http_user, http_pass, http_auth_domain = "u", "p", "a.test"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield {"url": response.url, "seen": response.request.headers.get("Authorization")}
        yield from response.follow_all(css="a")


def sent(transport: FakeTransport) -> dict[str, str | None]:
    return {request.url: request.headers.get("Authorization") for request in transport.requests}


def test_neither_links_nor_redirects_carry_it_off():
    transport = FakeTransport({
        "http://a.test/": Response("", 302, {"Location": "/in"}),
        "http://a.test/in": "<a href='http://b.test/'>x</a><a href='/out'>y</a>",
        "http://a.test/out": Response("", 307, {"Location": "http://c.test/"}),
        "http://b.test/": "b", "http://c.test/": "c",
    })  # fmt: skip
    result = crawl(Logs, transport)
    basic = "Basic " + b64encode(b"u:p").decode()
    assert sent(transport) == {
        "http://a.test/": basic, "http://a.test/in": basic, "http://a.test/out": basic,
        "http://b.test/": None, "http://c.test/": None,
    }  # fmt: skip
    assert {item["seen"] for item in result.items} == {None}


def test_the_settings_say_it_too():
    class Plain(Logs):
        http_user = http_pass = http_auth_domain = None

    transport = FakeTransport({"http://a.test/": "x"})
    crawl(Plain, transport, HTTP_USER="u", HTTP_PASS="p", HTTP_AUTH_DOMAIN="a.test")
    assert sent(transport)["http://a.test/"]


def test_an_account_without_a_domain_is_refused():
    class Careless(Logs):
        http_auth_domain = None

    with pytest.raises(SettingsError, match="http_auth_domain"):
        crawl(Careless, FakeTransport({}))
