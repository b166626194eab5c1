"""TLS and proxies, on every transport."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import gevent
import pytest

from scrapy_plus.errors import (
    BadAnswer,
    BodyTruncated,
    ConnectionFailed,
    DownloadError,
    ProxyFailed,
    TlsFailed,
)
from scrapy_plus.transport.requests_session import RequestsTransport
from tests.transport.asking import fetch
from tests.transport.servers import (
    OK,
    Conversation,
    answering,
    certificate,
    free_port,
    saying,
    serving,
)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path]:
    cert, key = certificate(tmp_path_factory.mktemp("tls"))
    return {"certfile": str(cert), "keyfile": str(key)}, cert


def test_tls_to_a_plain_port_is_a_tls_failure(transport):
    with serving(lambda conversation: conversation.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        with pytest.raises(TlsFailed, match="127.0.0.1"):
            fetch(transport, server.url.replace("http:", "https:"))


def test_plain_http_to_a_tls_port_is_a_failure(transport, tls):
    with serving(answering(), **tls[0]) as server:
        with pytest.raises((BadAnswer, ConnectionFailed)):
            fetch(transport, server.url.replace("https:", "http:"))


def test_a_certificate_of_nobody_known_is_refused(transport, tls):
    with serving(answering(), **tls[0]) as server:
        with pytest.raises(TlsFailed, match="certificate"):
            fetch(transport, server.url)


@pytest.mark.parametrize("trust", ["the certificate", "anybody"])
def test_tls_works_and_keeps_its_connection(make_transport, tls, trust):
    options, cert = tls
    transport = make_transport(verify_tls=str(cert) if trust == "the certificate" else False)
    with serving(answering(b"tea" * 50_000), **options) as server:
        for _ in range(5):
            assert fetch(transport, server.url).body == b"tea" * 50_000
        assert server.connections == 1
    transport.close()


def test_a_tls_body_that_ends_early_is_a_failure(make_transport, tls):
    transport = make_transport(verify_tls=False)
    with serving(saying(OK, b"Content-Length: 10\r\n\r\ntea"), **tls[0]) as server:
        with pytest.raises(BodyTruncated):
            fetch(transport, server.url)
    transport.close()


def test_an_http_proxy_is_asked_for_the_whole_url(transport):
    with serving(answering(b"from the proxy")) as proxy:
        request = {"proxy": f"http://us:p%40ss@127.0.0.1:{proxy.port}", "headers": {"X": "1"}}
        assert fetch(transport, "http://u:p@site.test/a?b#c", **request).body == b"from the proxy"
        lines = proxy.requests[0].split(b"\r\n")
    assert lines[:2] == [b"GET http://site.test/a?b HTTP/1.1", b"Host: site.test"]
    assert b"Proxy-Authorization: Basic dXM6cEBzcw==" in lines and b"Authorization: Basic dTpw" in lines


def test_the_proxy_may_be_in_meta_and_without_a_scheme(transport):
    with serving(answering(b"from the proxy")) as proxy:
        assert fetch(transport, "http://site.test/", meta={"proxy": f"127.0.0.1:{proxy.port}"}).status_code == 200


def test_https_goes_through_a_tunnel(make_transport, tls):
    options, cert = tls
    heard: list[bytes] = []

    def tunnel(conversation: Conversation) -> None:
        heard.append(conversation.hear())
        with gevent.Timeout(10, False):
            there = gevent.socket.create_connection(("127.0.0.1", site.port))
            conversation.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = gevent.spawn(pump, there, conversation.socket)
            pump(conversation.socket, there)
            back.kill()

    transport = make_transport(verify_tls=str(cert))
    with serving(answering(b"tea"), **options) as site, serving(tunnel) as proxy:
        for _ in range(3):
            url = f"https://127.0.0.1:{site.port}/secret"
            assert fetch(transport, url, proxy=f"http://us:pw@127.0.0.1:{proxy.port}").body == b"tea"
        assert proxy.connections == 1 and heard[0].startswith(b"CONNECT 127.0.0.1:%d " % site.port)
        assert b"Proxy-Authorization: Basic dXM6cHc=" in heard[0] and b"secret" not in heard[0]
        assert not any(b"Proxy-Auth" in request for request in site.requests)
    transport.close()


def pump(source: gevent.socket.socket, sink: gevent.socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
    except OSError:
        pass


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_the_proxys_failure(transport, scheme):
    proxy = f"http://us:secret@127.0.0.1:{free_port()}"
    with pytest.raises(ProxyFailed, match="127.0.0.1") as failure:
        fetch(transport, f"{scheme}://site.test/", proxy=proxy)
    assert "secret" not in str(failure.value)


def test_a_proxy_that_refuses_the_tunnel_is_the_proxys_failure(transport):
    with serving(saying(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")) as proxy:
        with pytest.raises(ProxyFailed, match="407"):
            fetch(transport, "https://site.test/", proxy=f"http://127.0.0.1:{proxy.port}")


@pytest.mark.parametrize("proxy", ["ftp://127.0.0.1:1", "http://", "http://127.0.0.1:port", "::::"])
def test_a_proxy_that_is_no_url_is_refused(transport, proxy):
    with pytest.raises(DownloadError) as failure:
        fetch(transport, "http://127.0.0.1:9/", proxy=proxy)
    assert failure.value.permanent


def socks5(conversation: Conversation) -> None:
    """A SOCKS5 proxy without a password, which takes every name to be 127.0.0.1."""
    sock = conversation.socket
    sock.recv(64)
    sock.sendall(b"\x05\x00")
    request = sock.recv(512)
    conversation.server.requests.append(request)
    with gevent.socket.create_connection(("127.0.0.1", int.from_bytes(request[-2:], "big"))) as there:
        sock.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        back = gevent.spawn(pump, there, sock)
        pump(sock, there)
        back.kill()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("encrypted", [False, True])
def test_a_socks_proxy_looks_the_name_up_and_its_connection_is_kept(make_transport, tls, scheme, encrypted):
    pytest.importorskip("socks")
    transport = make_transport(verify_tls=False)
    with serving(answering(b"tea"), **(tls[0] if encrypted else {})) as site, serving(socks5) as proxy:
        url = site.url.replace("127.0.0.1", "site.test")
        for _ in range(3):
            assert fetch(transport, url, proxy=f"{scheme}://127.0.0.1:{proxy.port}").body == b"tea"
        assert proxy.connections == 1 and b"site.test" in proxy.requests[0]
        assert site.requests[0].startswith(b"GET / HTTP/1.1\r\n")
    transport.close()


def test_a_socks_proxy_that_is_not_there_is_the_proxys_failure(transport):
    pytest.importorskip("socks")
    with pytest.raises(ProxyFailed):
        fetch(transport, "http://site.test/", proxy=f"socks5://us:secret@127.0.0.1:{free_port()}")


def test_a_socks_proxy_without_its_library_says_what_to_install(monkeypatch):
    transport = RequestsTransport()
    monkeypatch.setitem(sys.modules, "socks", None)
    monkeypatch.delitem(sys.modules, "urllib3.contrib.socks", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ProxyFailed, match="pip install PySocks"):
            fetch(transport, "http://site.test/", proxy="socks5://127.0.0.1:1")
