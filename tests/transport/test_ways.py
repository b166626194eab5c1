"""What goes by more than a plain connection, on every transport: certificates, proxies with passwords, IPv6."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest

from scrapy_plus.errors import DownloadTimeout, ProxyFailed, TlsFailed
from scrapy_plus.http.request import Request
from tests.transport.asking import MAX_BYTES, fetch
from tests.transport.servers import Conversation, Server, answering, certificate, serving
from tests.transport.test_tls import pump


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate with its key in one file, and the certificate alone."""
    folder = tmp_path_factory.mktemp("own")
    cert, key = certificate(folder)
    (folder / "both.pem").write_bytes(cert.read_bytes() + key.read_bytes())
    return folder / "both.pem", cert


@contextlib.contextmanager
def wanting_a_certificate(both: Path, trusted: Path) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.load_verify_locations(trusted)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(answering(b"for members"), ssl_context=context) as server:
        yield server


def test_a_client_certificate_is_shown_to_a_site_that_wants_one(make_transport, own):
    both, trusted = own
    transport = make_transport(verify_tls=str(trusted), client_certificate=str(both))
    with wanting_a_certificate(both, trusted) as server:
        assert fetch(transport, server.url).body == b"for members"
    transport.close()


def test_a_site_that_wants_a_certificate_and_gets_none_is_a_failure(make_transport, own):
    transport = make_transport(verify_tls=str(own[1]))
    with wanting_a_certificate(*own) as server:
        with pytest.raises(TlsFailed):
            fetch(transport, server.url)
    transport.close()


def test_a_name_that_the_certificate_is_not_for_is_refused(make_transport, own):
    transport = make_transport(verify_tls=str(own[1]))
    with serving(answering(b"tea"), certfile=str(own[0])) as server:
        with pytest.raises(TlsFailed):
            fetch(transport, server.url.replace("127.0.0.1", "localhost"))
        assert server.requests == []
    transport.close()


def test_ipv6_is_spoken(transport):
    try:
        server = Server(answering(b"six"), address="::1")
    except OSError:
        pytest.skip("no IPv6 loopback here")
    try:
        response = fetch(transport, f"http://[::1]:{server.port}/")
        assert (response.body, response.ip_address) == (b"six", "::1")
        assert b"\r\nHost: [::1]:%d\r\n" % server.port in server.requests[0]
    finally:
        server.stop()


# -- proxies with passwords --------------------------------------------------------------------------------------------


def socks5_for(user: bytes, password: bytes, site_port: int):
    """A SOCKS5 proxy that lets one user through, to one site."""

    def script(conversation: Conversation) -> None:
        sock = conversation.socket
        assert b"\x02" in sock.recv(64)[2:]
        sock.sendall(b"\x05\x02")
        given = sock.recv(512)
        conversation.server.requests.append(given)
        is_known = given == b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password
        sock.sendall(b"\x01\x00" if is_known else b"\x01\x01")
        if not is_known:
            return
        sock.recv(512)
        with gevent.socket.create_connection(("127.0.0.1", site_port)) as there:
            sock.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            back = gevent.spawn(pump, there, sock)
            pump(sock, there)
            back.kill()

    return script


def test_a_socks_proxy_is_told_user_and_password(transport):
    pytest.importorskip("socks")
    with serving(answering(b"tea")) as site, serving(socks5_for(b"us", b"p@ss", site.port)) as proxy:
        url = f"socks5://us:p%40ss@127.0.0.1:{proxy.port}"
        assert fetch(transport, "http://site.test/", proxy=url).body == b"tea"


def test_a_socks_proxy_that_refuses_the_password_is_the_proxys_failure(transport):
    pytest.importorskip("socks")
    with serving(socks5_for(b"us", b"right", 9)) as proxy:
        with pytest.raises(ProxyFailed) as failure:
            fetch(transport, "http://site.test/", proxy=f"socks5://us:secret@127.0.0.1:{proxy.port}")
        assert "secret" not in str(failure.value)


@pytest.mark.parametrize("kind", ["tunnel", "socks"])
def test_a_connection_through_a_proxy_serves_the_one_user_that_it_was_made_for(make_transport, own, kind):
    """Many proxies take the name for the session that the request belongs to."""
    pytest.importorskip("socks")
    heard: list[bytes] = []

    def tunnel(conversation: Conversation) -> None:
        if kind == "socks":
            conversation.socket.recv(64)
            conversation.socket.sendall(b"\x05\x02")
            heard.append(conversation.socket.recv(512))
            conversation.socket.sendall(b"\x01\x00")
            conversation.socket.recv(512)
            granted = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
        else:
            heard.append(conversation.hear())
            granted = b"HTTP/1.1 200 Connection established\r\n\r\n"
        with gevent.socket.create_connection(("127.0.0.1", site.port)) as there:
            conversation.say(granted)
            back = gevent.spawn(pump, there, conversation.socket)
            pump(conversation.socket, there)
            back.kill()

    transport = make_transport(verify_tls=False)
    scheme = "socks5" if kind == "socks" else "http"
    with serving(answering(b"tea"), certfile=str(own[0])) as site, serving(tunnel) as proxy:
        for user in ("ann", "bob", "ann", "bob"):
            assert fetch(transport, site.url, proxy=f"{scheme}://{user}:x@127.0.0.1:{proxy.port}").body == b"tea"
        assert proxy.connections == 2 and heard[0] != heard[1]
    transport.close()


def test_the_environment_takes_no_site_from_its_proxy(transport, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "*")
    with serving(answering(b"from the proxy")) as proxy:
        assert fetch(transport, "http://site.test/", proxy=proxy.url).body == b"from the proxy"


def test_no_password_is_taken_from_a_netrc_file(transport, monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with serving(answering(b"tea", b'WWW-Authenticate: Basic realm="x"', status=b"401 Unauthorized")) as server:
        assert fetch(transport, server.url).status_code == 401
        assert len(server.requests) == 1 and b"uthorization" not in server.requests[0]


# -- waits -------------------------------------------------------------------------------------------------------------


def test_a_connection_that_is_not_made_in_its_time_is_a_timeout(make_transport):
    """A full backlog: the system answers no more connections, as a host that is down does not."""
    transport = make_transport(connect_timeout_seconds=0.3)
    with socket.socket() as sock, contextlib.ExitStack() as stack:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(sock.getsockname())
        began = time.monotonic()
        with gevent.Timeout(20), pytest.raises(DownloadTimeout):
            url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
            transport.fetch(Request(url), timeout_seconds=15.0, max_bytes=MAX_BYTES)
        assert time.monotonic() - began < 10
    transport.close()


def test_an_answer_that_takes_longer_than_the_connection_may_is_waited_for(make_transport):
    def slow(conversation: Conversation) -> None:
        conversation.hear()
        gevent.sleep(0.6)
        conversation.answer(b"tea")

    transport = make_transport(connect_timeout_seconds=0.3)
    with serving(slow) as server:
        assert fetch(transport, server.url).body == b"tea"
    transport.close()


def test_a_body_waits_for_a_server_that_says_continue(transport):
    def polite(conversation: Conversation) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += conversation.socket.recv(65536)
        conversation.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not head.endswith(b"order"):
            head += conversation.socket.recv(65536)
        conversation.answer(b"taken")

    with serving(polite) as server:
        headers = {"Expect": "100-continue"}
        assert fetch(transport, server.url, method="POST", data=b"order", headers=headers).body == b"taken"
