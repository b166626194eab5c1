"""Proxies in turn, their rests, and that nobody reads their passwords."""

from __future__ import annotations

import logging

import pytest

from scrapy_plus import Request, Spider, crawl
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.errors import ConnectionFailed, DownloadTimeout, NameNotFound, ProxyFailed, SettingsError, TlsFailed
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.proxies import Pool, Proxies
from tests.transport.conftest import make_transport  # noqa: F401
from tests.transport.servers import answering, free_port, serving

A, B, C = (f"http://u:secret@{name}.test:1" for name in "abc")


def test_proxies_are_taken_in_turn():
    pool = Pool([A, B, C, A])
    assert [pool.take(0) for _ in range(5)] == [A, B, C, A, B]


def test_one_that_fails_rests_and_twice_as_long_the_next_time():
    pool = Pool([A, B], rest_seconds=5)
    pool.failed(A, 0)
    assert {pool.take(4.9) for _ in range(4)} == {B}
    assert A in {pool.take(5) for _ in range(2)}
    pool.failed(A, 5)
    assert {pool.take(14.9) for _ in range(4)} == {B}
    assert A in {pool.take(15) for _ in range(2)}


def test_a_rest_has_a_limit_and_ends_when_the_proxy_works():
    pool = Pool([A, B], rest_seconds=5, rest_limit_seconds=60)
    for _ in range(100):
        pool.failed(A, 0)
    assert pool.proxies[0].rests_until == 60
    pool.worked(A)
    assert A in {pool.take(1) for _ in range(2)}
    pool.failed(A, 1)
    assert pool.proxies[0].rests_until == 6


def test_when_all_rest_the_first_to_be_up_is_taken():
    pool = Pool([A, B], rest_seconds=5)
    for url, at in ((A, 0), (A, 0), (B, 0)):
        pool.failed(url, at)
    assert [pool.take(1), pool.take(1)] == [B, B]


@pytest.mark.parametrize(
    ("failure", "rests"),
    [
        (ProxyFailed("x"), True),
        (ConnectionFailed("x"), True),
        (DownloadTimeout("x"), True),
        (NameNotFound("x"), False),
        (TlsFailed("x"), False),
        (ValueError("x"), False),
    ],
)
def test_what_is_not_the_proxys_fault_is_not_laid_on_it(failure, rests):
    proxies = Proxies(Pool([A, B]), clock=lambda: 1.0)
    request = Request("http://x.test/")
    assert proxies.process_request(request).proxy == A and request.proxy is None
    proxies.process_exception(request, failure)
    assert (proxies.pool.proxies[0].failures > 0) == rests


@pytest.mark.parametrize(("status", "failures"), [(200, 0), (500, 0), (407, 1)])
def test_any_answer_shows_that_it_works_but_one_that_asks_for_its_password(status, failures):
    proxies = Proxies(Pool([A]), clock=lambda: 1.0)
    request = Request("http://x.test/")
    proxies.process_request(request)
    proxies.process_response(request, Response(request.url, status))
    assert proxies.pool.proxies[0].failures == failures
    assert proxies._used == {}


@pytest.mark.parametrize("fields", [{"proxy": B}, {"meta": {"proxy": B}}, {"meta": {"proxy": None}}])
def test_a_request_that_names_its_way_goes_it(fields):
    assert Proxies(Pool([A])).process_request(Request("http://x.test/", **fields)) is None


class Asks(Spider):
    name = "asks"
    start_urls = ["http://site.test/1", "http://site.test/2"]

    def parse(self, response):
        yield {"url": response.url, "proxy": response.request.proxy}


def test_a_crawl_goes_on_with_the_proxy_that_works_and_keeps_passwords_to_itself(caplog, make_transport):  # noqa: F811
    caplog.set_level(logging.DEBUG)
    with serving(answering(b"by proxy", b"Content-Type: text/html")) as server:
        good = f"http://user:hidden@127.0.0.1:{server.port}"
        bad = f"http://user:hidden@127.0.0.1:{free_port()}"
        result = crawl(Asks, make_transport(), PROXIES=[bad, good], RETRY_BACKOFF_SECONDS=0.01, LOG_LEVEL="DEBUG")
    assert sorted(item["url"] for item in result.items) == Asks.start_urls
    assert {item["proxy"] for item in result.items} == {None}
    assert result.stats["downloader/exception_type_count/ProxyFailed"] >= 1
    assert all(head.startswith(b"GET http://site.test/") for head in server.requests)
    assert all(b"Proxy-Authorization: Basic" in head for head in server.requests)
    assert "hidden" not in caplog.text


def test_no_password_is_in_a_dead_letter(caplog, make_transport):  # noqa: F811
    bad = f"http://user:hidden@127.0.0.1:{free_port()}"
    result = crawl(Asks, make_transport(), PROXY=bad, MAX_RETRY_TIMES=0)
    assert len(result.dead) == 2
    assert all("ProxyFailed" in dead.reason and "hidden" not in dead.reason for dead in result.dead)
    assert all(dead.request.proxy is None for dead in result.dead)
    assert "hidden" not in caplog.text + repr(result.stats)


@pytest.mark.parametrize("value", ["ftp://u:hidden@a.test:1", "http://u:hidden@", "http://u:hidden@a.test:port", 5])
def test_what_is_no_proxy_is_refused_without_showing_it(value):
    with pytest.raises(SettingsError, match="URL of a proxy") as failure:
        load_settings(None, environ={}, overrides={"PROXIES": [value]})
    assert "hidden" not in str(failure.value)


def test_a_password_is_not_shown_with_the_settings():
    settings = load_settings(None, environ={}, overrides={"PROXY": A, "PROXIES": [A], "HTTP_PASS": "secret"})
    assert "secret" not in repr([settings.PROXY, settings.PROXIES, settings.HTTP_PASS])
