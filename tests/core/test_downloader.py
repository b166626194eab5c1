"""The downloader over real servers and the built-in middlewares: deadlines, limits, redirects, broken bodies."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from scrapy_plus.core.downloader import Downloader
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import (
    BadRedirect,
    BodyCorrupt,
    BodyTooLarge,
    BodyTruncated,
    ConnectionFailed,
    DownloadError,
    DownloadTimeout,
    DropRequest,
    RetryStatus,
)
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.chain import DownloaderChain
from scrapy_plus.middlewares.downloader_middlewares import (
    BUILT_IN,
    Compression,
    Cookies,
    DefaultHeaders,
    Redirect,
    RetryStatuses,
)
from scrapy_plus.transport.fake import FakeTransport
from scrapy_plus.transport.requests_session import RequestsTransport
from tests.transport.servers import OK, Conversation, answering, saying, serving

Make = Callable[..., Downloader]


class Spider:
    name = "s"


def built_in() -> list[Any]:
    made = {
        DefaultHeaders: DefaultHeaders({"Accept": "text/html"}, "me/1"),
        Redirect: Redirect(max_times=5),
        RetryStatuses: RetryStatuses([503]),
        Compression: Compression(1 << 20),
        Cookies: Cookies(),
    }
    return [made[kind] for kind in BUILT_IN]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Downloader] = []

    def make_downloader(transport: Any = None, middlewares: Any = None, **options: Any) -> Downloader:
        chain = DownloaderChain(built_in() if middlewares is None else middlewares, Spider())
        made.append(Downloader(transport or RequestsTransport(), chain, **{"stats": Stats(), **options}))
        return made[-1]

    yield make_downloader
    for downloader in made:
        downloader.close()


def follow(downloader: Downloader, request: Request) -> Response:
    """The answer at the end of the redirects."""
    for _ in range(50):
        answer = downloader.get_response(request)
        if isinstance(answer, Response):
            return answer
        request = answer
    raise AssertionError("redirected without end")


def drip(*start: bytes) -> Callable[[Conversation], None]:
    """A server that says `start` and then a byte every 20 ms, for ten seconds."""

    def script(conversation: Conversation) -> None:
        conversation.hear()
        conversation.say(*start)
        for _ in range(500):
            conversation.say(b"a")
            gevent.sleep(0.02)

    return script


SLOW = {
    "no answer": lambda conversation: conversation.wait_for_end(20),
    "a byte at a time in the head": drip(OK, b"X: "),
    "a byte at a time in the body": drip(OK, b"Content-Length: 1000\r\n\r\n"),
    "a byte at a time until the close": drip(OK, b"\r\n"),
    "a byte at a time behind a line that is no field": drip(OK, b"no colon\r\nX: "),
    "a byte at a time in a chunk size": drip(OK, b"Transfer-Encoding: chunked\r\n\r\n5;"),
}


@pytest.mark.parametrize("script", SLOW.values(), ids=SLOW)
def test_the_deadline_holds_over_the_whole_answer(make, script):
    with serving(script) as server, gevent.Timeout(5):
        with pytest.raises(DownloadTimeout, match=r"http://127\.0\.0\.1:\d+: no whole answer within 0\.3 s"):
            make(timeout_seconds=0.3).get_response(Request(server.url))


def test_a_server_that_never_accepts_does_not_hold_a_worker(make):
    with gevent.socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        downloader = make(timeout_seconds=0.3)
        with gevent.Timeout(10):
            workers = [
                gevent.spawn(pytest.raises, DownloadError, downloader.get_response, Request(url)) for _ in range(5)
            ]
            gevent.joinall(workers, raise_error=True)


@pytest.mark.parametrize("fields", [{"timeout": 0.2}, {"meta": {"download_timeout": 0.2}}])
def test_a_request_may_set_its_own_deadline(make, fields):
    with serving(drip(OK)) as server, gevent.Timeout(5):
        with pytest.raises(DownloadTimeout, match="0.2 s"):
            make().get_response(Request(server.url, **fields))


def test_a_deadline_of_somebody_else_passes_through(make):
    with serving(drip(OK)) as server:
        with pytest.raises(gevent.Timeout) as raised, gevent.Timeout(0.1) as theirs:
            make().get_response(Request(server.url))
    assert raised.value is theirs


def test_a_deadline_that_was_kept_does_not_strike_later(make):
    with serving(answering(b"tea")) as server:
        assert make(timeout_seconds=0.2).get_response(Request(server.url)).body == b"tea"
        gevent.sleep(0.3)


def test_the_size_limit_is_the_downloaders_or_the_requests(make):
    with serving(answering(b"a" * 1000)) as server:
        downloader = make(max_bytes=999)
        with pytest.raises(BodyTooLarge):
            downloader.get_response(Request(server.url))
        for size in (1000, 0):
            request = Request(server.url, meta={"download_maxsize": size})
            assert len(downloader.get_response(request).body) == 1000
        with pytest.raises(BodyTooLarge):
            make().get_response(Request(server.url, meta={"download_maxsize": 10}))


def test_no_limit_is_no_limit(make):
    with serving(answering(b"a" * 1000)) as server:
        assert len(make(max_bytes=0).get_response(Request(server.url)).body) == 1000


def test_a_cut_body_is_a_failure_unless_loss_is_forgiven(make):
    with serving(saying(OK, b"Content-Length: 10\r\n\r\ntea")) as server:
        with pytest.raises(BodyTruncated):
            make().get_response(Request(server.url))
        kept = make(fail_on_dataloss=False).get_response(Request(server.url))
        asked = make().get_response(Request(server.url, meta={"download_fail_on_dataloss": False}))
    assert (kept.body, kept.flags) == (asked.body, asked.flags) == (b"tea", ["dataloss"])


def test_a_compressed_page_arrives_as_text(make):
    page = gzip.compress("<p>thé</p>".encode())
    headers = (b"Content-Encoding: gzip", b"Content-Type: text/html; charset=utf-8")
    with serving(answering(page, *headers)) as server:
        response = make().get_response(Request(server.url))
        assert response.text == "<p>thé</p>"
        assert b"Accept-Encoding: gzip, deflate" in server.requests[0]


@pytest.mark.parametrize("body", [gzip.compress(b"tea" * 1000)[:-9], b"plain", b"\x1f\x8b\x08garbage"])
def test_a_broken_compressed_body_is_a_failure(make, body):
    with serving(answering(body, b"Content-Encoding: gzip")) as server:
        with pytest.raises(BodyCorrupt):
            make().get_response(Request(server.url))


def test_a_bomb_is_stopped_in_little_memory(make):
    bomb = gzip.compress(bytes(100 << 20))
    with serving(answering(bomb, b"Content-Encoding: gzip")) as server:
        tracemalloc.start()
        with pytest.raises(BodyTooLarge):
            make().get_response(Request(server.url))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 16 << 20


def routes(table: dict[bytes, tuple[bytes, ...]]) -> Callable[[Conversation], None]:
    """A server with a status line and headers for each path."""

    def script(conversation: Conversation) -> None:
        while request := conversation.hear():
            status, *headers = table[request.split(b" ")[1]]
            conversation.answer(request, *headers, status=status)

    return script


def test_redirects_are_followed_to_the_end_with_the_cookies_on_the_way(make):
    table = {
        b"/": (b"302 Found", b"Location: /login", b"Set-Cookie: step=1"),
        b"/login": (b"303 See Other", b"Location: /home", b"Set-Cookie: step=2", b"Set-Cookie: user=tea"),
        b"/home": (b"200 OK",),
    }
    with serving(routes(table)) as server:
        response = follow(make(), Request(server.url, "POST", data={"a": "b"}))
        assert response.url == f"{server.url}home"
        assert response.body.startswith(b"GET /home") and b"Cookie: step=2; user=tea" in response.body
        assert [one.status_code for one in response.history] == [302, 303]
        assert "Cookie" not in response.request.headers


def test_a_page_that_redirects_to_itself_until_it_sees_its_cookie_is_reached(make):
    def script(conversation: Conversation) -> None:
        while request := conversation.hear():
            if b"Cookie: seen=1" in request:
                conversation.answer(b"welcome")
            else:
                conversation.answer(b"", b"Location: /", b"Set-Cookie: seen=1", status=b"302 Found")

    with serving(script) as server:
        assert follow(make(), Request(server.url)).body == b"welcome"


def test_a_redirect_loop_ends_in_an_error(make):
    table = {b"/": (b"302 Found", b"Location: /b"), b"/b": (b"301 Moved", b"Location: /")}
    with serving(routes(table)) as server:
        with pytest.raises(BadRedirect, match="more than 5"):
            follow(make(), Request(server.url))
        assert len(server.requests) == 6


@pytest.mark.parametrize("location", [b"data:text/html,x", b"javascript:alert(1)", b"ftp://127.0.0.1/"])
def test_a_redirect_off_the_web_ends_in_an_error(make, location):
    with serving(routes({b"/": (b"302 Found", b"Location: " + location)})) as server:
        with pytest.raises(BadRedirect):
            follow(make(), Request(server.url))


def test_a_location_in_raw_bytes_is_followed(make):
    table = {b"/": (b"302 Found", "Location: /thé/茶…".encode()), b"/th%C3%A9/%E8%8C%B6%E2%80%A6": (b"200 OK",)}
    with serving(routes(table)) as server:
        assert follow(make(), Request(server.url)).status_code == 200


def test_a_redirect_with_a_broken_body_is_followed_all_the_same(make):
    table = {b"/": (b"302 Found", b"Location: /b", b"Content-Encoding: gzip"), b"/b": (b"200 OK",)}
    with serving(routes(table)) as server:
        assert follow(make(), Request(server.url)).status_code == 200


def test_a_status_to_try_again_is_raised_with_its_readable_answer(make):
    body = gzip.compress(b"overloaded")
    with serving(answering(body, b"Content-Encoding: gzip", status=b"503 Busy")) as server:
        with pytest.raises(RetryStatus) as failure:
            make().get_response(Request(server.url))
    assert failure.value.response.text == "overloaded"


def test_default_headers_are_sent(make):
    with serving(answering()) as server:
        make().get_response(Request(server.url))
        assert b"User-Agent: me/1\r\n" in server.requests[0] and b"Accept: text/html\r\n" in server.requests[0]


def test_the_answer_belongs_to_the_request(make):
    request = Request("http://shop.test/", meta={"a": 1})
    response = make(FakeTransport({"http://shop.test/": b"tea"})).get_response(request)
    assert response.request is request and response.meta == {"a": 1}


def test_what_happens_is_counted_under_the_known_names(make):
    stats = Stats()
    pages = {"http://shop.test/": b"tea", "http://shop.test/down": ConnectionFailed("down")}
    downloader = make(FakeTransport(pages), [], stats=stats)
    downloader.get_response(Request("http://shop.test/"))
    downloader.get_response(Request("http://shop.test/none", "POST", data=b"12345"))
    with pytest.raises(ConnectionFailed):
        downloader.get_response(Request("http://shop.test/down"))
    counted = stats.as_dict()
    assert counted.pop("downloader/request_bytes") > 3 * len("http://shop.test/") + 5
    assert counted == {
        "downloader/exception_count": 1,
        "downloader/exception_type_count/ConnectionFailed": 1,
        "downloader/request_count": 3,
        "downloader/request_method_count/GET": 2,
        "downloader/request_method_count/POST": 1,
        "downloader/response_bytes": 3,
        "downloader/response_count": 2,
        "downloader/response_status_count/200": 1,
        "downloader/response_status_count/404": 1,
    }


def test_a_request_that_a_middleware_answers_or_drops_is_not_counted(make):
    class Answering:
        def process_request(self, request):
            if request.url.endswith("drop"):
                raise DropRequest("no")
            return Response(request.url, 203)

    stats = Stats()
    transport = FakeTransport({})
    downloader = make(transport, [Answering()], stats=stats)
    assert downloader.get_response(Request("http://shop.test/")).status_code == 203
    with pytest.raises(DropRequest):
        downloader.get_response(Request("http://shop.test/drop"))
    assert stats.as_dict() == {} and transport.requests == []


def test_closing_closes_the_transport(make):
    class Closing(FakeTransport):
        is_closed = False

        def close(self):
            self.is_closed = True

    transport = Closing({})
    make(transport).close()
    assert transport.is_closed
