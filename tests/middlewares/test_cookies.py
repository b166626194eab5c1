"""Cookies: which are stored, which are sent, as RFC 6265 has it."""

from __future__ import annotations

import pytest

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.cookie_jar import Jar, default_path, parse, parse_date, path_matches, place
from scrapy_plus.middlewares.cookies import Cookies

NOW = 1_900_000_000.0

# (set by, Set-Cookie, asked, whether the request carries it)
SENT = [
    ("http://a.test/", "x=1", "http://a.test/", True),
    ("http://a.test/", "x=1", "https://a.test:8443/any/path", True),
    ("http://a.test/", "x=1", "http://sub.a.test/", False),
    ("http://sub.a.test/", "x=1", "http://a.test/", False),
    ("http://a.test/", "x=1; Domain=a.test", "http://sub.a.test/", True),
    ("http://a.test/", "x=1; domain=.A.Test", "http://b.sub.a.test/", True),
    ("http://sub.a.test/", "x=1; Domain=a.test", "http://a.test/", True),
    ("http://sub.a.test/", "x=1; Domain=a.test", "http://other.a.test/", True),
    ("http://a.test/", "x=1; Domain=sub.a.test", "http://sub.a.test/", False),
    ("http://a.test/", "x=1; Domain=b.test", "http://b.test/", False),
    ("http://ba.test/", "x=1; Domain=a.test", "http://ba.test/", False),
    ("http://a.test/", "x=1; Domain=a.test", "http://ba.test/", False),
    ("http://a.test/", "x=1; Domain=test", "http://b.test/", False),
    ("http://a.test/", "x=1; Domain=", "http://a.test/", True),
    ("http://a.test/", "x=1; Domain=", "http://sub.a.test/", False),
    ("http://localhost/", "x=1", "http://localhost/", True),
    ("http://localhost/", "x=1; Domain=localhost", "http://localhost/", True),
    ("http://localhost/", "x=1; Domain=localhost", "http://sub.localhost/", False),
    ("http://127.0.0.1:1/", "x=1", "http://127.0.0.1:2/", True),
    ("http://127.0.0.1/", "x=1; Domain=127.0.0.1", "http://127.0.0.1/", True),
    ("http://127.0.0.1/", "x=1; Domain=0.0.1", "http://127.0.0.1/", False),
    ("http://[::1]/", "x=1", "http://[::1]/", True),
    ("http://a.test/", "x=1; Secure", "http://a.test/", False),
    ("https://a.test/", "x=1; secure", "https://a.test/", True),
    ("http://a.test/dir/page", "x=1", "http://a.test/dir/other", True),
    ("http://a.test/dir/page", "x=1", "http://a.test/dir", True),
    ("http://a.test/dir/page", "x=1", "http://a.test/", False),
    ("http://a.test/dir/page", "x=1; Path=/", "http://a.test/", True),
    ("http://a.test/", "x=1; Path=/dir", "http://a.test/dir", True),
    ("http://a.test/", "x=1; Path=/dir", "http://a.test/dir/x", True),
    ("http://a.test/", "x=1; Path=/dir", "http://a.test/directory", False),
    ("http://a.test/", "x=1; Path=/dir/", "http://a.test/dir", False),
    ("http://a.test/", "x=1; Path=relative", "http://a.test/", True),
    ("http://a.test/", "x=1; Max-Age=60", "http://a.test/", True),
    ("http://a.test/", "x=1; Max-Age=0", "http://a.test/", False),
    ("http://a.test/", "x=1; Max-Age=-1", "http://a.test/", False),
    ("http://a.test/", "x=1; Max-Age=soon", "http://a.test/", True),
    ("http://a.test/", "x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.test/", False),
    ("http://a.test/", "x=1; Expires=Fri, 01-Jan-2100 00:00:00 GMT", "http://a.test/", True),
    ("http://a.test/", "x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60", "http://a.test/", True),
    ("http://a.test/", "x=1; Expires=never", "http://a.test/", True),
    ("http://a.test/", "x=1; HttpOnly; SameSite=Strict; Unknown", "http://a.test/", True),
    ("http://a.test/", "novalue", "http://a.test/", False),
    ("http://a.test/", "=1", "http://a.test/", False),
    ("http://a.test/", "x=a\x01b", "http://a.test/", False),
    ("http://a.test/", "x=" + "1" * 5000, "http://a.test/", False),
]  # fmt: skip


