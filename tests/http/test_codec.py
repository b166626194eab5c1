"""Requests as bytes and back, headers, and what can be stored."""

from __future__ import annotations

import datetime
import decimal
import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_plus.errors import NotStorable, Undecodable
from scrapy_plus.http import codec
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.headers import Headers
from scrapy_plus.http.request import FIELDS, Request
from scrapy_plus.http.selector import Text
from scrapy_plus.http.storable import from_plain, to_plain
from scrapy_plus.item import Item

# The first draw builds tables of all characters, which takes seconds where nothing is cached.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ANY_TEXT = st.text(st.characters(), max_size=8)  # lone surrogates too: JSON from the web has them
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    ANY_TEXT,
    st.binary(max_size=8),
    st.datetimes(),
    st.dates(),
    st.decimals(allow_nan=False),
)
KEYS = st.one_of(ANY_TEXT, st.integers(), st.tuples(st.integers(), ANY_TEXT), st.just("$"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(st.integers() | ANY_TEXT, max_size=3),
        st.frozensets(st.integers(), max_size=3),
        inner.map(Item),
    ),
    max_leaves=8,
)
METAS = st.dictionaries(ANY_TEXT, VALUES, max_size=3)
REQUESTS = st.builds(
    Request,
    st.sampled_from(["http://h.test/", "https://u:p@h.test:81/a?b=%20#c", "http://münchen.de/ä"]),
    st.sampled_from(["GET", "POST", "put"]),
    st.none() | st.dictionaries(st.sampled_from(["A", "b", "Set-Cookie"]), st.text(max_size=5) | st.lists(st.text())),
    st.none() | st.dictionaries(ANY_TEXT, SCALARS, max_size=2),
    st.one_of(st.none(), ANY_TEXT, st.binary(max_size=9), METAS),
    st.sampled_from(["parse", "parse_detail"]),
    st.booleans(),
    st.none() | METAS,
    json=st.none() | VALUES,
    cookies=st.none() | st.dictionaries(ANY_TEXT, ANY_TEXT) | st.lists(st.fixed_dictionaries({"name": ANY_TEXT})),
    priority=st.integers(-1000, 1000),
    cb_kwargs=st.none() | METAS,
    errback=st.none() | st.just("failed"),
    timeout=st.none() | st.floats(0.1, 600),
    proxy=st.none() | st.just("http://p.test:3128"),
    encoding=st.sampled_from(["utf-8", "gb18030"]),
)


@UNHURRIED
@given(REQUESTS)
def test_a_stored_request_comes_back_field_by_field(request):
    back = decode(encode(request))
    for name in FIELDS:
        assert getattr(back, name) == getattr(request, name), name
    assert encode(back) == encode(request)


@UNHURRIED
@given(VALUES)
def test_values_come_back_equal_and_of_the_same_type(value):
    back = from_plain(json.loads(json.dumps(to_plain(value, "meta"))))
    assert back == value
    assert type(back) is type(value)


def test_a_plain_request_is_stored_in_few_bytes():
    url = "http://www.example.com/a/page/of/sixty/characters/in/all.html"
    assert len(encode(Request(url))) <= len(url) + 10


def test_every_field_that_makes_a_request_is_stored():
    whole = Request(
        "http://h.test/",
        "POST",
        {"A": "b"},
        {"p": 1},
        "data",
        "parse_detail",
        False,
        {"m": 1},
        json=[1],
        cookies={"c": "d"},
        priority=5,
        cb_kwargs={"k": 1},
        errback="failed",
        timeout=3.5,
        proxy="http://p.test",
        encoding="gb18030",
    )
    assert set(json.loads(encode(whole)[1:])) == set("umhqdpftcrkjeoxn")


def test_a_text_from_a_page_is_stored_as_a_string():
    back = decode(encode(Request("http://h.test/", meta={"title": Text("tea")})))
    assert back.meta == {"title": "tea"}


class _Lock:
    pass


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("meta", {"lock": threading.Lock()}, r"meta\['lock'\]"),
        ("meta", {"a": [1, {"b": _Lock()}]}, r"meta\['a'\]\[1\]\['b'\]"),
        ("cb_kwargs", {"f": len}, "cb_kwargs"),
        ("cookies", {"c": _Lock()}, "cookies"),
        ("data", {"d": _Lock()}, "data"),
        ("json", [_Lock()], "json"),
        ("params", {"p": _Lock()}, "params"),
    ],
)
def test_what_cannot_be_stored_is_refused_when_the_request_is_made_naming_the_place(field, value, place):
    with pytest.raises(NotStorable, match=place):
        Request("http://h.test/", **{field: value})


def test_what_was_put_into_meta_later_is_refused_when_it_is_stored():
    request = Request("http://h.test/")
    request.meta["lock"] = threading.Lock()
    with pytest.raises(NotStorable, match="lock"):
        encode(request)


def test_endless_nesting_is_refused_not_followed():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotStorable, match="nested"):
        Request("http://h.test/", meta={"loop": loop})


