"""Jars that several processes share, in every store: two `Cookies` on one frontier are two processes."""

from __future__ import annotations

import logging

import pytest

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares import shared_jars
from scrapy_plus.middlewares.cookies import Cookies
from scrapy_plus.middlewares.shared_jars import MAX_COOKIES, SharedJars
from tests.frontier.conftest import clock, make_frontier, own_redis, redis_client  # noqa: F401

NOW = 1_900_000_000.0


class Time:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def frontier(make_frontier):  # noqa: F811
    return make_frontier()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def one(frontier, time):
    return Cookies(jars=SharedJars(frontier), clock=time)


@pytest.fixture
def two(frontier, time):
    return Cookies(jars=SharedJars(frontier), clock=time)


def answer(cookies: Cookies, url: str, *set_cookies: str, **fields) -> None:
    request = Request(url, **fields)
    cookies.process_response(request, Response(url, headers=[("Set-Cookie", one) for one in set_cookies]))


def sent(by: Cookies, url: str, **fields) -> str:
    request = by.process_request(Request(url, **fields))
    return "" if request is None else request.headers["Cookie"]


def test_what_one_process_was_given_another_sends(one, two):
    answer(one, "http://a.test/", "s=1; Path=/", "d=2; Domain=a.test")
    assert sent(two, "http://a.test/x") == "s=1; d=2"
    assert sent(two, "http://www.a.test/") == "d=2"
    assert sent(two, "http://b.test/") == ""


def test_a_cookie_of_a_subdomain_for_the_whole_domain_is_seen_above(one, two):
    answer(one, "http://login.a.test/", "s=1; Domain=a.test")
    assert sent(two, "http://shop.a.test/") == "s=1"


def test_they_outlive_the_processes(one, frontier, time):
    answer(one, "http://a.test/", "s=1", "old=2; Max-Age=100")
    time.now += 101
    assert sent(Cookies(jars=SharedJars(frontier), clock=time), "http://a.test/") == "s=1"


def test_jars_are_apart(one, two):
    answer(one, "http://a.test/", "s=1", meta={"cookiejar": 1})
    answer(one, "http://a.test/", "s=2", meta={"cookiejar": "1"})
    assert [sent(two, "http://a.test/", meta={"cookiejar": jar}) for jar in (1, "1", 2)] == ["s=1", "s=2", ""]
    assert sent(two, "http://a.test/") == ""


def test_an_answer_of_another_process_counts_at_once(one, two):
    answer(one, "http://a.test/", "s=1")
    assert sent(two, "http://a.test/") == "s=1"
    answer(one, "http://a.test/", "s=2", "more=3")
    assert sent(two, "http://a.test/") == "s=2; more=3"


def test_a_cookie_that_is_taken_back_is_gone_everywhere(one, two, frontier):
    answer(one, "http://a.test/", "s=1", "t=2")
    answer(two, "http://a.test/", "s=; Max-Age=0")
    assert sent(one, "http://a.test/") == "t=2"
    assert len(frontier.site_facts("cookies a.test None").facts) == 1


def test_processes_that_set_different_cookies_undo_nothing_of_each_other(one, two):
    sent(one, "http://a.test/"), sent(two, "http://a.test/")
    answer(one, "http://a.test/", "s=1")
    answer(two, "http://a.test/", "t=2")
    assert sorted(sent(one, "http://a.test/").split("; ")) == ["s=1", "t=2"]


def test_what_a_request_brings_is_shared_too(one, two):
    sent(one, "http://a.test/", cookies={"lang": "de"})
    assert sent(two, "http://a.test/") == "lang=de"


def test_the_rules_of_paths_https_and_order_hold(one, two, time):
    answer(one, "https://a.test/d/p", "first=1; Path=/", "deep=2", "tls=3; Secure; Path=/")
    time.now += 1
    answer(one, "https://a.test/", "first=4; Path=/", "last=5; Path=/")
    assert sent(two, "https://a.test/d/x") == "deep=2; first=4; tls=3; last=5"
    assert sent(two, "http://a.test/") == "first=4; last=5"


def test_nothing_is_written_that_changes_nothing(one, two, frontier, time, monkeypatch):
    written = []
    set_site = frontier.set_site
    monkeypatch.setattr(frontier, "set_site", lambda *a, **k: (written.append(a), set_site(*a, **k)))
    answer(one, "http://a.test/", "s=1; Max-Age=3600")
    for _ in range(3):
        time.now += 10
        answer(two, "http://a.test/", "s=1; Max-Age=3600", "gone=; Max-Age=0")
    assert len(written) == 1
    time.now += 60
    answer(two, "http://a.test/", "s=1; Max-Age=3600")
    assert len(written) == 2


def test_a_site_cannot_fill_the_store(one, frontier, time):
    for number in range(MAX_COOKIES + 20):
        time.now += 1
        answer(one, "http://a.test/", f"n{number}=1")
    kept = frontier.site_facts("cookies a.test None").facts
    assert len(kept) == MAX_COOKIES
    assert "a.test / n0" not in kept and f"a.test / n{MAX_COOKIES + 19}" in kept


def test_odd_values_come_back_as_they_were(one, two):
    answer(one, "http://a.test/", 'q="a, b"', "u=\u00e4\u00ff", "e=")
    assert sent(two, "http://a.test/") == 'q="a, b"; u=\u00e4\u00ff; e='


def test_what_cannot_be_read_is_left_out(one, frontier):
    frontier.set_site("cookies a.test None", facts={"a.test / s": "junk", "x": "[1,2,3,4,5]", "a.test / t": "[1]"})
    assert sent(one, "http://a.test/") == ""
    answer(one, "http://a.test/", "s=1")
    assert sent(one, "http://a.test/") == "s=1"


def test_no_memory_is_kept_of_sites_without_end(one, monkeypatch):
    monkeypatch.setattr(shared_jars, "REMEMBERED", 3)
    for number in range(10):
        sent(one, f"http://a{number}.test/")
    assert len(one._jars._known) == 3


def test_what_is_sent_and_set_is_logged_when_asked(caplog):
    caplog.set_level(logging.INFO, "scrapy_plus.cookies")
    for debug in (False, True):
        cookies = Cookies(debug=debug)
        answer(cookies, "http://a.test/", "s=1; Path=/")
        sent(cookies, "http://a.test/x")
    assert [record.getMessage() for record in caplog.records] == [
        "cookies set by <GET http://a.test/>: s=1; Path=/",
        "cookies sent to <GET http://a.test/x>: s=1",
    ]
