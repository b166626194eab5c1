"""What a feed takes for a request, and what it refuses with which reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_plus.errors import BadEntry
from scrapy_plus.rules.feed_entry import read_entry

URL = "http://127.0.0.1/a"


def entry(**fields: Any) -> bytes:
    return json.dumps({"url": URL, **fields}).encode()


def test_a_bare_url_is_a_get():
    request = read_entry(b" http://127.0.0.1/a\n")
    assert (request.url, request.method, request.filter) == (URL, "GET", True)


def test_each_field_arrives_as_what_it_is_and_none_as_a_query_parameter():
    fields = {"headers": {"X-A": "1"}, "cookies": {"c": "2"}, "meta": {"m": 3}, "priority": 4, "callback": "parse_it"}
    request = read_entry(entry(version=1, method="POST", data={"d": "5"}, dont_filter=True, **fields))
    assert request.full_url == URL and request.body == b"d=5" and request.method == "POST"
    assert (request.headers["X-A"], request.cookies, request.meta) == ("1", {"c": "2"}, {"m": 3})
    assert (request.priority, request.parse, request.filter) == (4, "parse_it", False)


def test_an_entry_is_read_in_the_encoding_of_the_feed():
    raw = entry(meta={"n": "?"}).replace(b"?", b"\xe9")
    assert read_entry(raw, encoding="latin-1").meta == {"n": "\u00e9"}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "url"),
        (b"\xff\xfe", "not utf-8"),
        (b"ftp://127.0.0.1/", "ftp"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'["http://127.0.0.1/"]', "neither a URL nor"),
        (b'{"method": "GET"}', "no url"),
        (entry(version=2), "version 2"),
        (entry(version=True), "version True"),
        (entry(metod="POST"), "unknown field 'metod'"),
        (entry(priority="high"), "priority must be a whole number"),
        (entry(priority=True), "priority must be a whole number"),
        (entry(headers=["a"]), "headers must be an object"),
        (entry(dont_filter=1), "dont_filter must be true or false"),
        (entry(data="a", body="b"), "both data and body"),
        (entry(callback="no name"), "callback"),
        (entry(data=[1]), "unpack"),
        (entry(params=[{}]), "unpack"),
        (entry(data="a", encoding="klingon"), "unknown encoding"),
        (entry(json="\ud800"), "can't encode"),
    ],
)
def test_what_is_wrong_is_refused_with_its_reason_in_one_line(raw: bytes, reason: str):
    with pytest.raises(BadEntry) as refused:
        read_entry(raw)
    assert reason.lower() in str(refused.value).lower() and "\n" not in str(refused.value)
