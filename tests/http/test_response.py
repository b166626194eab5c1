"""Responses: body and text, what they are relative to, and the requests that go on from them."""

from __future__ import annotations

import time

import pytest

from scrapy_plus.http.headers import Headers
from scrapy_plus.http.links import Link
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response

URL = "http://h.test/dir/page.html?x=1"


def page(body: bytes | str, url: str = URL, **arguments) -> Response:
    return Response(url, 200, {"Content-Type": "text/html"}, body, **arguments)


def urls(requests) -> list[str]:
    return [request.url for request in requests]


# -- what it is made of


def test_a_response_needs_a_url_only():
    response = Response("http://h.test/")
    assert (response.status_code, response.status, response.body, response.text) == (200, 200, b"", "")
    assert response.headers == {} and response.flags == [] and response.meta == {} and response.history == []
    assert response.request is None


def test_the_historical_order_of_arguments_works():
    response = Response("http://h.test/", 404, {"a": "b"}, b"x", meta={"m": 1})
    assert (response.status, response.headers["A"], response.body, response.meta) == (404, "b", b"x", {"m": 1})


def test_the_meta_is_the_requests_own():
    request = Request("http://h.test/", meta={"a": 1})
    response = Response("http://h.test/")
    assert response.meta == {}
    response.request = request
    response.meta["b"] = 2
    assert request.meta == {"a": 1, "b": 2}


def test_the_history_is_what_the_redirects_left_in_meta():
    meta = {"redirect_urls": ["http://a.test/", "http://b.test/"], "redirect_reasons": [301, "meta refresh"]}
    history = Response("http://c.test/", request=Request("http://c.test/", meta=meta)).history
    assert [(one.url, one.status_code, one.body) for one in history] == [
        ("http://a.test/", 301, b""),
        ("http://b.test/", 0, b""),
    ]


def test_a_response_shows_status_and_url_without_password():
    assert repr(Response("http://u:secret@h.test/", 404)) == "<404 http://u:***@h.test/>"


def test_replace_changes_the_named_fields_and_shares_nothing_that_changes():
    original = page(b"a", request=Request(URL), flags=["cached"], encoding="gbk")
    copy = original.replace(body=b"b", status=201)
    assert (copy.body, copy.text, copy.status_code, copy.url, copy.encoding) == (b"b", "b", 201, URL, "gb18030")
    assert copy.request is original.request and copy.flags == ["cached"]
    copy.headers["X"] = "1"
    copy.flags.append("partial")
    assert "X" not in original.headers and original.flags == ["cached"] and original.body == b"a"


def test_making_a_response_parses_and_decodes_nothing():
    body = "<p>中</p>".encode("gbk") * 500_000
    headers = Headers({"Content-Type": "text/html"})
    started = time.perf_counter()
    for _ in range(1000):
        Response("http://h.test/", 200, headers, body)
    assert time.perf_counter() - started < 1


# -- text


def test_the_encoding_can_be_corrected():
    response = page("<p>中文</p>".encode("gbk"), encoding="big5")
    assert response.css("p::text").get() != "中文"
    response.encoding = "GBK"
    assert response.encoding == "gb18030"
    assert response.text == "<p>中文</p>" and response.css("p::text").get() == "中文"


def test_an_unknown_encoding_is_refused_when_assigned():
    response = page(b"")
    with pytest.raises(LookupError, match="nonsense"):
        response.encoding = "nonsense"


def test_a_text_may_be_assigned_as_body():
    response = page("<p>中文</p>".encode("gbk"))
    assert response.css("p")
    response.body = response.body.decode("gbk")
    assert response.text == response.body == "<p>中文</p>"
    assert response.css("p::text").get() == "中文"
    assert response.replace(status=404).text == "<p>中文</p>"


def test_a_new_body_has_a_new_text_and_tree():
    response = page(b"<a href=/1>1</a>")
    assert response.css("a::text").getall() == ["1"]
    response.body = bytearray(b"<base href=http://other.test><a href=/2>2</a>")
    assert response.body == b"<base href=http://other.test><a href=/2>2</a>"
    assert urls(response.follow_all(css="a")) == ["http://other.test/2"]