@pytest.mark.parametrize(("by", "header", "asked", "is_sent"), SENT)
def test_a_cookie_goes_where_it_may(by, header, asked, is_sent):
    jar = Jar()
    cookie = parse(header, place(by), NOW)
    if cookie is not None:
        jar.store(cookie, NOW)
    assert bool(jar.matching(place(asked), NOW)) is is_sent


VALUES = {
    "x=1": ("x", "1"),
    " x = 1 2 ; Path=/": ("x", "1 2"),
    'x="quoted"': ("x", '"quoted"'),
    "x=a=b": ("x", "a=b"),
    "x=": ("x", ""),
    "x=a,b": ("x", "a,b"),
    "x=\xc3\xa9": ("x", "\xc3\xa9"),
}


@pytest.mark.parametrize(("header", "pair"), VALUES.items())
def test_name_and_value_are_kept_as_they_were(header, pair):
    cookie = parse(header, place("http://a.test/"), NOW)
    assert (cookie.name, cookie.value) == pair


DATES = {
    "Wed, 21 Oct 2015 07:28:00 GMT": 1445412480,
    "Wednesday, 21-Oct-15 07:28:00 GMT": 1445412480,
    "Wed Oct 21 07:28:00 2015": 1445412480,
    "21 oct 2015 7:28:0": 1445412480,
    "Sun, 06 Nov 94 08:49:37 GMT": 784111777,
    "Thu, 01 Jan 1970 00:00:00 GMT": 0,
}


