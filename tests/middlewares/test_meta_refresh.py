"""Which pages are redirects by themselves, and where they lead."""

from __future__ import annotations

import pytest

from scrapy_plus import FakeTransport, Spider, crawl
from scrapy_plus.errors import BadRedirect
from scrapy_plus.http.refresh import parse_refresh
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.meta_refresh import MetaRefresh

BASE = "http://a.test/d/p"
META = '<meta http-equiv="refresh" content="{}">'

# What the HTML standard makes of the attribute: seconds and reference, or None.
CONTENTS = {
    "0; url=/x": (0, "/x"),
    "5;URL='/x'": (5, "/x"),
    '5 ; Url = "/x"': (5, "/x"),
    "5,url=/x": (5, "/x"),
    "5 url=/x": (5, "/x"),
    "5;/x": (5, "/x"),
    "5 /x": (5, "/x"),
    "5;'/x'": (5, "/x"),
    "1.5;url=/x": (1, "/x"),
    ".5;url=/x": (0, "/x"),
    "1.2.3;url=/x": (1, "/x"),
    "\n 7\t;\nurl=/x\n": (7, "/x"),
    "0;url=/x?a=1;b=2": (0, "/x?a=1;b=2"),
    "0;url='/x' junk": (0, "/x"),
    "0;url='/it": (0, "/it"),
    "0;url=/it's": (0, "/it's"),
    "0;url=": (0, ""),
    "0;": (0, ""),
    "0": (0, ""),
    " 30 ": (30, ""),
    "0;url": (0, "url"),
    "0;urls=/x": (0, "urls=/x"),
    "0;u": (0, "u"),
    "0;;url=/x": (0, ";url=/x"),
    "0; uRl \t=\n /x": (0, "/x"),
    "99999999999999999999999;url=/x": (1e9, "/x"),
    "": None,
    "url=/x": None,
    ";url=/x": None,
    "-1;url=/x": None,
    "+1;url=/x": None,
    "5x;url=/x": None,
    "5'url=/x": None,
    "x": None,
}


@pytest.mark.parametrize(("content", "expected"), CONTENTS.items())
def test_a_content_is_read_as_browsers_read_it(content, expected):
    assert parse_refresh(content) == expected


def page(body: str | bytes, content_type: str | None = "text/html; charset=utf-8", **fields) -> Response:
    headers = [*fields.pop("headers", ()), *([("Content-Type", content_type)] if content_type else [])]
    body = body.encode() if isinstance(body, str) else body
    return Response(fields.pop("url", BASE), fields.pop("status", 200), headers, body)


def outcome(response: Response, request: Request | None = None, **options):
    """The URL that is asked next, or None if the page goes to the callback."""
    answer = MetaRefresh(**options).process_response(request or Request(response.url), response)
    return answer.url if isinstance(answer, Request) else None


