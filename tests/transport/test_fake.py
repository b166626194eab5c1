"""The transport for tests of spiders."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import BodyTooLarge, ConnectionFailed
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.transport.fake import FakeTransport


def fetch(transport: FakeTransport, url: str, **fields: object) -> Response:
    return transport.fetch(Request(url, **fields), timeout_seconds=1, max_bytes=1000)


def test_pages_are_bytes_text_responses_or_functions_of_the_request():
    transport = FakeTransport(
        {
            "http://shop.test/bytes": b"\xff",
            "http://shop.test/text": "té",
            "http://shop.test/response": Response("http://other.test/", 503, {"A": "b"}),
            "http://shop.test/function": lambda request: request.method,
        }
    )
    assert fetch(transport, "http://shop.test/bytes").body == b"\xff"
    assert fetch(transport, "http://shop.test/text").text == "té"
    assert fetch(transport, "http://shop.test/response").status_code == 503
    assert fetch(transport, "http://shop.test/function", method="PUT").body == b"PUT"
    assert [request.url.rpartition("/")[2] for request in transport.requests] == [
        "bytes",
        "text",
        "response",
        "function",
    ]


def test_a_response_bears_the_url_and_the_request_it_was_asked_for():
    page = Response("http://other.test/")
    request = Request("http://shop.test/")
    response = FakeTransport({"http://shop.test/": page}).fetch(request, timeout_seconds=1, max_bytes=9)
    assert (response.url, response.request) == ("http://shop.test/", request)
    assert page.request is None


def test_urls_are_compared_in_canonical_form_and_others_are_missing():
    transport = FakeTransport({"http://shop.test/a?b=1&c=2": b"x"}, missing=410)
    assert fetch(transport, "HTTP://shop.test:80/./a#f", params={"c": 2, "b": 1}).body == b"x"
    assert fetch(transport, "http://shop.test/b").status_code == 410


def test_a_list_is_one_page_a_visit_and_exceptions_are_raised():
    transport = FakeTransport({"http://shop.test/": [ConnectionFailed("down"), ConnectionFailed, b"up"]})
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            fetch(transport, "http://shop.test/")
    assert [fetch(transport, "http://shop.test/").body for _ in range(3)] == [b"up"] * 3


def test_the_size_limit_holds_here_too():
    with pytest.raises(BodyTooLarge):
        fetch(FakeTransport({"http://shop.test/": b"a" * 1001}), "http://shop.test/")


def test_a_page_of_another_kind_is_a_mistake_in_the_test():
    with pytest.raises(TypeError, match="int"):
        fetch(FakeTransport({"http://shop.test/": 5}), "http://shop.test/")
