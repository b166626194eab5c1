"""Answers out of the cache: what is asked of the server, and what is not. Real sockets, a real file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import gevent
import pytest

from scrapy_plus import Request, Spider, crawl
from scrapy_plus.errors import ConnectionFailed, NotCached
from scrapy_plus.transport.cache_store import CacheStore
from scrapy_plus.transport.cached import CachedTransport
from scrapy_plus.transport.requests_session import RequestsTransport
from tests.transport.asking import fetch
from tests.transport.servers import OK, Conversation, serving

NOW = 1_900_000_000.0


class Origin:
    """A server that answers with what it has at the moment; `heads` is what it heard."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = b"200 OK", [b"Cache-Control: max-age=60"], b"one"

    def script(self, conversation: Conversation) -> None:
        while conversation.hear():
            conversation.answer(self.body, *self.headers, status=self.status)


class Cached:
    """A caching client of an origin, whose clock stands until it is moved."""

    def __init__(self, folder: Path, origin: Origin, server, make_transport, **options) -> None:
        self.make_transport = make_transport
        self.now, self.counted = NOW, []
        self.origin, self.server, self.folder = origin, server, folder
        self.options = {"policy": "rfc9111", "count": self.counted.append, "clock": lambda: self.now, **options}
        self.transport = self.another()

    def another(self, **options) -> CachedTransport:
        store = CacheStore(self.folder / "c.sqlite")
        return CachedTransport(self.make_transport(), store, **{**self.options, **options})

    def ask(self, path: str = "", transport=None, **fields):
        answer = fetch(transport or self.transport, self.server.url + path, **fields)
        return answer.body.decode(), "cached" in answer.flags

    @property
    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture
def make(tmp_path, make_transport):
    origin, opened = Origin(), []
    with serving(origin.script) as server:

        def build(**options):
            opened.append(Cached(tmp_path, origin, server, make_transport, **options))
            return opened[-1]

        yield build
    for one in opened:
        one.transport.close()


def test_a_fresh_answer_is_given_without_the_network(make):
    client = make()
    assert [client.ask(), client.ask()] == [("one", False), ("one", True)]
    assert client.asked == 1
    assert client.counted == ["httpcache/miss", "httpcache/store", "httpcache/hit"]


def test_an_answer_knows_the_address_that_it_came_from_at_first(make):
    client = make()
    answers = [fetch(client.transport, client.server.url) for _ in range(2)]
    assert [(one.flags, one.ip_address) for one in answers] == [([], "127.0.0.1"), (["cached"], "127.0.0.1")]


def test_a_stale_one_is_asked_about_and_given_again_if_it_holds(make):
    client = make()
    client.origin.headers += [b'ETag: "1"', b"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", b"X-A: old"]
    client.ask()
    client.now += 61
    client.origin.status, client.origin.body = b"304 Not Modified", b""
    client.origin.headers = [b"Cache-Control: max-age=60", b"X-A: new"]
    answer = fetch(client.transport, client.server.url)
    assert (answer.status, answer.body, answer.flags, answer.headers["x-a"]) == (200, b"one", ["cached"], "new")
    assert b'If-None-Match: "1"' in client.server.requests[1] and b"If-Modified-Since: Mon" in client.server.requests[1]
    assert "If-None-Match" not in answer.request.headers
    assert client.ask() == ("one", True) and client.asked == 2


def test_a_new_answer_takes_the_place_of_a_stale_one(make):
    client = make()
    client.ask()
    client.now += 61
    client.origin.body = b"two"
    assert [client.ask(), client.ask()] == [("two", False), ("two", True)]


@pytest.mark.parametrize(
    "headers", [[b"Cache-Control: no-store, max-age=60"], [b"Vary: *", b"Cache-Control: max-age=9"], []]
)
def test_what_may_not_be_kept_is_not(make, headers):
    client = make()
    client.origin.headers = headers
    assert [client.ask(), client.ask()] == [("one", False)] * 2


def test_answers_that_vary_are_for_requests_alike(make):
    client = make()
    client.origin.headers += [b"Vary: Accept-Language"]
    client.ask(headers={"Accept-Language": "de"})
    assert client.ask(headers={"Accept-Language": "de"})[1]
    assert not client.ask(headers={"Accept-Language": "en"})[1]


