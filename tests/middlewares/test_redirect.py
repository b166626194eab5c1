"""Where a redirect leads, and with what."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import BadRedirect
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.cookies import Cookies
from scrapy_plus.middlewares.redirect import Redirect, hop, method_after, target

BASE = "http://a.test/b/c?d=e"


class Spider:
    name = "s"


def latin(text: str, encoding: str = "utf-8") -> str:
    """A header value as a transport gives it: its bytes, one to a character."""
    return text.encode(encoding).decode("latin-1")


TARGETS = {
    "http://b.test/x": "http://b.test/x",
    "//b.test/x": "http://b.test/x",
    "/x": "http://a.test/x",
    "x": "http://a.test/b/x",
    "../x": "http://a.test/x",
    "?q=1": "http://a.test/b/c?q=1",
    "#f": "http://a.test/b/c?d=e#f",
    " \t/x\r\n": "http://a.test/x",
    "/x y": "http://a.test/x%20y",
    "/a%2Fb?u=http://z/": "http://a.test/a%2Fb?u=http://z/",
    "HTTPS://B.test": "https://b.test/",
    "/\\b.test/x": "http://b.test/x",
    "\\\\b.test\\x": "http://b.test/x",
    "///b.test/x": "http://b.test/x",
    "https:/b.test/x": "https://b.test/x",
    "http:\\\\b.test/x": "http://b.test/x",
    latin("/café?q=ü"): "http://a.test/caf%C3%A9?q=%C3%BC",
    latin("/café", "latin-1"): "http://a.test/caf%E9",
    latin("/中", "gb18030"): "http://a.test/%D6%D0",
    latin("/…Å"): "http://a.test/%E2%80%A6%C3%85",
    "/茶": "http://a.test/%E8%8C%B6",
    latin("http://bücher.test/"): "http://xn--bcher-kva.test/",
}


@pytest.mark.parametrize(("location", "url"), TARGETS.items())
def test_a_location_leads_to_its_url(location, url):
    found = target(BASE, location)
    assert found.removesuffix("/") == url.removesuffix("/")


@pytest.mark.parametrize(
    "location",
    [
        "data:text/html,x",
        "javascript:alert(1)",
        "ftp://a.test/",
        "mailto:a@b.test",
        "http://[b/",
        "http://a.test:port/",
        "file:///etc/passwd",
    ],
)
def test_a_location_that_is_no_http_url_leads_nowhere(location):
    with pytest.raises(BadRedirect, match=r"http://a\.test:80"):
        target(BASE, location)


def test_no_password_is_in_the_message():
    with pytest.raises(BadRedirect) as failure:
        target("http://u:secret@a.test/", "ftp://u:secret@a.test/")
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    ("location", "url"),
    [("/x", "http://a.test/x#old"), ("/x#new", "http://a.test/x#new"), ("/x#", "http://a.test/x#old")],
)
def test_the_fragment_is_inherited_unless_there_is_a_new_one(location, url):
    assert target(BASE, location, fragment="old") == url


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/x", "http://u:p@a.test/x"),
        ("http://a.test/x", "http://u:p@a.test/x"),
        ("http://v@a.test/x", "http://v@a.test/x"),
        ("http://b.test/x", "http://b.test/x"),
        ("//b.test/x", "http://b.test/x"),
        ("https://a.test/x", "https://a.test/x"),
    ],
)
def test_userinfo_goes_to_the_same_origin_only(location, url):
    assert target("http://u:p@a.test/", location) == url


METHODS = [
    (301, "GET", "GET"), (302, "GET", "GET"), (303, "GET", "GET"), (307, "GET", "GET"), (308, "GET", "GET"),
    (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"), (308, "POST", "POST"),
    (301, "HEAD", "HEAD"), (302, "HEAD", "HEAD"), (303, "HEAD", "HEAD"), (307, "HEAD", "HEAD"),
    (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (303, "PUT", "GET"), (303, "DELETE", "GET"), (308, "PUT", "PUT"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "method", "expected"), METHODS)
def test_the_method_after_a_redirect_is_the_one_of_browsers(status, method, expected):
    assert method_after(status, method) == expected


def test_a_hop_is_a_request_that_keeps_what_it_is_for():
    request = Request(
        "http://a.test/", parse="detail", errback="failed", cb_kwargs={"k": 1}, meta={"m": 2, "depth": 3}, priority=5,
        timeout=9, proxy="http://p.test:1", headers={"X": "y"},
    )  # fmt: skip
    child = hop(request, 302, "/next", priority_adjust=2)
    assert (child.url, child.parse, child.errback, child.cb_kwargs) == (
        "http://a.test/next",
        "detail",
        "failed",
        {"k": 1},
    )
    assert (child.priority, child.timeout, child.proxy, child.headers["x"]) == (7, 9, "http://p.test:1", "y")
    assert (child.meta["m"], child.meta["depth"]) == (2, 3)
    assert request.meta == {"m": 2, "depth": 3}


def test_the_chain_is_written_into_meta_hop_by_hop():
    child = hop(hop(Request("http://a.test/1"), 301, "/2"), 302, "http://b.test/3")
    assert child.meta["redirect_urls"] == ["http://a.test/1", "http://a.test/2"]
    assert child.meta["redirect_reasons"] == [301, 302]
    assert child.meta["redirect_times"] == 2
    history = Response(child.url, request=child).history
    assert [(one.url, one.status_code) for one in history] == [("http://a.test/1", 301), ("http://a.test/2", 302)]


def test_a_retried_request_leads_to_one_that_was_never_tried():
    request = Request("http://a.test/")
    request.retry_time = 3
    assert hop(request, 302, "/x").retry_time == 0


def test_params_are_not_added_to_the_target_again():
    assert hop(Request("http://a.test/", params={"q": 1}), 302, "/x").full_url == "http://a.test/x"


def test_priority_ends_at_its_limit():
    assert hop(Request("http://a.test/", priority=1000), 302, "/x", priority_adjust=2).priority == 1000


@pytest.mark.parametrize("fields", [{"data": {"a": "1"}}, {"json": [1]}, {"data": b"raw"}])
def test_a_body_goes_with_its_method(fields):
    headers = {"content-type": "x/y", "Content-Language": "de", "Transfer-Encoding": "chunked", "X": "y"}
    request = Request("http://a.test/", "POST", headers, **fields)
    kept, dropped = hop(request, 307, "/x"), hop(request, 303, "/x")
    assert (kept.method, kept.body, kept.headers) == ("POST", request.body, request.headers)
    assert (dropped.method, dropped.body, dict(dropped.headers)) == ("GET", b"", {"X": "y"})


@pytest.mark.parametrize("location", ["http://b.test/", "https://a.test/", "http://a.test:8080/", "//sub.a.test/"])
def test_secrets_do_not_go_to_another_origin(location):
    headers = {"authorization": "Basic x", "COOKIE": "a=b", "Host": "a.test", "X": "y"}
    child = hop(Request("http://a.test/", headers=headers, cookies={"c": "d"}), 302, location)
    assert dict(child.headers) == {"X": "y"} and child.cookies is None


def test_secrets_go_on_to_the_same_origin():
    headers = {"Authorization": "Basic x", "Cookie": "a=b"}
    child = hop(Request("http://a.test/", headers=headers, cookies={"c": "d"}), 302, "http://a.test:80/x")
    assert child.headers == headers and child.cookies == {"c": "d"}


def test_the_filter_holds_for_new_targets_and_not_for_the_chains_own():
    first = Request("http://a.test/1")
    second = hop(first, 302, "/2")
    assert (second.filter, hop(second, 302, "/1").filter, hop(first, 302, "/1#x").filter) == (True, False, False)
    assert hop(Request("http://a.test/1", filter=False), 302, "/2").filter is False


def answer(status=302, location="/next", request=None, **options):
    request = request or Request("http://a.test/")
    spider = options.pop("spider", Spider())
    headers = [("Location", location)] if location is not None else []
    response = Response(request.url, status, headers, request=request)
    return Redirect(**options).process_response(request, response, spider)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_these_statuses_redirect(status):
    assert answer(status).url == "http://a.test/next"


@pytest.mark.parametrize("status", [200, 201, 300, 304, 305, 404])
def test_other_statuses_do_not(status):
    assert answer(status).status_code == status


@pytest.mark.parametrize("location", [None, "", "  "])
def test_a_redirect_to_nowhere_is_an_answer(location):
    assert answer(location=location).status_code == 302


@pytest.mark.parametrize(
    "meta", [{"dont_redirect": True}, {"handle_httpstatus_list": [302]}, {"handle_httpstatus_all": True}]
)
def test_a_request_may_want_the_redirect_itself(meta):
    assert answer(request=Request("http://a.test/", meta=meta)).status_code == 302


def test_a_spider_may_want_redirects_itself():
    class Wanting(Spider):
        handle_httpstatus_list = (302,)

    assert answer(spider=Wanting()).status_code == 302
    assert answer(301, spider=Wanting()).url == "http://a.test/next"


def test_the_list_of_the_request_wins_over_the_spiders():
    class Wanting(Spider):
        handle_httpstatus_list = (302,)

    request = Request("http://a.test/", meta={"handle_httpstatus_list": [404]})
    assert isinstance(answer(spider=Wanting(), request=request), Request)


def test_too_many_hops_are_an_error():
    request = Request("http://a.test/0")
    for i in range(1, 4):
        request = answer(location=f"/{i}", request=request, max_times=3)
    with pytest.raises(BadRedirect, match="more than 3"):
        answer(request=request, max_times=3)


def test_the_cookies_of_a_chain_reach_a_process_that_did_not_get_its_answers():
    first, second = Cookies(), Cookies()
    request = Request("http://a.test/in")
    said = [("Location", "/mid"), ("Set-Cookie", "s=1; Path=/"), ("Set-Cookie", "d=2; Domain=test")]
    answer = first.process_response(request, Response(request.url, 302, said))
    middle = decode(encode(Redirect().process_response(request, answer, Spider())))
    assert second.process_request(middle).headers["Cookie"] == "s=1"
    answer = second.process_response(middle, Response(middle.url, 302, {"Location": "/out", "Set-Cookie": "t=3"}))
    last = decode(encode(Redirect().process_response(middle, answer, Spider())))
    third = Cookies()
    assert third.process_request(last).headers["Cookie"] == "s=1; t=3"
    assert "Cookie" not in last.headers


def test_the_callback_does_not_get_the_cookies_of_the_chain_and_cannot_bring_them_back():
    request = Request("http://a.test/", meta={"redirect_cookies": [["http://a.test/", "s=1"]], "n": 1})
    response = Redirect().process_response(request, Response(request.url, request=request), Spider())
    assert response.meta == {"n": 1}


def test_a_chain_carries_no_more_cookies_than_it_needs():
    request = Request("http://a.test/")
    child = hop(request, 302, "/x", set_cookies=[f"n{number}=1" for number in range(99)])
    assert len(child.meta["redirect_cookies"]) == 50
    assert "redirect_cookies" not in hop(request, 302, "/x").meta


def test_without_a_jar_none_are_taken_along():
    request = Request(
        "http://a.test/", meta={"redirect_cookies": [["http://a.test/", "s=1"]], "dont_merge_cookies": True}
    )
    assert Cookies().process_request(request) is None
