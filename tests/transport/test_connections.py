"""How every transport treats its connections: kept, dead, refused, encrypted, through a proxy."""

from __future__ import annotations

import contextlib
import gc
import os

import gevent
import pytest

from scrapy_plus.errors import (
    ConnectionFailed,
    DownloadError,
    DownloadTimeout,
    NameNotFound,
)
from scrapy_plus.http.request import Request
from scrapy_plus.transport.base import Transport
from scrapy_plus.transport.requests_session import RequestsTransport
from tests.transport.asking import MAX_BYTES, fetch
from tests.transport.servers import (
    OK,
    Conversation,
    answering,
    free_port,
    hear_and_reset,
    saying,
    serving,
)


def open_files() -> int:
    """A server, and what a transport waits by, are some of them: tests leave room for four."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def attempt(transport: Transport, url: str) -> BaseException:
    """The failure, with all that its traceback holds on to."""
    with pytest.raises(DownloadError) as failure:
        fetch(transport, url)
    return failure.value


def test_connections_are_kept_and_used_again(transport):
    with serving(answering(b"tea")) as server:
        for _ in range(20):
            assert fetch(transport, server.url).body == b"tea"
        assert server.connections == 1


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nConnection: close\r\n", b"HTTP/1.0 200 OK\r\n"])
def test_a_connection_that_is_said_to_close_is_not_used_again(transport, head):
    def script(conversation: Conversation) -> None:
        while conversation.hear():
            conversation.say(head, b"Content-Length: 3\r\n\r\ntea")

    with serving(script) as server:
        assert [fetch(transport, server.url).body for _ in range(2)] == [b"tea"] * 2
        assert server.connections == 2


def one_answer_a_connection(conversation: Conversation) -> None:
    """Keeps the connection in word, closes it at the next request."""
    conversation.hear()
    conversation.answer(b"tea")
    conversation.hear()


def test_a_kept_connection_that_dies_at_the_next_request_costs_nothing(transport):
    with serving(one_answer_a_connection) as server:
        assert [fetch(transport, server.url).body for _ in range(3)] == [b"tea"] * 3
        assert server.connections == 3


def test_a_post_is_not_sent_again_by_itself(transport):
    with serving(one_answer_a_connection) as server:
        fetch(transport, server.url)
        with pytest.raises(ConnectionFailed):
            fetch(transport, server.url, method="POST", data=b"order")
        assert sum(request.startswith(b"POST") for request in server.requests) == 1


def test_a_post_is_not_tried_on_a_connection_that_is_closed_already(transport):
    with serving(saying(OK, b"Content-Length: 3\r\n\r\ntea")) as server:
        fetch(transport, server.url)
        gevent.sleep(0.05)
        assert fetch(transport, server.url, method="POST", data=b"order").body == b"tea"


def test_a_request_on_a_new_connection_is_sent_once(transport):
    with serving(saying()) as server:
        with pytest.raises(ConnectionFailed):
            fetch(transport, server.url)
        assert len(server.requests) == 1


def test_a_refused_connection_is_a_failure_that_names_the_host(transport):
    port = free_port()
    with pytest.raises(ConnectionFailed, match=f"127.0.0.1:{port}.*refused"):
        fetch(transport, f"http://127.0.0.1:{port}/")


def test_after_failures_of_all_kinds_the_next_connection_is_as_good_as_the_first(transport):
    """The system gives the number of a closed socket to the next one: nobody may take the one for the other."""
    with serving(answering(b"tea")) as well, serving(saying()) as closing, serving(hear_and_reset()) as resetting:
        for _ in range(3):
            for url in (f"http://127.0.0.1:{free_port()}/", closing.url, resetting.url):
                for _ in range(2):
                    with pytest.raises(ConnectionFailed):
                        fetch(transport, url, seconds=5.0)
            assert fetch(transport, well.url, seconds=5.0, headers={"Connection": "close"}).body == b"tea"


@pytest.mark.parametrize("host", ["nonexistent.invalid", f"{'a' * 64}.invalid", "xn--.invalid"])
def test_a_name_that_does_not_resolve_is_said_to_be_that(transport, host):
    with pytest.raises(NameNotFound, match=host):
        fetch(transport, f"http://user:secret@{host}/", seconds=30)


def test_no_password_is_in_a_message(transport):
    with pytest.raises(ConnectionFailed) as failure:
        fetch(transport, f"http://user:secret@127.0.0.1:{free_port()}/")
    assert "secret" not in str(failure.value) and "user" not in str(failure.value)


def silent(conversation: Conversation) -> None:
    conversation.hear()
    conversation.wait_for_end()


def silent_in_the_body(conversation: Conversation) -> None:
    conversation.hear()
    conversation.say(OK, b"Content-Length: 10\r\n\r\ntea")
    conversation.wait_for_end()


@pytest.mark.parametrize("script", [silent, silent_in_the_body])
def test_no_connection_survives_a_killed_worker(transport, script):
    before = open_files()
    with serving(script) as server:
        workers = [gevent.spawn(fetch, transport, server.url) for _ in range(120)]
        gevent.sleep(0.3)
        assert server.connections == 120 and open_files() > before + 120
        gevent.killall(workers)
        gevent.sleep(0.1)
        assert open_files() <= before + 4


FAILING = {
    "cut": saying(OK, b"Content-Length: 10\r\n\r\ntea"),
    "garbage": saying(b"garbage"),
    "reset": hear_and_reset(OK),
    "too large": saying(OK, b"Content-Length: 99999999\r\n\r\n"),
    "bad length": saying(OK, b"Content-Length: x\r\n\r\n"),
}


@pytest.mark.parametrize("script", FAILING.values(), ids=FAILING)
def test_no_connection_survives_a_failure_even_while_somebody_keeps_the_exception(transport, script):
    before = open_files()
    with serving(script) as server:
        workers = [gevent.spawn(attempt, transport, server.url) for _ in range(50)]
        gevent.joinall(workers, raise_error=True)
        failures = [worker.value for worker in workers]
        gevent.sleep(0.1)
        assert len(failures) == 50 and open_files() <= before + 4


def test_a_deadline_that_passes_through_closes_the_connection(transport):
    ended: list[bool] = []

    def drip(conversation: Conversation) -> None:
        conversation.hear()
        conversation.say(OK, b"Content-Length: 1000\r\n\r\n")
        try:
            for _ in range(100):
                conversation.say(b"a")
                gevent.sleep(0.05)
        except OSError:
            ended.append(True)

    with serving(drip) as server:
        with pytest.raises(gevent.Timeout), gevent.Timeout(0.3):
            transport.fetch(Request(server.url), timeout_seconds=5, max_bytes=MAX_BYTES)
        with gevent.Timeout(5):
            while not ended:
                gevent.sleep(0.02)


@pytest.mark.parametrize("said", [b"", OK, OK + b"Content-Length: 9\r\n\r\ntea"], ids=["nothing", "head", "body"])
def test_a_server_that_falls_silent_is_a_timeout(transport, said):
    def script(conversation: Conversation) -> None:
        conversation.hear()
        conversation.say(said)
        conversation.wait_for_end()

    with serving(script) as server:
        with gevent.Timeout(10), pytest.raises(DownloadTimeout, match="127.0.0.1"):
            transport.fetch(Request(server.url), timeout_seconds=0.2, max_bytes=MAX_BYTES)


def test_many_at_a_time_get_their_own_answers(transport):
    def echo(conversation: Conversation) -> None:
        while request := conversation.hear():
            gevent.sleep(0.001)
            conversation.answer(request.split(b" ")[1])

    with serving(echo) as server:
        jobs = [gevent.spawn(fetch, transport, f"{server.url}{i}") for i in range(200)]
        gevent.joinall(jobs, timeout=30, raise_error=True)
        assert [job.value.body for job in jobs] == [b"/%d" % i for i in range(200)]


def test_close_lets_go_of_the_kept_connections(transport):
    ended: list[bool] = []

    def script(conversation: Conversation) -> None:
        conversation.hear()
        conversation.answer(b"tea")
        ended.append(conversation.wait_for_end())

    with serving(script) as server:
        fetch(transport, server.url)
        transport.close()
        gevent.sleep(0.1)
        assert ended == [True]


def test_a_reset_within_an_upload_is_a_failure(transport):
    def script(conversation: Conversation) -> None:
        conversation.socket.recv(1000)
        conversation.reset()

    with serving(script) as server:
        with pytest.raises(ConnectionFailed, match="127.0.0.1"):
            fetch(transport, server.url, method="POST", data=b"x" * 20_000_000)


def test_an_upload_that_nobody_reads_is_a_timeout(transport):
    with serving(lambda conversation: gevent.sleep(5)) as server:
        with gevent.Timeout(10), pytest.raises(DownloadTimeout):
            request = Request(server.url, "POST", data=b"x" * 20_000_000)
            transport.fetch(request, timeout_seconds=0.3, max_bytes=MAX_BYTES)


def test_only_so_many_sites_keep_their_connections(make_transport):
    ended: list[bool] = []

    def script(conversation: Conversation) -> None:
        conversation.hear()
        conversation.answer(b"tea")
        ended.append(conversation.wait_for_end())

    transport = make_transport(**({"max_sites": 2} if make_transport is RequestsTransport else {"max_connections": 2}))
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            fetch(transport, stack.enter_context(serving(script)).url)
        gevent.sleep(0.1)
        assert ended == [True] * 3
    transport.close()


def test_no_more_connections_to_a_site_are_kept_than_wanted(make_transport):
    def script(conversation: Conversation) -> None:
        while conversation.hear():
            gevent.sleep(0.05)
            conversation.answer(b"tea")

    before = open_files()
    transport = make_transport(**({"pool_size": 3} if make_transport is RequestsTransport else {"max_connections": 3}))
    with serving(script) as server:
        gevent.joinall([gevent.spawn(fetch, transport, server.url) for _ in range(12)], raise_error=True)
        gevent.sleep(0.1)
        assert server.connections == 12 and open_files() - before <= 4 + 2 * 3
    transport.close()
