"""What is libcurl's own: its errors in our words, what it is kept from doing, HTTP/2, its handles and greenlets."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
from gevent.pool import Pool

pycurl = pytest.importorskip("pycurl")

from scrapy_plus.errors import (
    BadAnswer,
    BodyTooLarge,
    ConnectionFailed,
    DownloadError,
    DownloadTimeout,
    NameNotFound,
    ProxyFailed,
    TlsFailed,
)
from scrapy_plus.http.request import Request
from scrapy_plus.transport.base import Unsendable
from scrapy_plus.transport.curl import CurlTransport
from scrapy_plus.transport.curl_exchange import final_head
from scrapy_plus.transport.curl_failures import TABLE, as_download_error
from scrapy_plus.transport.curl_loop import CurlLoop
from scrapy_plus.transport.requests_session import RequestsTransport
from tests.transport.asking import MAX_BYTES, fetch
from tests.transport.servers import OK, Conversation, answering, certificate, free_port, saying, serving


@pytest.fixture
def curl() -> Iterator[CurlTransport]:
    made = CurlTransport(verify_tls=False)
    yield made
    made.close()


# -- errors ------------------------------------------------------------------------------------------------------------

KINDS = {
    NameNotFound: "COULDNT_RESOLVE_HOST",
    ProxyFailed: "COULDNT_RESOLVE_PROXY",
    DownloadTimeout: "OPERATION_TIMEDOUT",
    BodyTooLarge: "FILESIZE_EXCEEDED",
    Unsendable: "URL_MALFORMAT",
    TlsFailed: "SSL_CONNECT_ERROR PEER_FAILED_VERIFICATION SSL_CERTPROBLEM SSL_CACERT_BADFILE SSL_CIPHER",
    BadAnswer: "UNSUPPORTED_PROTOCOL BAD_CONTENT_ENCODING",
    ConnectionFailed: "COULDNT_CONNECT GOT_NOTHING SEND_ERROR RECV_ERROR PARTIAL_FILE OUT_OF_MEMORY READ_ERROR",
}


@pytest.mark.parametrize(("kind", "names"), KINDS.items(), ids=[kind.__name__ for kind in KINDS])
def test_an_error_of_libcurl_is_one_of_ours(kind, names):
    for name in names.split():
        error = as_download_error(getattr(pycurl, f"E_{name}"), "some words", "shop.test")
        assert type(error) is kind and str(error).startswith("shop.test: ") and "some words" in str(error)


def test_every_error_that_libcurl_has_or_will_have_is_one_of_ours():
    for code in range(1, 200):
        error = as_download_error(code, "some words", "shop.test")
        assert isinstance(error, DownloadError) and (code in TABLE or type(error) is ConnectionFailed)


def test_the_systems_word_for_it_is_preferred():
    error = as_download_error(pycurl.E_COULDNT_CONNECT, "Failed to connect after 0 ms", "shop.test", errno=111)
    assert str(error) == "shop.test: no connection (Connection refused)"


def test_what_a_proxy_fails_at_is_its_failure():
    for code, said in ((pycurl.E_COULDNT_CONNECT, ""), (56, "CONNECT tunnel failed, response 407"), (97, "")):
        assert type(as_download_error(code, said, "shop.test", proxy="proxy.test:80")) is ProxyFailed


def test_garbage_in_chunks_is_told_from_a_broken_connection():
    assert type(as_download_error(56, "chunk hex-length char not a hex digit: 0x78", "shop.test")) is BadAnswer
    assert type(as_download_error(56, "Recv failure: Connection reset by peer", "shop.test")) is ConnectionFailed


# -- the same on the wire as the other transport -----------------------------------------------------------------------

TARGETS = [
    "%2f%2F%e4%E4",
    "a/../b/./c//d/",
    "..",
    "a%zz%",
    "?",
    "??a?b",
    "x?y=a/../b",
    "".join(chr(code) for code in range(33, 127) if chr(code) not in "#"),
    "?" + "".join(chr(code) for code in range(33, 127) if chr(code) not in "#"),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_both_transports_send_the_same_bytes(curl, target, way):
    other = RequestsTransport()
    with serving(answering(b"tea")) as server:
        for transport in (curl, other):
            request = Request(server.url, headers={"X-b": "1", "x-A": "2", "Cookie": "a=b", "Empty": ""})
            request.url = server.url + target
            if way == "proxy":
                request.url, request.proxy = "http://site.test/" + target, server.url
            transport.fetch(request, timeout_seconds=10, max_bytes=MAX_BYTES)
        ours, theirs = ([line.rstrip() for line in heard.split(b"\r\n")] for heard in server.requests)
        assert ours == theirs
    other.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "POST", "data": {"a": "1"}},
        {"method": "POST"},
        {"method": "PUT", "data": b"x" * 100_000},
        {"method": "PATCH", "json": {"a": 1}},
        {"method": "DELETE"},
        {"method": "OPTIONS"},
        {"method": "GET", "data": b"a body"},
        {"method": "PURGE", "headers": {"Accept": "x", "Content-Type": "y"}},
    ],
    ids=lambda fields: fields["method"] + ("+" if len(fields) > 1 else ""),
)
def test_both_transports_send_the_same_method_fields_and_body(curl, fields):
    other = RequestsTransport()
    with serving(answering(b"tea")) as server:
        for transport in (curl, other):
            fetch(transport, server.url, **fields)
        (our_head, _, our_body), (head, _, body) = (heard.partition(b"\r\n\r\n") for heard in server.requests)
        assert our_body == body
        assert sorted(our_head.split(b"\r\n")) == sorted(head.split(b"\r\n"))
    other.close()


# -- what it is kept from ----------------------------------------------------------------------------------------------


def test_a_kept_connection_that_dies_is_replaced_however_many_of_them_there_are(curl):
    """As many as were kept die at their next request; each costs one more try, of which libcurl allows a few."""

    def one_answer(conversation: Conversation) -> None:
        conversation.hear()
        gevent.sleep(0.05)
        conversation.answer(b"tea")
        conversation.hear()

    with serving(one_answer) as server:
        gevent.joinall([gevent.spawn(fetch, curl, server.url) for _ in range(4)], raise_error=True)
        assert server.connections == 4
        assert fetch(curl, server.url).body == b"tea"


def test_a_redirect_to_another_protocol_or_a_file_is_only_an_answer(curl):
    with serving(answering(b"", b"Location: file:///etc/passwd", status=b"302 Found")) as server:
        response = fetch(curl, server.url)
        assert (response.status_code, response.body) == (302, b"")


def test_a_line_that_is_no_header_is_passed_over_but_an_order_is_not_repeated_for_it(curl):
    with serving(saying(OK, b"garbage\r\nContent-Length: 3\r\n\r\ntea")) as server:
        assert fetch(curl, server.url).body == b"tea"
        with pytest.raises(BadAnswer):
            fetch(curl, server.url, method="POST", data=b"order")
        assert sum(request.startswith(b"POST") for request in server.requests) == 1


def test_the_final_head_is_found_among_interim_answers_and_trailers():
    final = [b"HTTP/1.1 200 OK\r\n", b"A: 1\r\n", b"\r\n"]
    interim = [b"HTTP/1.1 103 Early Hints\r\n", b"\r\n", b"HTTP/2 100 \r\n", b"\r\n"]
    assert final_head(interim + final + [b"X-Trailer: 1\r\n", b"\r\n"]) == (b"".join(final), True)
    assert final_head(final[:2]) == (b"".join(final[:2]), False)
    assert final_head(interim) == (b"", False)
    assert final_head([]) == (b"", False)


# -- HTTP/2 ------------------------------------------------------------------------------------------------------------

NGINX = """\
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log; user root;
events {{ worker_connections 2048; }}
http {{
    access_log {folder}/access.log;
    log_format plain '$server_protocol';
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; large_client_header_buffers 4 64k;
    keepalive_requests 1000000;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
        location /protocol {{ return 200 "$server_protocol $host $http_x_case"; }}
        location /big {{ root {folder}/www; }}
        location /moved {{ return 302 https://other.test/; }}
    }}
    server {{ listen 127.0.0.1:{plain}; keepalive_requests 1000000; location / {{ root {folder}/www; }} }}
}}
"""


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URLs of a server that offers HTTP/2 over TLS, and of one that speaks HTTP/1.1 in clear."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("needs nginx")
    folder: Path = tmp_path_factory.mktemp("nginx")
    certificate(folder)
    (folder / "www").mkdir()
    (folder / "www" / "big").write_bytes(b"tea\n" * 500_000)
    (folder / "www" / "small").write_bytes(b"tea\n" * 256)
    port, plain = free_port(), free_port()
    text = NGINX.format(folder=folder, port=port, plain=plain)
    (folder / "nginx.conf").write_text(text if os.getuid() == 0 else text.replace("user root;", ""))
    server = subprocess.Popen([program, "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"https://127.0.0.1:{port}/", f"http://127.0.0.1:{plain}/"
    finally:
        server.terminate()
        server.wait(10)


@pytest.mark.system
def test_http_2_is_spoken_where_it_is_offered(curl, nginx):
    response = fetch(curl, nginx[0] + "protocol", headers={"X-Case": "kept", "Host": "virtual.test"})
    assert (response.status_code, response.text, response.flags) == (200, "HTTP/2.0 virtual.test kept", [])
    assert response.headers["Content-Length"] == "26" and response.ip_address == "127.0.0.1"
    assert fetch(curl, nginx[0] + "moved").headers["location"] == "https://other.test/"
    assert fetch(curl, nginx[0] + "missing").status_code == 404


@pytest.mark.system
def test_many_share_a_connection_of_http_2_and_one_that_is_killed_takes_no_other_with_it(curl, nginx):
    fetch(curl, nginx[0] + "protocol")
    others = [gevent.spawn(fetch, curl, nginx[0] + "big", max_bytes=1 << 22, seconds=30.0) for _ in range(20)]
    doomed = [gevent.spawn(fetch, curl, nginx[0] + "big", max_bytes=1 << 22, seconds=30.0) for _ in range(20)]
    gevent.sleep(0.005)
    gevent.killall(doomed)
    gevent.joinall(others, raise_error=True, timeout=30)
    assert [len(one.value.body) for one in others] == [2_000_000] * 20
    with pytest.raises(BodyTooLarge):
        fetch(curl, nginx[0] + "big", max_bytes=1000)
    assert fetch(curl, nginx[0] + "protocol").status_code == 200


# -- handles and greenlets ---------------------------------------------------------------------------------------------


def handles() -> int:
    gc.collect()
    return sum(isinstance(one, pycurl.Curl) and not one.closed for one in gc.get_objects())


def silent(conversation: Conversation) -> None:
    conversation.hear()
    conversation.wait_for_end()


def test_a_killed_greenlet_gives_its_handle_back(curl):
    with serving(silent) as server:
        for _ in range(3):
            workers = [gevent.spawn(fetch, curl, server.url) for _ in range(100)]
            gevent.sleep(0.2)
            gevent.killall(workers)
        assert server.connections == 300
        before = handles()
        assert before <= 120
        curl.close()
        assert handles() <= before - 100


def test_one_greenlet_may_end_the_wait_of_another(curl):
    with serving(silent) as slow, serving(answering(b"tea")) as fast:
        waiting = gevent.spawn(fetch, curl, slow.url)
        gevent.sleep(0.05)

        def ends_it() -> bytes:
            body = fetch(curl, fast.url).body
            waiting.kill()
            return body + fetch(curl, fast.url).body

        assert gevent.spawn(ends_it).get(timeout=10) == b"teatea"
        assert waiting.dead


def test_a_transport_that_is_closed_ends_what_waits_and_may_be_used_again(curl):
    with serving(silent) as slow, serving(answering(b"tea")) as fast:
        waiting = gevent.spawn(fetch, curl, slow.url)
        gevent.sleep(0.05)
        curl.close()
        with pytest.raises(ConnectionFailed):
            waiting.get(timeout=10)
        assert fetch(curl, fast.url).body == b"tea"


def test_a_thousand_wait_at_a_time(curl):
    def slow(conversation: Conversation) -> None:
        conversation.hear()
        gevent.sleep(1.0)
        conversation.answer(b"tea")

    with serving(slow, backlog=1024) as server:
        workers = [gevent.spawn(fetch, curl, server.url, seconds=60.0) for _ in range(1000)]
        gevent.joinall(workers, raise_error=True, timeout=60)
        assert {worker.value.body for worker in workers} == {b"tea"} and server.connections == 1000


def test_what_ended_before_the_close_is_not_looked_for_after_it():
    loop = CurlLoop(max_connections=1)
    loop.close()
    loop._wake()  # as the hub does it, which was asked for it before
    assert loop.is_closed


def test_others_go_on_while_a_name_is_looked_up(curl):
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while True:
            gevent.sleep(0)  # a turn of the hub: there are hundreds in the quickest lookup that does not block it
            ticks += 1

    ticking = gevent.spawn(tick)
    with pytest.raises(NameNotFound):
        fetch(curl, "http://nonexistent.invalid/", seconds=30.0)
    ticking.kill()
    assert ticks > 3


@pytest.mark.long
@pytest.mark.system
def test_a_hundred_thousand_requests_leave_nothing_behind(curl, nginx):
    def ask(number: int) -> None:
        with gevent.Timeout(30):
            request = Request(nginx[1] + "small")
            response = curl.fetch(request, timeout_seconds=20, max_bytes=2000 if number % 50 else 1)
            assert len(response.body) == 1024

    def round_of(count: int) -> tuple[int, int, int]:
        failed = 0
        pool = Pool(50)
        jobs = [pool.spawn(ask, number) for number in range(count)]
        pool.join()
        failed = sum(isinstance(job.exception, BodyTooLarge) for job in jobs)
        assert failed == count // 50 and sum(job.exception is None for job in jobs) == count - failed
        jobs.clear()
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return len(os.listdir("/proc/self/fd")), handles(), resident

    files, count, resident = round_of(20_000)
    for _ in range(4):
        files_now, count_now, resident_now = round_of(20_000)
    assert files_now <= files + 60 and count_now <= count + 5
    assert resident_now < resident + (8 << 20)