def test_accounts_do_not_get_each_others_pages(make):
    client = make()
    client.ask(meta={"cookiejar": 1})
    assert not client.ask(meta={"cookiejar": 2})[1]
    assert client.ask(meta={"cookiejar": 1})[1]
    client.ask("x", headers={"Authorization": "a"})
    assert not client.ask("x", headers={"Authorization": "b"})[1]


def test_a_post_takes_out_what_it_changes(make):
    client = make()
    client.ask()
    assert client.ask(method="POST", data={"a": "b"}) == ("one", False)
    assert not client.ask()[1]


def test_what_the_user_asks_about_himself_is_left_alone(make):
    client = make()
    client.ask()
    client.origin.status, client.origin.body = b"304 Not Modified", b""
    answer = fetch(client.transport, client.server.url, headers={"If-None-Match": '"x"'})
    assert (answer.status, answer.flags) == (304, [])
    assert client.ask() == ("one", True)


def test_a_stale_answer_stands_in_for_a_server_that_is_gone_if_it_may(make):
    client = make()
    client.origin.headers = [b"Cache-Control: max-age=60, stale-if-error=600", b'ETag: "1"']
    client.ask()
    client.now += 61
    client.origin.status, client.origin.body = b"503 Busy", b"busy"
    assert client.ask() == ("one", True)
    client.server.stop()
    client.transport.close()
    other = client.another()
    assert client.ask(transport=other) == ("one", True)
    client.now += 600
    with pytest.raises(ConnectionFailed):
        client.ask(transport=other)
    other.close()


def test_the_dummy_policy_keeps_and_gives_everything(make):
    client = make(policy="dummy")
    client.origin.headers, client.origin.status = [b"Cache-Control: no-store", b"Set-Cookie: a=b"], b"404 Not Found"
    for method in ("GET", "POST"):
        first, second = (fetch(client.transport, client.server.url, method=method) for _ in range(2))
        assert (first.flags, second.flags, second.status, second.body) == ([], ["cached"], 404, b"one")
        assert second.headers.getlist("Set-Cookie") == ["a=b"]


def test_statuses_can_be_left_out_and_answers_grow_too_old(make):
    client = make(policy="dummy", ignored_codes=[404], expiration_seconds=100)
    client.ask()
    client.now += 101
    assert not client.ask()[1]
    client.now += 99
    assert client.ask()[1]
    client.origin.status = b"404 Not Found"
    assert [client.ask("x"), client.ask("x")] == [("one", False)] * 2


def test_offline_the_network_is_never_asked(make):
    client = make(policy="rfc9111")
    client.ask()
    client.now += 1000
    offline = client.another(is_offline=True)
    assert client.ask(transport=offline) == ("one", True)
    with pytest.raises(NotCached, match="HTTPCACHE_IGNORE_MISSING"):
        client.ask("other", transport=offline)
    assert (client.asked, offline.network) == (1, False)
    offline.close()


def test_a_request_may_leave_the_cache_out(make):
    client = make(policy="dummy")
    assert [client.ask(meta={"dont_cache": True}) for _ in range(2)] == [("one", False)] * 2
    assert not client.ask()[1]


def test_a_retry_asks_the_network(make):
    client = make(policy="dummy")
    client.origin.status = b"503 Busy"
    client.ask()
    client.origin.status, client.origin.body = b"200 OK", b"two"
    again = Request(client.server.url)
    again.retry_time = 1
    answer = client.transport.fetch(again, timeout_seconds=10, max_bytes=1000)
    assert (answer.body, answer.flags) == (b"two", [])
    assert client.ask() == ("two", True)


def test_a_body_that_was_cut_is_not_kept(tmp_path):
    def script(conversation):
        conversation.hear()
        conversation.say(OK + b"Content-Length: 9\r\n\r\nhalf")

    transport = CachedTransport(RequestsTransport(), CacheStore(tmp_path / "c.sqlite"))
    with serving(script) as server:
        for _ in range(2):
            assert fetch(transport, server.url, strict=False).flags == ["dataloss"]
    transport.close()