def test_a_number_too_long_to_be_read_back_is_refused():
    with pytest.raises(NotStorable):
        encode(Request("http://h.test/", meta={"n": 10**5000}))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"1",
        b"1{",
        b"1[]",
        b'2{"u":"http://h.test/"}',
        b"1{}",
        b'1{"u":"ftp://h.test/"}',
        b'1{"u":"http://h.test/","zz":1}',
        b'1{"u":"http://h.test/","t":{"$":"code","v":"x"}}',
        b'1{"u":"http://h.test/","t":{"a":{"$":"decimal","v":"x"}}}',
        b'1{"u":"http://h.test/","t":{"a":{"$":"bytes","v":1}}}',
        b'1{"u":"http://h.test/","t":{"a":{"$":"set","v":[[]]}}}',
        b'1{"u":"http://h.test/","p":"a.b"}',
        b'1{"u":"http://h.test/","h":[["a"]]}',
        b'1{"u":1}',
        b"1\xff",
        b"1" + b"[" * 100_000,
        b"\x80\x04N.",
    ],
)
def test_broken_or_foreign_bytes_are_undecodable_and_nothing_else(payload):
    with pytest.raises(Undecodable):
        decode(payload)


@UNHURRIED
@given(st.binary(max_size=40))
def test_no_bytes_make_decoding_fail_in_another_way(payload):
    for one in (payload, b"1" + payload):
        try:
            decode(one)
        except Undecodable:
            pass


def test_dates_with_a_time_zone_come_back_at_the_same_moment():
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=8)))
    assert from_plain(to_plain({"at": moment, "price": decimal.Decimal("1.10")}, "meta"))["at"] == moment


# -- headers


def test_headers_are_found_in_any_case_and_kept_as_written():
    headers = Headers({"X-One": "1", b"x-two": b"\xe9"})
    assert headers["x-ONE"] == "1" and "X-TWO" in headers and headers["X-Two"] == "é"
    assert list(headers) == ["X-One", "x-two"]


def test_repeated_headers_are_joined_but_cookies_are_not():
    headers = Headers([("A", "1"), ("a", "2"), ("Set-Cookie", "x=1"), ("set-cookie", "y=2")])
    assert headers["A"] == "1, 2"
    assert headers["Set-Cookie"] == "y=2"
    assert headers.getlist("set-cookie") == ["x=1", "y=2"]
    assert list(headers.pairs()) == [("A", "1"), ("A", "2"), ("Set-Cookie", "x=1"), ("Set-Cookie", "y=2")]


def test_setting_replaces_deleting_removes_and_none_is_left_out():
    headers = Headers({"A": ["1", "2"], "B": None})
    headers["a"] = "3"
    assert headers == {"A": "3"}
    del headers["A"]
    assert not headers and headers.get("A") is None


def test_a_copy_of_headers_is_its_own():
    headers = Headers({"A": "1"})
    copy = headers.copy()
    copy.add("A", "2")
    assert headers["A"] == "1"


PLAIN_REQUESTS = st.builds(
    lambda url, parse, meta, public: _with(Request(url, parse=parse, meta=meta), from_public=public),
    st.sampled_from(["http://h.test/", "https://h.test:54321/a?b=%20#c", "http://u:p@h.test/", 'http://h.test/"\\ü']),
    st.sampled_from(["parse", "parse_detail", "größe"]),
    st.none() | st.fixed_dictionaries({"depth": st.integers() | st.booleans() | st.just("1")}) | METAS,
    st.booleans(),
)


def _with(request, **values):
    for name, value in values.items():
        setattr(request, name, value)
    return request


def _state(request):
    return {name: getattr(request, name, "unset") for name in Request.__slots__}


@UNHURRIED
@given(PLAIN_REQUESTS | REQUESTS)
def test_the_short_way_to_bytes_and_back_gives_what_the_long_one_does(request):
    payload = codec._encode_any(request)
    assert encode(request) == payload
    read = decode(payload)
    again = Request(**{name: getattr(read, name) for name in FIELDS if name not in ("headers", "meta")})
    again._headers, again._meta, again.from_public = read._headers, read._meta, read.from_public
    assert _state(read) == _state(again)


def test_the_short_way_is_taken_for_plain_requests():
    """Else the test above compares the long way with itself."""
    request = Request("http://h.test:54321/a?b=c", meta={"depth": 3})
    assert codec._encode_plain(request) == codec._encode_any(request)
    assert codec._decode_plain({"u": "http://h.test/", "t": {"depth": 1}, "p": "parse_it"}).parse == "parse_it"
    assert not codec._encode_plain(Request("http://h.test/", priority=1))
    assert codec._decode_plain({"u": "http://h.test/", "r": 1}) is None


@pytest.mark.parametrize(
    "body",
    ['{"u":"file:///x"}', '{"u":1}', '{"u":"http://h.test/","p":"a b"}', '{"u":"http://h.test/"}x', "[]", '{"t":{}}']
    + ['{"u":"http://h.test/","t":[1]}', '{"u":"http://h.test/","p":[1]}', "1", '"u"', "{"],
)
def test_what_looks_like_a_plain_request_and_is_none_is_refused(body):
    with pytest.raises(Undecodable):
        decode(codec.VERSION + body.encode())
