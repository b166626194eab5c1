"""Secrets are not shown, whatever text they stand in."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import ProxyFailed
from scrapy_plus.http.request import Request
from scrapy_plus.http.secrets import redact
from scrapy_plus.rules.judge import describe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:hush@h.test:81/a@b", "http://user:***@h.test:81/a@b"),
        ("no http://:hush@proxy.test:8080 today", "no http://:***@proxy.test:8080 today"),
        ("two http://a:hush@b.test/ and socks5://c:hush@d.test", "two http://a:***@b.test/ and socks5://c:***@d.test"),
        ("http://h.test/?a=1&token=hush&b=2", "http://h.test/?a=1&token=***&b=2"),
        ("http://h.test/?API_KEY=hush#top", "http://h.test/?API_KEY=***#top"),
        ("http://h.test/#access_token=hush", "http://h.test/#access_token=***"),
        ("<GET http://h.test/?password=hush>", "<GET http://h.test/?password=***>"),
        ("Authorization: Bearer hush", "Authorization: Bearer ***"),
        ("{'Proxy-Authorization': 'Basic hush=='}", "{'Proxy-Authorization': 'Basic ***'}"),
        ("[('authorization', 'hush')]", "[('authorization', '***')]"),
    ],
)
def test_secrets_are_replaced_by_stars(text, shown):
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    ["http://h.test/a:b@c", "http://h.test/?page_token=1", "mail me@h.test", "?tokens=2", "a=b", "http://u@h.test/"],
)
def test_what_is_no_secret_is_shown_as_it_is(text):
    assert redact(text) == text


def test_neither_a_request_nor_the_reason_of_a_failure_shows_a_secret():
    request = Request("http://user:hush@h.test/?token=hush", proxy="http://user:hush@proxy.test")
    assert "hush" not in repr(request)
    assert describe(ProxyFailed(f"{request.proxy} refused {request.url}")).count("***") == 3
