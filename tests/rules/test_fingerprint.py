from __future__ import annotations

import pytest

from scrapy_plus import Request
from scrapy_plus.rules.fingerprint import fingerprint, occurrence_id

PINNED = {
    "plain": (Request("http://shop.test/tea"), "153bb67090ed1288ace5297afdf2cf6a40849c56"),
    "query": (Request("http://shop.test/tea?b=2&a=1"), "66ccb2d291910b8cf9ae4b37affcfc907a5c458a"),
    "params": (Request("http://shop.test/tea", params={"page": 2}), "ed76e64202064b57cce7bca4fc281f1b629f4f7f"),
    "post form": (
        Request("http://shop.test/tea", method="POST", data={"a": "1", "b": "2"}),
        "8b13b0bfb4dc8329150e6d8c1268369e08bed7a5",
    ),
    "post body": (
        Request("http://shop.test/tea", method="POST", data=b"\x00\xff"),
        "f1428c006fd1ea426b9971fad0628ce461b1ae57",
    ),
    "post json": (
        Request("http://shop.test/tea", method="POST", json={"a": [1, 2]}),
        "c4dd0a6d61ffa59624084048d7decee7e8e183e9",
    ),
    "unicode": (Request("http://shop.test/茶?q=茶"), "b499c3ed6e47cc46d6719e77a44b1494a85c9f17"),
    "idn": (Request("http://bücher.test/"), "14f96793f5d75d1eeb815528d6628c82738fb375"),
    "https and port": (Request("https://shop.test:8443/"), "e928e7d7b2e11cf77b694a4dbbd84a382f7937d1"),
    "head": (Request("http://shop.test/tea", method="HEAD"), "bfbe0f616a6785aece34af44404c82db5d6267c9"),
}


@pytest.mark.parametrize("name", PINNED)
def test_fingerprints_are_stable_between_releases(name):
    request, pinned = PINNED[name]
    assert fingerprint(request).hex() == pinned


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "http://shop.test/a"}, {"url": "HTTP://SHOP.test:80/a"}),
        ({"url": "http://shop.test"}, {"url": "http://shop.test/"}),
        ({"url": "http://shop.test/a/../b"}, {"url": "http://shop.test/b"}),
        ({"url": "http://shop.test/%7eme"}, {"url": "http://shop.test/~me"}),
        ({"url": "http://shop.test/%c3%a4"}, {"url": "http://shop.test/%C3%A4"}),
        ({"url": "http://shop.test/?b=1&a=2"}, {"url": "http://shop.test/?a=2&b=1"}),
        ({"url": "http://shop.test/#top"}, {"url": "http://shop.test/"}),
        ({"url": "http://shop.test/?a=1"}, {"url": "http://shop.test/", "params": {"a": 1}}),
        ({"url": "http://a.test/", "params": {"a": 1, "b": 2}}, {"url": "http://a.test/", "params": {"b": 2, "a": 1}}),
        ({"url": "http://a.test/", "data": {"a": 1, "b": 2}}, {"url": "http://a.test/", "data": {"b": 2, "a": 1}}),
        ({"url": "http://a.test/", "json": {"a": 1, "b": 2}}, {"url": "http://a.test/", "json": {"b": 2, "a": 1}}),
        ({"url": "http://a.test/", "headers": {"X": "1"}}, {"url": "http://a.test/"}),
        ({"url": "http://a.test/", "meta": {"page": 1}}, {"url": "http://a.test/", "priority": 5}),
    ],
)
def test_requests_for_the_same_page_have_one_fingerprint(one, other):
    assert fingerprint(Request(**one)) == fingerprint(Request(**other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "http://shop.test/a"}, {"url": "https://shop.test/a"}),
        ({"url": "http://shop.test/a"}, {"url": "http://shop.test/A"}),
        ({"url": "http://shop.test/a"}, {"url": "http://shop.test/a/"}),
        ({"url": "http://shop.test/a"}, {"url": "http://shop.test/a", "method": "POST"}),
        ({"url": "http://shop.test/?a=1"}, {"url": "http://shop.test/?a=2"}),
        ({"url": "http://shop.test/%2F"}, {"url": "http://shop.test//"}),
        ({"url": "http://a.test/", "params": {"a": 1}}, {"url": "http://a.test/", "params": {"a": 2}}),
        ({"url": "http://a.test/", "data": {"a": 1}}, {"url": "http://a.test/", "data": {"a": 2}}),
        ({"url": "http://a.test/", "json": [1, 2]}, {"url": "http://a.test/", "json": [2, 1]}),
        ({"url": "http://a.test/", "json": 0}, {"url": "http://a.test/"}),
    ],
)
def test_requests_for_different_pages_have_different_fingerprints(one, other):
    assert fingerprint(Request(**one)) != fingerprint(Request(**other))


def test_headers_count_only_when_asked_for():
    plain, german = Request("http://a.test/"), Request("http://a.test/", headers={"Accept-Language": "de"})
    assert fingerprint(plain) == fingerprint(german)
    assert fingerprint(plain, include_headers=["accept-language"]) != fingerprint(
        german, include_headers=["ACCEPT-LANGUAGE"]
    )


def test_fragments_count_only_when_asked_for():
    top, end = Request("http://a.test/#top"), Request("http://a.test/#end")
    assert fingerprint(top) == fingerprint(end)
    assert fingerprint(top, keep_fragments=True) != fingerprint(end, keep_fragments=True)
    assert fingerprint(Request("http://a.test/"), keep_fragments=True) == fingerprint(Request("http://a.test/"))


def test_an_occurrence_has_an_id_of_its_own_that_does_not_change():
    fp, parent = bytes(20), b"p" * 20
    ids = {occurrence_id(fp, parent, 0), occurrence_id(fp, parent, 1), occurrence_id(fp, b"q" * 20, 0), fp}
    assert len(ids) == 4
    assert all(len(id) == 20 for id in ids)
    assert occurrence_id(fp, parent, 0) == occurrence_id(fp, parent, 0)


def test_a_plain_get_has_the_fingerprint_that_the_long_way_gives():
    for url in ("http://shop.test/tea?b=2&a=1#top", "http://shop.test:54321/", "http://SHOP.test:80/./%7ea"):
        request = Request(url)
        assert fingerprint(request) == fingerprint(request, include_headers=["x-not-there"])
