"""libcurl under a requests.Session: what users of requests know holds."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
import requests

pytest.importorskip("pycurl")

from scrapy_plus.transport.curl_adapter import CurlAdapter
from tests.transport.servers import OK, Conversation, answering, certificate, free_port, saying, serving


@pytest.fixture
def session() -> Iterator[requests.Session]:
    made = requests.Session()
    made.trust_env = False
    for prefix in ("http://", "https://"):
        made.mount(prefix, CurlAdapter())
    yield made
    made.close()


def test_a_response_is_what_it_is_with_requests(session):
    with serving(
        answering(b'{"tea": 1}', b"Content-Type: application/json", b"X-A: 1", status=b"404 Gone Home")
    ) as server:
        response = session.get(server.url + "a", params={"b": "c d"}, timeout=10)
    assert (response.status_code, response.reason, response.ok) == (404, "Gone Home", False)
    assert response.json() == {"tea": 1} and response.headers["x-a"] == "1" and response.url.endswith("/a?b=c+d")
    assert server.requests[0].startswith(b"GET /a?b=c+d HTTP/1.1\r\n")


def test_redirects_and_cookies_are_the_sessions(session):
    def script(conversation: Conversation) -> None:
        while request := conversation.hear():
            if request.startswith(b"GET /old"):
                conversation.answer(b"", b"Location: /new", b"Set-Cookie: a=1", status=b"302 Found")
            else:
                conversation.answer(b"new")

    with serving(script) as server:
        response = session.get(server.url + "old", timeout=10)
        assert (response.text, len(response.history), session.cookies["a"]) == ("new", 1, "1")
        assert b"\r\nCookie: a=1\r\n" in server.requests[1] and server.connections == 1


def test_compressed_bodies_are_inflated_and_may_be_streamed(session):
    import gzip

    with serving(answering(gzip.compress(b"tea" * 1000), b"Content-Encoding: gzip")) as server:
        assert session.get(server.url, timeout=10).content == b"tea" * 1000
        assert b"".join(session.get(server.url, stream=True, timeout=10).iter_content(7)) == b"tea" * 1000


@pytest.mark.parametrize("body", [b"tea", "tea", io.BytesIO(b"tea"), iter([b"t", b"ea"]), {"a": "1"}])
def test_a_body_may_be_anything(session, body):
    with serving(answering(b"taken")) as server:
        assert session.post(server.url, data=body, auth=("us", "pw"), timeout=10).text == "taken"
    head, _, sent = server.requests[0].partition(b"\r\n\r\n")
    assert sent == (b"a=1" if isinstance(body, dict) else b"tea") and b"Authorization: Basic dXM6cHc=" in head
    assert head.count(b"Content-Length: 3") == 1 and b"Transfer-Encoding" not in head


def test_failures_are_those_of_requests(session, tmp_path):
    with pytest.raises(requests.exceptions.ConnectionError, match="refused"):
        session.get(f"http://127.0.0.1:{free_port()}/", timeout=10)
    with pytest.raises(requests.exceptions.ProxyError):
        session.get("http://site.test/", proxies={"http": f"http://u:p@127.0.0.1:{free_port()}"}, timeout=10)
    with serving(lambda conversation: conversation.wait_for_end()) as server:
        with pytest.raises(requests.exceptions.Timeout):
            session.get(server.url, timeout=0.2)
    with serving(saying(OK, b"Content-Length: 10\r\n\r\ntea")) as server:
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            session.get(server.url, timeout=10)
    cert, key = certificate(tmp_path)
    with serving(answering(b"tea"), certfile=str(cert), keyfile=str(key)) as server:
        with pytest.raises(requests.exceptions.SSLError):
            session.get(server.url, timeout=10)
        assert session.get(server.url, verify=str(cert), cert=(str(cert), str(key)), timeout=10).content == b"tea"
        assert session.get(server.url, verify=False, timeout=10).content == b"tea"