def test_the_header_declares_the_encoding():
    response = Response(URL, headers={"content-type": "text/plain; charset=gb2312"}, body="中文".encode("gbk"))
    assert (response.encoding, response.text) == ("gb18030", "中文")


def test_json_is_read_in_the_encoding_of_the_answer():
    assert page('{"a": "中"}'.encode()).json() == {"a": "中"}
    assert page(b"\xef\xbb\xbf[1]").json() == [1]
    assert Response(URL, headers={"Content-Type": "text/json; charset=gbk"}, body='"中"'.encode("gbk")).json() == "中"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"\xff"])
def test_what_is_no_json_is_a_value_error_that_says_where_and_how_it_begins(body):
    with pytest.raises(ValueError, match="h.test/dir") as caught:
        page(body, "http://u:secret@h.test/dir").json()
    assert repr(page(body).text) in str(caught.value) and "secret" not in str(caught.value)


def test_regular_expressions_search_the_text():
    response = page("<b>中1</b><b>中2</b>".encode())
    assert response.re(r"中(\d)") == ["1", "2"]
    assert response.re_first(r"中(\d)") == "1" and response.re_first("x") is None
    assert response.re_findall(r"<b>(中)(\d)") == [("中", "1"), ("中", "2")]
    assert response.re_findall(r"\d", "a7b8") == ["7", "8"]


# -- links


@pytest.mark.parametrize(
    ("body", "base"),
    [
        (b"<p>", URL),
        (b"<base href='/other/'>", "http://h.test/other/"),
        (b"<BASE HREF=https://cdn.test/x/y>", "https://cdn.test/x/y"),
        (b"<base target=_top><base href=' /second/ '><base href=/third/>", "http://h.test/second/"),
        (b"<!-- <base href='/comment/'> -->", URL),
        (b"<base href='javascript:x'>", URL),
        (b"<base href=''>", URL),
        (b"<basefont size=1>", URL),
    ],
)
def test_links_are_relative_to_the_url_or_what_the_page_says_instead(body, base):
    assert page(body).base_url == base


def test_urljoin_heeds_the_base():
    assert page(b"<base href='/other/'>").urljoin("a?b#c") == "http://h.test/other/a?b#c"
    assert page(b"").urljoin("../a") == "http://h.test/a"


def test_follow_takes_urls_texts_elements_and_links():
    response = page(b"<a href=' next.html '>n</a><link href=/style><area href=/map>")
    for one in (
        "next.html",
        response.css("a::attr(href)")[0],
        response.css("a")[0],
        Link("http://h.test/dir/next.html"),
    ):
        assert response.follow(one).url == "http://h.test/dir/next.html"
    assert response.follow(response.css("link")[0]).url == "http://h.test/style"
    assert response.follow(response.css("area")[0]).url == "http://h.test/map"


def test_follow_passes_on_what_a_request_takes():
    request = page(b"").follow(
        "a", "parse_a", meta={"m": 1}, cb_kwargs={"k": 2}, dont_filter=True, priority=3, method="POST"
    )
    assert (request.parse, request.meta, request.cb_kwargs) == ("parse_a", {"m": 1}, {"k": 2})
    assert (request.filter, request.priority, request.method) == (False, 3, "POST")
    assert page(b"").follow("a", parse="parse_b").parse == "parse_b"
    assert page(b"").follow("a").parse == "parse"


@pytest.mark.parametrize("link", ["mailto:a@b.c", "javascript:void(0)", "tel:1", "ftp://h.test/", "data:,x", "http://"])
def test_follow_refuses_what_leads_to_no_web_page(link):
    with pytest.raises(ValueError, match="URL|link"):
        page(b"").follow(link)


