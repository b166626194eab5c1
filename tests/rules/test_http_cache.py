"""What a cache may keep and when it may answer: a table out of RFC 9111."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from scrapy_plus.rules import http_cache as rules
from scrapy_plus.rules.http_cache import Entry

AT = 1_900_000_000.0
DATE = formatdate(AT, usegmt=True)


def date(seconds: float) -> str:
    return formatdate(AT + seconds, usegmt=True)


def entry(*fields: tuple[str, str], status: int = 200, asked=(), at: float = AT) -> Entry:
    return Entry("http://a.test/", status, fields, b"", tuple(asked), at)


LIFETIMES = [
    ([("Cache-Control", "max-age=60")], 60),
    ([("Cache-Control", "private, MAX-AGE = 60")], 60),
    ([("Cache-Control", 'max-age="60"')], 60),
    ([("Cache-Control", "public"), ("Cache-Control", "max-age=60")], 60),
    ([("Cache-Control", "max-age=60, max-age=90")], 60),
    ([("Cache-Control", "s-maxage=60")], 0),  # for caches of many users
    ([("Cache-Control", "max-age=-1")], 0),
    ([("Cache-Control", "max-age=x")], 0),
    ([("Cache-Control", 'x="max-age=60, y"')], 0),
    ([("Cache-Control", "max-age=99999999999999999999")], 2**31),
    ([("Date", DATE), ("Expires", date(60))], 60),
    ([("Expires", date(60))], 60),
    ([("Date", DATE), ("Expires", date(-60))], 0),
    ([("Date", DATE), ("Expires", "0")], 0),
    ([("Date", DATE), ("Expires", date(60)), ("Cache-Control", "max-age=5")], 5),
    ([("Date", DATE), ("Last-Modified", date(-1000))], 100),
    ([("Date", DATE), ("Last-Modified", date(-100_000_000))], 86_400),
    ([("Date", DATE), ("Last-Modified", date(1000))], 0),
    ([("Date", "nonsense"), ("Last-Modified", date(-1000))], 100),
    ([("ETag", '"x"')], 0),
    ([], 0),
]


@pytest.mark.parametrize(("fields", "seconds"), LIFETIMES)
def test_an_answer_says_how_long_it_is_good(fields, seconds):
    assert rules.lifetime(entry(*fields)) == seconds


@pytest.mark.parametrize(
    ("fields", "after", "seconds"),
    [
        ([], 10, 10),
        ([("Age", "30")], 10, 40),
        ([("Date", date(-50))], 10, 60),
        ([("Date", date(-50)), ("Age", "70")], 10, 80),
        ([("Date", date(50))], 10, 10),  # a clock that is ahead of ours
        ([("Age", "x")], 10, 10),
        ([], -10, 0),
    ],
)
def test_an_answer_has_an_age(fields, after, seconds):
    assert rules.age(entry(*fields), AT + after) == seconds


MAX_60 = ("Cache-Control", "max-age=60")
FRESH = [
    ([MAX_60], [], 59, True),
    ([MAX_60], [], 60, False),
    ([MAX_60, ("Age", "30")], [], 31, False),
    ([("Cache-Control", "max-age=60, no-cache")], [], 1, False),
    ([MAX_60], [("Cache-Control", "no-cache")], 1, False),
    ([MAX_60], [("Pragma", "no-cache")], 1, False),
    ([MAX_60], [("Cache-Control", "max-age=10")], 9, True),
    ([MAX_60], [("Cache-Control", "max-age=10")], 11, False),
    ([MAX_60], [("Cache-Control", "min-fresh=30")], 29, True),
    ([MAX_60], [("Cache-Control", "min-fresh=30")], 31, False),
    ([MAX_60], [("Cache-Control", "max-stale")], 1000, True),
    ([MAX_60], [("Cache-Control", "max-stale=5")], 64, True),
    ([MAX_60], [("Cache-Control", "max-stale=5")], 66, False),
    ([("Cache-Control", "max-age=60, must-revalidate")], [("Cache-Control", "max-stale")], 61, False),
    ([("ETag", '"x"')], [], 0, False),
]


@pytest.mark.parametrize(("fields", "asks", "after", "is_fresh"), FRESH)
def test_an_answer_is_given_while_it_is_fresh(fields, asks, after, is_fresh):
    assert rules.is_fresh(entry(*fields), asks, AT + after) == is_fresh


STORABLE = [
    ([MAX_60], 200, True),
    ([MAX_60], 404, True),
    ([MAX_60], 500, True),
    ([("ETag", '"x"')], 200, True),
    ([("ETag", '"x"')], 500, False),
    ([("Last-Modified", date(-9))], 301, True),
    ([("Last-Modified", date(-9))], 302, False),
    ([("Expires", "0")], 200, True),
    ([("Cache-Control", "no-cache"), ("ETag", "x")], 200, True),
    ([("Cache-Control", "no-store, max-age=60")], 200, False),
    ([("Cache-Control", "max-age=60"), ("Cache-Control", "No-Store")], 200, False),
    ([("Cache-Control", "private, max-age=60")], 200, True),
    ([MAX_60, ("Vary", "*")], 200, False),
    ([MAX_60, ("Vary", "Accept, *")], 200, False),
    ([MAX_60], 206, False),
    ([MAX_60], 304, False),
    ([], 200, False),
]


@pytest.mark.parametrize(("fields", "status", "is_storable"), STORABLE)
def test_an_answer_is_kept_if_it_may_be_and_is_of_use(fields, status, is_storable):
    assert rules.is_storable(entry(*fields, status=status)) == is_storable


VARIES = [
    ("", [("Accept", "a")], [("Accept", "b")], True),
    ("Accept", [("Accept", "a, b")], [("accept", "a,b")], True),
    ("Accept", [("Accept", "a")], [("Accept", "b")], False),
    ("Accept", [("Accept", "a")], [], False),
    ("Accept", [], [], True),
    ("Accept-Language, COOKIE", [("Cookie", "a=1")], [("Cookie", "a=2")], False),
    ("*", [], [], False),
    ("", [("Authorization", "x")], [], False),
    ("", [("Authorization", "x")], [("Authorization", "x")], True),
    ("", [], [("Authorization", "x")], False),
]


@pytest.mark.parametrize(("vary", "asked", "asks", "is_match"), VARIES)
def test_an_answer_is_for_requests_like_the_one_it_came_to(vary, asked, asks, is_match):
    bare = entry(MAX_60, *([("Vary", vary)] if vary else []))
    kept = entry(*bare.fields, asked=rules.asked_fields(bare, asked))
    assert rules.is_match(kept, asks) == is_match


@pytest.mark.parametrize(
    ("method", "fields", "is_bypassed"),
    [
        ("GET", [], False),
        ("HEAD", [], False),
        ("POST", [], True),
        ("GET", [("Range", "bytes=0-1")], True),
        ("GET", [("if-none-match", '"x"')], True),
        ("GET", [("Cache-Control", "no-store")], True),
        ("GET", [("Cache-Control", "no-cache")], False),
    ],
)
def test_some_requests_go_past_the_cache(method, fields, is_bypassed):
    assert rules.is_bypassed(method, fields) == is_bypassed


def test_a_304_renews_what_was_kept():
    kept = entry(("ETag", '"1"'), ("Content-Length", "5"), ("Age", "7"), ("X", "old"), ("Content-Encoding", "gzip"))
    new = [("etag", '"2"'), ("Cache-Control", "max-age=9"), ("Content-Length", "0"), ("x", "a"), ("x", "b")]
    new += [("Connection", "close")]
    renewed = rules.renewed(kept, new, AT + 100)
    assert renewed.fields == (
        ("Content-Length", "5"), ("Content-Encoding", "gzip"),
        ("etag", '"2"'), ("Cache-Control", "max-age=9"), ("x", "a"), ("x", "b"),
    )  # fmt: skip
    assert rules.is_fresh(renewed, [], AT + 108) and not rules.is_fresh(renewed, [], AT + 109)


def test_a_kept_answer_is_asked_about_by_both_of_its_validators():
    assert rules.conditions(entry(("ETag", 'W/"1"'), ("Last-Modified", DATE))) == {
        "If-None-Match": 'W/"1"', "If-Modified-Since": DATE,
    }  # fmt: skip
    assert rules.conditions(entry()) == {}


@pytest.mark.parametrize(("after", "is_allowed"), [(69, True), (71, False)])
def test_a_stale_answer_stands_in_for_a_while_if_it_says_so(after, is_allowed):
    kept = entry(("Cache-Control", "max-age=60, stale-if-error=10"))
    assert rules.may_stand_in(kept, AT + after) == is_allowed
    assert not rules.may_stand_in(entry(MAX_60), AT + 61)
