"""Requests: what they are made of, and what is refused."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import NotStorable
from scrapy_plus.http.request import Request


class _Spider:
    def parse_detail(self, response):
        return response

    def __hidden(self, response):
        return response

    def hidden(self):
        return self.__hidden


def test_a_request_needs_a_url_only():
    request = Request("http://h.test/")
    assert (request.method, request.parse, request.filter, request.priority, request.retry_time) == (
        "GET",
        "parse",
        True,
        0,
        0,
    )
    assert request.attempt == 1
    assert not request.has_headers and not request.has_meta
    assert request.body == b"" and request.content_type is None


def test_both_idioms_name_the_same_fields():
    spider = _Spider()
    scrapys = Request("http://h.test/", callback=spider.parse_detail, dont_filter=True, body="x")
    courses = Request("http://h.test/", parse="parse_detail", filter=False, data="x")
    for name in ("parse", "callback", "filter", "dont_filter", "body"):
        assert getattr(scrapys, name) == getattr(courses, name)


@pytest.mark.parametrize("method", [lambda response: response, "not a name", "a.b", len, _Spider().hidden()])
def test_a_callback_that_no_other_process_would_find_is_refused(method):
    with pytest.raises(NotStorable, match="callback"):
        Request("http://h.test/", callback=method)
    with pytest.raises(NotStorable, match="errback"):
        Request("http://h.test/", errback=method)


@pytest.mark.parametrize("method", ["", "GE T", "GET\r\nX: y", "é"])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(ValueError, match="method"):
        Request("http://h.test/", method=method)


def test_method_names_are_put_in_capitals():
    assert Request("http://h.test/", "post").method == "POST"


def test_params_are_part_of_what_is_asked_and_the_fragment_is_not():
    request = Request("http://h.test/a?b=1#c", params={"d": "2"})
    assert request.url == "http://h.test/a?b=1#c"
    assert request.full_url == "http://h.test/a?b=1&d=2"


@pytest.mark.parametrize(
    ("arguments", "body", "content_type"),
    [
        ({"data": {"a": ["1", "2"], "b": "中"}}, b"a=1&a=2&b=%E4%B8%AD", "application/x-www-form-urlencoded"),
        ({"data": {"b": "中"}, "encoding": "gb18030"}, b"b=%D6%D0", "application/x-www-form-urlencoded"),
        ({"data": [("a", "1")]}, b"a=1", "application/x-www-form-urlencoded"),
        ({"data": "中", "encoding": "gb18030"}, b"\xd6\xd0", None),
        ({"body": b"raw"}, b"raw", None),
        ({"json": {"a": "中"}}, '{"a":"中"}'.encode(), "application/json"),
        ({"json": []}, b"[]", "application/json"),
    ],
)
def test_the_body_is_what_was_given_in_the_encoding_of_the_request(arguments, body, content_type):
    request = Request("http://h.test/", "POST", **arguments)
    assert (request.body, request.content_type) == (body, content_type)


def test_a_copy_has_its_own_headers_and_meta():
    request = Request("http://h.test/", headers={"A": "1"}, meta={"a": 1})
    request.retry_time = 2
    copy = request.copy()
    copy.headers["A"] = "2"
    copy.meta["a"] = 2
    assert request.headers["A"] == "1" and request.meta == {"a": 1}
    assert copy.retry_time == 2


def test_replace_changes_the_named_fields_only():
    request = Request("http://h.test/a", "POST", {"A": "1"}, data="x", meta={"m": 1}, priority=3)
    changed = request.replace(url="http://h.test/b", callback="other", dont_filter=True, body="y")
    assert (changed.url, changed.parse, changed.filter, changed.data) == ("http://h.test/b", "other", False, "y")
    assert (changed.method, changed.headers, changed.meta, changed.priority) == ("POST", {"A": "1"}, {"m": 1}, 3)
    assert (request.url, request.parse, request.filter, request.data) == ("http://h.test/a", "parse", True, "x")


def test_two_requests_share_no_meta():
    shared = {"page": 1}
    one, other = Request("http://h.test/", meta=shared), Request("http://h.test/", meta=shared)
    one.meta["page"] = 2
    assert other.meta == {"page": 1} and shared == {"page": 1}


def test_a_request_shows_itself_without_its_password():
    assert repr(Request("http://u:secret@h.test/a#b")) == "<GET http://u:***@h.test/a>"


@pytest.mark.parametrize("priority", [1.5, 2.0, "high", "1", None, [1]])
def test_a_priority_that_is_no_whole_number_is_refused(priority):
    with pytest.raises(TypeError, match="priority is a whole number"):
        Request("http://h.test/", priority=priority)


@pytest.mark.parametrize(("priority", "kept"), [(True, 1), (-3, -3), (10**6, 10**6)])
def test_a_whole_number_is_a_priority(priority, kept):
    assert Request("http://h.test/", priority=priority).priority == kept