@pytest.mark.parametrize(("text", "seconds"), DATES.items())
def test_dates_are_read_in_all_their_dialects(text, seconds):
    assert parse_date(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "never", "Wed, 21 Oct 2015", "32 Jan 2015 00:00:00", "1 Jan 1500 00:00:00", "07:28:00", "1 Jan 2015 25:00:00"],
)
def test_other_dates_are_none(text):
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("path", "default"), [("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("", "/"), ("a", "/")]
)
def test_the_default_path_is_the_folder(path, default):
    assert default_path(path) == default


def test_a_path_matches_whole_segments():
    assert path_matches("/a/b", "/a") and path_matches("/a", "/a") and path_matches("/ab", "/")
    assert not path_matches("/ab", "/a")


def jar_of(*headers, by="http://a.test/", **options):
    jar = Jar(**options)
    for header in headers:
        jar.store(parse(header, place(by), NOW), NOW)
    return jar


def test_a_cookie_replaces_its_namesake_of_the_same_path():
    jar = jar_of("x=1", "x=2", "x=3; Path=/p")
    assert [c.value for c in jar.matching(place("http://a.test/p"), NOW)] == ["3", "2"]


def test_an_expired_cookie_removes_its_namesake():
    assert len(jar_of("x=1", "y=1", "x=; Max-Age=0", "z=; Max-Age=0")) == 1


def test_longer_paths_are_sent_first_and_then_what_was_stored_first():
    jar = jar_of("a=1", "b=1; Path=/long/path", "c=1; Path=/long", "d=1")
    assert [c.name for c in jar.matching(place("http://a.test/long/path"), NOW)] == ["b", "c", "a", "d"]


def test_a_cookie_ends_at_its_time():
    jar = jar_of("x=1; Max-Age=60")
    assert jar.matching(place("http://a.test/"), NOW + 59) and not jar.matching(place("http://a.test/"), NOW + 61)


def test_a_jar_is_bounded():
    assert len(jar_of(*[f"x{i}=1" for i in range(500)])) == 180
    jar = Jar(max_hosts=10)
    for i in range(50):
        jar.store(parse("x=1", place(f"http://h{i}.test/"), NOW), NOW)
    assert [cookie.domain for cookie in jar] == [f"h{i}.test" for i in range(40, 50)]


class Browser:
    """A Cookies middleware between requests and answers that set cookies."""

    def __init__(self, **options):
        self.cookies = Cookies(clock=lambda: NOW, **options)

    def sent(self, url="http://a.test/", *, sets=(), **fields):
        """The Cookie header of a request, whose answer sets those cookies."""
        request = Request(url, **fields)
        wire = self.cookies.process_request(request) or request
        answer = Response(url, 200, [("Set-Cookie", header) for header in sets], request=wire)
        assert self.cookies.process_response(request, answer).request is request
        return wire.headers.get("Cookie")


def test_what_an_answer_sets_is_sent_with_the_next_request():
    browser = Browser()
    assert browser.sent(sets=["x=1", "y=2; Path=/p"]) is None
    assert browser.sent() == "x=1"
    assert browser.sent("http://a.test/p") == "y=2; x=1"


def test_the_request_itself_is_not_changed():
    browser = Browser()
    browser.sent(sets=["x=1"])
    request = Request("http://a.test/")
    assert browser.cookies.process_request(request).headers["Cookie"] == "x=1"
    assert not request.has_headers


def test_jars_are_apart():
    browser = Browser()
    browser.sent(meta={"cookiejar": 1}, sets=["x=1"])
    browser.sent(meta={"cookiejar": "b"}, sets=["x=2"])
    assert browser.sent(meta={"cookiejar": 1}) == "x=1"
    assert browser.sent(meta={"cookiejar": "b"}) == "x=2"
    assert browser.sent() is None and browser.sent(meta={"cookiejar": [3]}) is None


def test_the_requests_own_cookies_are_sent_and_stay():
    browser = Browser()
    assert browser.sent("http://a.test/deep/page", cookies={"x": 1, "y": "ü", "z": None}) == "x=1; y=Ã¼"
    assert browser.sent() == "x=1; y=Ã¼"
    assert browser.sent("http://sub.a.test/") is None


def test_cookies_may_be_given_with_domain_path_and_secure():
    browser = Browser()
    rows = [
        {"name": "x", "value": "1", "domain": ".a.test"},
        {"name": "y", "value": "2", "path": "/p"},
        {"name": "z", "value": "3", "secure": True},
        {"name": "w", "value": "4", "domain": "evil.test"},
    ]
    assert browser.sent("http://www.a.test/", cookies=rows) == "x=1"
    assert browser.sent("https://www.a.test/p") == "y=2; x=1; z=3"
    assert browser.sent("http://a.test/") == "x=1"


def test_a_header_of_ones_own_is_kept_and_the_jar_adds_what_it_does_not_name():
    browser = Browser()
    browser.sent(sets=["x=jar", "y=jar"])
    assert browser.sent(headers={"cookie": "x=own;"}) == "x=own; y=jar"


@pytest.mark.parametrize(("options", "meta"), [({}, {"dont_merge_cookies": True}), ({"enabled": False}, {})])
def test_without_the_jar_only_what_the_request_carries_is_sent_and_nothing_is_stored(options, meta):
    browser = Browser(**options)
    if not options:
        browser.sent(sets=["x=jar"])
    assert browser.sent(meta=meta, cookies={"y": "own"}, sets=["z=1"]) == "y=own"
    assert browser.sent(meta=meta) is None
    assert browser.sent() == (None if options else "x=jar")


def test_the_next_hop_does_not_undo_what_the_first_answer_changed():
    browser = Browser()
    browser.sent(cookies={"x": "asked"}, sets=["x=changed"])
    assert browser.sent("http://a.test/2", cookies={"x": "asked"}, meta={"redirect_times": 1}) == "x=changed"