def test_follow_refuses_what_is_no_link():
    response = page(b"<p>x</p><a name=x>y</a><!-- c -->")
    for one in (
        response.css("p")[0],
        response.css("a")[0],
        response.css("a"),
        response.xpath("//comment()")[0],
        None,
        1,
    ):
        with pytest.raises(ValueError, match="link"):
            response.follow(one)


LINKS = b"""<ul><li><a href="1">1</a><li><a href="mailto:a@b.c">m</a><li><a name="x">n</a>
<li><a href="javascript:">j</a>
<li><a href="tel:123">t</a><li><a href="http://[broken/">b</a><li><a href="2#frag">2</a></ul>"""


@pytest.mark.parametrize(
    "where",
    [
        {"css": "li a"},
        {"css": "a::attr(href)"},
        {"css": "a, li"},
        {"xpath": "//a"},
        {"xpath": "//a/@href"},
        {"xpath": "//li//a/@href"},
    ],
)
def test_follow_all_takes_the_links_and_leaves_out_the_rest(where):
    requests = page(LINKS).follow_all(**where, callback="parse_item", cb_kwargs={"k": 1})
    found = [(request.url, request.parse, request.cb_kwargs) for request in requests]
    assert found == [
        ("http://h.test/dir/1", "parse_item", {"k": 1}),
        ("http://h.test/dir/2#frag", "parse_item", {"k": 1}),
    ]


def test_follow_all_takes_a_list_of_anything():
    response = page(LINKS)
    several = ["a", response.css("a")[0], Link("http://o.test/"), "mailto:x@y.z"]
    assert urls(response.follow_all(several)) == ["http://h.test/dir/a", "http://h.test/dir/1", "http://o.test/"]
    assert urls(response.follow_all(response.css("a"), "parse_item")) == [
        "http://h.test/dir/1",
        "http://h.test/dir/2#frag",
    ]
    assert urls(response.follow_all([])) == []


@pytest.mark.parametrize(
    "arguments", [{}, {"css": "a", "xpath": "//a"}, {"urls": "http://h.test/"}, {"urls": [], "css": "a"}]
)
def test_follow_all_wants_one_source_of_several_links(arguments):
    with pytest.raises(ValueError, match="follow_all"):
        page(LINKS).follow_all(**arguments)


def test_a_bad_method_in_follow_all_is_no_bad_link():
    with pytest.raises(ValueError, match="method"):
        list(page(LINKS).follow_all(css="a", method="not one"))


@pytest.mark.parametrize(
    ("encoding", "query"),
    [("gbk", "%D6%D0"), ("utf-8", "%E4%B8%AD"), ("utf-16", "%E4%B8%AD"), ("cp1251", "%26%2320013%3B")],
)
def test_queries_of_links_are_encoded_as_the_page_is(encoding, query):
    body = "<a href='/中?q=中'>x</a>"
    response = page(body.encode(encoding, "xmlcharrefreplace"), encoding=encoding)
    assert urls(response.follow_all(css="a")) == [f"http://h.test/%E4%B8%AD?q={query}"]


def test_forms_sent_from_a_page_are_in_its_encoding():
    response = page(b"", encoding="gbk")
    assert response.follow("a", method="POST", data={"q": "中"}).body == b"q=%D6%D0"
    assert response.follow("a", method="POST", data={"q": "中"}, encoding="utf-8").body == b"q=%E4%B8%AD"


def test_links_followed_at_a_glance_are_requests_like_any_other():
    page = Response("http://h.test:54321/a/b.html", body=b'<base href="/c/">')
    links = ["/x", "y?z=1", "../q", " y ", "HTTP://H.test", "ü", "mailto:x", "?k", "http://h.test:80/"]
    followed = [*page.follow_all(links), *page.follow_all(links, callback="parse_it")]
    urls = [page.link_url(link) for link in links if link != "mailto:x"]
    made = [Request(url, callback=callback) for callback in (None, "parse_it") for url in urls]
    assert [_state(one) for one in followed] == [_state(one) for one in made]


def _state(request):
    return {name: getattr(request, name, "unset") for name in Request.__slots__}