BREAKS = {
    "the body": "UPDATE answers SET body = 'x'",
    "the head": "UPDATE answers SET head = '{'",
    "a type": "UPDATE answers SET body = 5",
    "nothing left": "UPDATE answers SET head = NULL",
    "no table": "DROP TABLE answers",
}


@pytest.mark.parametrize("broken", BREAKS)
def test_a_broken_entry_is_a_miss(make, broken):
    client = make(policy="dummy")
    client.ask()
    with sqlite3.connect(client.folder / "c.sqlite") as database:
        database.execute(BREAKS[broken])
    database.close()
    assert client.ask() == ("one", False)


def test_a_file_that_is_no_database_is_begun_anew(tmp_path, caplog):
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"rubbish " * 1000)
    store = CacheStore(path)
    assert store.get(b"x") is None and "begun anew" in caplog.text
    store.close()


WRITER = """
import sys
import scrapy_plus
from pathlib import Path
from scrapy_plus.rules.http_cache import Entry
from scrapy_plus.transport.cache_store import CacheStore
store = CacheStore(Path(sys.argv[1]))
for number in range(200):
    key = b"%d" % (number % 20)
    store.put(key, Entry("http://a.test/", 200, (("A", "b"),), sys.argv[2].encode() * 5000))
    entry = store.get(key)
    assert entry is None or len(set(entry.body)) == 1, "two answers in one"
    assert entry is not None
store.close()
"""


def test_several_processes_may_use_one_file(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path / "c.sqlite")]
    running = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "abc"]
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in running]
    assert ended == [(b"", 0)] * 3


class Two(Spider):
    name = "two/pages"

    def parse(self, response):
        yield {"url": response.url, "text": response.text, "cached": "cached" in response.flags}
        yield from response.follow_all(css="a")


def test_a_crawl_is_recorded_and_replayed_without_its_site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages = {"/": b"<a href='/next'>x</a><a href='/old'>y</a>", "/next": b"two"}

    def script(conversation):
        while head := conversation.hear():
            path = head.split(b" ")[1].decode()
            if path == "/old":
                conversation.answer(b"", b"Location: /next?moved", status=b"302 Found")
            else:
                conversation.answer(pages.get(path, b"moved"), b"Content-Type: text/html")

    settings = {"HTTPCACHE_ENABLED": True, "CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.05}
    with serving(script) as server:
        Two.start_urls = [server.url]
        first = crawl(Two, RequestsTransport(), **settings)
    assert [item["cached"] for item in first.items] == [False] * 3
    second = crawl(Two, RequestsTransport(), HTTPCACHE_IGNORE_MISSING=True, **{**settings, "DOWNLOAD_DELAY": 3600})
    assert [item | {"cached": False} for item in second.items] == first.items
    assert all(item["cached"] for item in second.items)
    assert (second.stats["httpcache/hit"], second.exit_code) == (4, 0)
    assert (tmp_path / "httpcache" / "two_pages.sqlite").exists()


def test_what_is_missing_offline_is_told_to_the_errback_and_is_no_dead_letter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Asks(Spider):
        name = "asks"

        def start_requests(self):
            yield Request("http://a.test/", errback=self.failed)

        def failed(self, failure):
            yield {"failed": type(failure.value).__name__}

    result = crawl(Asks, RequestsTransport(), HTTPCACHE_ENABLED=True, HTTPCACHE_IGNORE_MISSING=True)
    assert (result.items, result.dead, result.exit_code) == ([{"failed": "NotCached"}], [], 0)


def test_a_page_out_of_the_cache_stays_public(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from scrapy_plus import FakeTransport

    class Links(Two):
        name = "links"
        start_urls = ["http://a.test/"]

    pages = {"http://a.test/": "<a href='http://127.0.0.1/'>x</a>", "http://127.0.0.1/": "secret"}
    for _ in range(2):
        transport = FakeTransport(pages)
        result = crawl(Links, transport, HTTPCACHE_ENABLED=True)
        assert [item["url"] for item in result.items] == ["http://a.test/"]
    assert transport.requests == []
    gevent.sleep(0)