NEXT = META.format("0;url=/next")
FOLLOWED = {
    "in the head": f"<html><head>{NEXT}</head></html>",
    "in the body": f"<body><p>{NEXT}",
    "a shouted one": NEXT.upper().replace("/NEXT", "/next"),
    "mixed case": NEXT.replace("refresh", "ReFreSh"),
    "white space in it": NEXT.replace('"refresh"', '" refresh\n"'),
    "unquoted": "<meta http-equiv=refresh content=0;url=/next>",
    "attributes the other way round": "<meta content='0;url=/next' id=r http-equiv='refresh'>",
    "an entity": "<meta http-equiv=refresh content='0&#59;url=&#x2F;next'>",
    "far behind the beginning": f"<head><style>{'a{} ' * 40_000}</style>{NEXT}",
    "after a comment": f"<!-- {META.format('0;url=/old')} -->{NEXT}",
    "after one that says nothing": META.format("soon") + NEXT,
    "the first of two": NEXT + META.format("0;url=/second"),
    "after a script that writes another": f"<script>w('{META.format('0;url=/old')}')</script>{NEXT}",
    "below 300 levels": "<div>" * 300 + NEXT,
}
STAYS = {
    "in a comment": f"<!-- {NEXT} --><p>x",
    "in a conditional comment": f"<!--[if lt IE 7]>{NEXT}<![endif]-->",
    "in a script": f"<script>document.write('{NEXT}')</script>",
    "in a script with an end tag inside": f"<script>d.w('<b></b>{NEXT}')</script>",
    "in a style": f"<style>{NEXT}</style>",
    "in noscript": f"<noscript>{NEXT}</noscript>",
    "in noscript of the head": f"<head><noscript>{NEXT}</noscript></head>",
    "in a template": f"<template>{NEXT}</template>",
    "in a textarea": f"<textarea>{NEXT}</textarea>",
    "in a title": f"<title>{NEXT}</title>",
    "in an attribute": f"<p title='{NEXT}'>x",
    "as text": NEXT.replace("<", "&lt;"),
    "no refresh at all": "<p>refresh your memory</p>",
    "another http-equiv": "<meta http-equiv=content-type content='0;url=/next'>",
    "a name": "<meta name=refresh content='0;url=/next'>",
    "no content": "<meta http-equiv=refresh>",
    "itself": META.format("300") + META.format("30"),
    "itself by name": META.format("5;url=/d/p"),
    "itself by a fragment": META.format("5;url=#top"),
    "javascript": META.format("0;url=javascript:go()"),
    "data": META.format("0;url=data:text/html,x"),
    "another scheme": META.format("0;url=ftp://a.test/x"),
    "a port that is none": META.format("0;url=http://a.test:x/"),
    "too late": META.format("101;url=/next"),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_page_that_gives_way_is_a_redirect(name):
    assert outcome(page(FOLLOWED[name])) == "http://a.test/next"


@pytest.mark.parametrize("name", STAYS)
def test_any_other_page_goes_to_the_callback(name):
    assert outcome(page(STAYS[name])) is None


REFERENCES = {
    "x": "http://a.test/d/x",
    "?q=1": "http://a.test/d/p?q=1",
    "//b.test/x": "http://b.test/x",
    "HTTPS://B.test/x": "https://b.test/x",
    "/a b": "http://a.test/a%20b",
    "\\x": "http://a.test/x",
    "/x#f": "http://a.test/x#f",
    "/?u=1&amp;v=2": "http://a.test/?u=1&v=2",
}


@pytest.mark.parametrize(("reference", "url"), REFERENCES.items())
def test_the_target_is_resolved_as_a_link_of_the_page(reference, url):
    assert outcome(page(META.format(f"0;url={reference}"))) == url


def test_the_base_of_the_page_counts_wherever_it_stands():
    assert outcome(page(f"<base href='http://b.test/e/'>{META.format('0;url=x')}")) == "http://b.test/e/x"
    assert outcome(page(f"{META.format('0;url=x')}<base href='/e/'>")) == "http://a.test/e/x"


def test_the_query_is_written_in_the_encoding_of_the_page():
    body = META.format("0;url=/茶?q=茶").encode("gb18030")
    assert outcome(page(body, "text/html; charset=gb2312")) == "http://a.test/%E8%8C%B6?q=%B2%E8"


def test_a_page_in_utf_16_is_read_too():
    assert outcome(page(("\ufeff" + NEXT).encode("utf-16-le"), "text/html")) == "http://a.test/next"


@pytest.mark.parametrize(
    ("content_type", "is_followed"),
    [
        ("text/html", True),
        ("TEXT/HTML;charset=x", True),
        ("application/xhtml+xml", True),
        (None, True),
        ("text/plain", False),
        ("application/json", False),
        ("text/htmlx", False),
        ("text/xml", False),
    ],
)
def test_only_html_gives_way(content_type, is_followed):
    assert (outcome(page(NEXT, content_type)) is not None) == is_followed


def test_what_has_no_type_is_html_if_it_begins_so():
    assert outcome(page("see " + NEXT, None)) is None


@pytest.mark.parametrize(("seconds", "is_followed"), [("0", True), ("10", True), ("11", False)])
def test_the_longest_delay_is_a_setting(seconds, is_followed):
    assert (outcome(page(META.format(f"{seconds};url=/x")), max_delay_seconds=10) is not None) == is_followed


def test_which_elements_hide_it_is_a_setting():
    body = f"<noscript>{NEXT}</noscript>"
    assert outcome(page(body), ignored_tags=()) == "http://a.test/next"
    assert outcome(page(f"<aside>{NEXT}</aside>"), ignored_tags=["ASIDE"]) is None


@pytest.mark.parametrize("status", [404, 500, 304])
def test_an_error_page_stays_an_error(status):
    assert outcome(page(NEXT, status=status)) is None


def test_the_header_of_that_name_counts_as_in_browsers():
    assert outcome(page("<p>x", headers=[("Refresh", "0;url=/next")])) == "http://a.test/next"


def test_a_request_may_forbid_it():
    assert outcome(page(NEXT), Request(BASE, meta={"dont_redirect": True})) is None


def test_a_page_that_sets_a_cookie_and_loads_itself_is_asked_once_more():
    again = page(META.format("0"), headers=[("Set-Cookie", "a=b")])
    first = MetaRefresh().process_response(Request(BASE), again)
    assert (first.url, first.filter) == (BASE, False)
    assert MetaRefresh().process_response(first, again) is again


def test_the_next_request_is_a_get_of_the_same_chain():
    request = Request(
        BASE, method="POST", data={"a": "b"}, headers={"Authorization": "x", "X": "y"}, meta={"n": 1}, parse="detail"
    )
    child = MetaRefresh().process_response(request, page(META.format("0;url=http://b.test/")))
    assert (child.method, child.body, child.parse) == ("GET", b"", "detail")
    assert dict(child.headers.pairs()) == {"X": "y"}
    assert child.meta == {
        "n": 1, "redirect_times": 1, "redirect_urls": [BASE], "redirect_reasons": ["meta refresh"],
    }  # fmt: skip


def test_hops_count_together_with_redirects():
    request = Request(BASE, meta={"redirect_times": 2})
    assert outcome(page(NEXT), request, max_times=3)
    with pytest.raises(BadRedirect, match="more than 2 redirects"):
        outcome(page(NEXT), request, max_times=2)


class Follows(Spider):
    name = "follows"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield {"url": response.url, "history": [(one.url, one.status) for one in response.history]}


def html(body: str) -> Response:
    return Response("http://x.test/", headers={"Content-Type": "text/html"}, body=body.encode())


def test_a_crawl_follows_it_and_shows_the_chain():
    pages = {"http://a.test/": html(NEXT), "http://a.test/next": "<p>there</p>"}
    result = crawl(Follows, FakeTransport(pages))
    assert result.items == [{"url": "http://a.test/next", "history": [("http://a.test/", 0)]}]


def test_cookies_of_the_whole_chain_go_along():
    asked = []

    def last(request):
        asked.append((request.headers.get("Cookie"), request.meta))
        return "<p>there</p>"

    second = html(META.format("0;url=/c"))
    second.headers.add("Set-Cookie", "b=2")
    pages = {
        "http://a.test/": Response("", 302, [("Location", "/b"), ("Set-Cookie", "a=1")]),
        "http://a.test/b": second,
        "http://a.test/c": last,
    }
    result = crawl(Follows, FakeTransport(pages))
    [(cookie, meta)] = asked
    assert cookie == "a=1; b=2"
    assert [header for _, header in meta["redirect_cookies"]] == ["a=1", "b=2"]
    assert len(result.items) == 1


def test_a_crawl_does_not_when_it_is_told_so():
    pages = {"http://a.test/": html(NEXT), "http://a.test/next": "<p>there</p>"}
    for setting in ({"METAREFRESH_ENABLED": False}, {"REDIRECT_ENABLED": False}):
        result = crawl(Follows, FakeTransport(pages), **setting)
        assert [item["url"] for item in result.items] == ["http://a.test/"]


def test_a_loop_of_pages_ends_as_one_recorded_error():
    pages = {
        "http://a.test/": html(META.format("0;url=/b")),
        "http://a.test/b": html(META.format("0;url=/")),
    }
    result = crawl(Follows, FakeTransport(pages), REDIRECT_MAX_TIMES=4)
    assert result.items == [] and result.exit_code == 3
    assert [dead.reason for dead in result.dead] == ["BadRedirect: http://a.test:80: more than 4 redirects in a row"]
    assert len(result.requests) == 5


def test_a_target_off_the_site_is_not_asked():
    class Bound(Follows):
        allowed_domains = ["a.test"]

    result = crawl(Bound, FakeTransport({"http://a.test/": html(META.format("0;url=http://b.test/"))}))
    assert [request.url for request in result.requests] == ["http://a.test/"]
    assert (result.items, result.exit_code) == ([], 0)
