"""What every transport puts on the wire."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import (
    DownloadError,
)
from scrapy_plus.transport.base import Transport
from tests.transport.asking import ask, fetch
from tests.transport.servers import (
    answering,
    free_port,
    serving,
)


def sent(transport: Transport, path: str = "", **fields: object) -> tuple[list[bytes], bytes]:
    """The head's lines and the body that a server hears."""
    with serving(answering(b"x")) as server:
        fetch(transport, server.url + path, **fields)
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    return [line.replace(b"127.0.0.1:%d" % server.port, b"HOST") for line in head.split(b"\r\n")], body


def test_a_get_says_its_line_its_host_and_nothing_that_was_not_asked_for(transport):
    assert sent(transport) == ([b"GET / HTTP/1.1", b"Host: HOST"], b"")


def test_headers_keep_their_case_and_their_order(transport):
    lines, _ = sent(transport, headers={"X-Zebra": "1", "accept": "a", "User-Agent": "me", "X-apple": "2"})
    assert lines[2:] == [b"X-Zebra: 1", b"accept: a", b"User-Agent: me", b"X-apple: 2"]


@pytest.mark.parametrize("path", ["a%2fb%2Fc", "caf%E9?q=%e4&x=(1)*2", "~u/a;b=1,c?x=1&&y", "?only=query", "a%zz"])
def test_the_request_line_has_the_url_letter_by_letter(transport, path):
    assert sent(transport, path)[0][0] == b"GET /" + path.encode() + b" HTTP/1.1"


def test_the_fragment_stays_at_home(transport):
    assert sent(transport, "a?b#c")[0][0] == b"GET /a?b HTTP/1.1"


def test_a_query_without_a_path_gets_one(transport):
    with serving(answering()) as server:
        fetch(transport, f"http://127.0.0.1:{server.port}?a=1")
        assert server.requests[0].startswith(b"GET /?a=1 HTTP/1.1\r\n")


def test_params_are_part_of_the_request_line(transport):
    assert sent(transport, "s?a=1", params={"b": "2 3"})[0][0] == b"GET /s?a=1&b=2+3 HTTP/1.1"


def test_a_form_is_sent_with_its_type_and_length(transport):
    lines, body = sent(transport, method="POST", data={"a": "1 2", "b": ["3", "4"]})
    assert body == b"a=1+2&b=3&b=4"
    assert b"Content-Type: application/x-www-form-urlencoded" in lines and b"Content-Length: 13" in lines


def test_json_is_sent_with_its_type(transport):
    lines, body = sent(transport, method="POST", json={"a": "ä"})
    assert body == '{"a":"ä"}'.encode() and b"Content-Type: application/json" in lines


def test_a_content_type_of_ones_own_wins(transport):
    lines, _ = sent(transport, method="POST", json=[], headers={"content-type": "application/vnd.api+json"})
    assert [line for line in lines if line.lower().startswith(b"content-type")] == [
        b"content-type: application/vnd.api+json"
    ]


def test_a_post_without_a_body_says_so(transport):
    assert b"Content-Length: 0" in sent(transport, method="POST")[0]


def test_a_wrong_length_of_the_users_is_put_right(transport):
    lines, body = sent(transport, method="PUT", data=b"abc", headers={"content-length": "99"})
    assert body == b"abc" and [line for line in lines if b"ength" in line] == [b"Content-Length: 3"]


def test_raw_bytes_arrive_as_they_are(transport):
    raw = bytes(range(256)) * 1000
    assert sent(transport, method="POST", data=raw)[1] == raw


def test_userinfo_becomes_an_authorization_and_stays_out_of_the_request_line(transport):
    with serving(answering()) as server:
        fetch(transport, f"http://us%40er:pa%3Ass@127.0.0.1:{server.port}/x")
        lines = server.requests[0].split(b"\r\n")
    assert lines[0] == b"GET /x HTTP/1.1" and b"Authorization: Basic dXNAZXI6cGE6c3M=" in lines
    assert not any(b"pa" in line for line in lines)


def test_an_authorization_of_ones_own_wins_over_userinfo(transport):
    with serving(answering()) as server:
        fetch(transport, f"http://u:p@127.0.0.1:{server.port}/", headers={"authorization": "Bearer x"})
        assert server.requests[0].lower().count(b"authorization:") == 1 and b"Bearer x" in server.requests[0]


def test_a_host_of_ones_own_is_sent_once(transport):
    assert sent(transport, headers={"host": "virtual.test"})[0] == [b"GET / HTTP/1.1", b"Host: virtual.test"]


@pytest.mark.parametrize(
    "headers", [{"X": "a\r\nEvil: 1"}, {"X": "a\nb"}, {"X": "a\rb"}, {"X\r\nEvil": "1"}, {"X": "a\0b"}]
)
def test_a_line_break_in_a_header_is_refused_before_anything_is_sent(transport, headers):
    with serving(answering()) as server:
        with pytest.raises(DownloadError) as failure:
            fetch(transport, server.url, headers=headers)
        assert failure.value.permanent and server.connections == 0


def test_header_values_beyond_latin_1_are_sent_as_utf_8(transport):
    assert "X-Name: 茶".encode() in sent(transport, headers={"X-Name": "茶"})[0]


def test_the_environment_is_not_asked_for_proxies(transport, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert ask(transport, answering(b"direct")).body == b"direct"
