"""The small policies: headers, statuses, and which requests a spider may make."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import DropRequest, HttpError, RetryStatus
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.default_headers import DefaultHeaders
from scrapy_plus.middlewares.depth import Depth
from scrapy_plus.middlewares.httperror import HttpErrors
from scrapy_plus.middlewares.offsite import Offsite
from scrapy_plus.middlewares.retry import RetryStatuses
from scrapy_plus.middlewares.url_length import UrlLength


class Spider:
    def __init__(self, **attributes):
        vars(self).update(attributes)


def answered(policy, status, meta=None, **spider):
    request = Request("http://a.test/", meta=meta)
    response = Response(request.url, status, request=request)
    if isinstance(policy, RetryStatuses):
        return policy.process_response(request, response, Spider(**spider))
    return policy.process_response(response, Spider(**spider))


def test_default_headers_fill_what_a_request_leaves_open():
    request = Request("http://a.test/", headers={"accept": "own"})
    DefaultHeaders({"Accept": "a", "Accept-Language": "b", "X": None}, "me/1").process_request(request, Spider())
    assert dict(request.headers) == {"accept": "own", "User-Agent": "me/1", "Accept-Language": "b"}


def test_the_user_agent_is_the_requests_or_the_spiders_or_the_projects():
    def agent(headers=None, **spider):
        request = Request("http://a.test/", headers=headers)
        DefaultHeaders({"User-Agent": "from the defaults"}, "project").process_request(request, Spider(**spider))
        return request.headers["User-Agent"]

    assert agent() == "project"
    assert agent(user_agent="spider") == "spider"
    assert agent({"user-agent": "request"}, user_agent="spider") == "request"


@pytest.mark.parametrize("status", [429, 503])
def test_statuses_to_try_again_are_raised(status):
    with pytest.raises(RetryStatus) as failure:
        answered(RetryStatuses([429, "503"]), status)
    assert failure.value.response.status_code == status and not failure.value.permanent


KEPT = [
    ({"dont_retry": True}, {}),
    ({"handle_httpstatus_list": [503]}, {}),
    ({"handle_httpstatus_all": True}, {}),
    ({}, {"handle_httpstatus_list": [503]}),
]


@pytest.mark.parametrize(("meta", "spider"), KEPT)
def test_a_status_that_is_wanted_is_not_tried_again(meta, spider):
    assert answered(RetryStatuses([503]), 503, meta, **spider).status_code == 503


def test_other_statuses_are_not_tried_again():
    assert answered(RetryStatuses([503]), 500).status_code == 500


@pytest.mark.parametrize("status", [200, 201, 299])
def test_good_answers_reach_the_callback(status):
    assert answered(HttpErrors(), status).status_code == status


@pytest.mark.parametrize("status", [199, 301, 304, 404, 500, 999])
def test_other_answers_do_not(status):
    with pytest.raises(HttpError, match=f"HTTP {status}") as failure:
        answered(HttpErrors(), status)
    assert failure.value.permanent and failure.value.response.status_code == status


def test_error_answers_reach_the_callback_when_somebody_asked_for_them():
    assert answered(HttpErrors([404]), 404).status_code == 404
    assert answered(HttpErrors(allow_all=True), 500).status_code == 500
    assert answered(HttpErrors(), 404, {"handle_httpstatus_list": [404]}).status_code == 404
    assert answered(HttpErrors(), 404, {"handle_httpstatus_all": True}).status_code == 404
    assert answered(HttpErrors(), 404, handle_httpstatus_list=[404]).status_code == 404


def test_an_answer_without_a_request_is_judged_too():
    with pytest.raises(HttpError):
        HttpErrors().process_response(Response("http://a.test/", 404), Spider())


def test_requests_deeper_than_the_limit_are_dropped():
    Depth(2).process_request(Request("http://a.test/"))
    Depth(2).process_request(Request("http://a.test/", meta={"depth": 2}))
    Depth(0).process_request(Request("http://a.test/", meta={"depth": 99}))
    with pytest.raises(DropRequest, match="^depth: 3 is over 2"):
        Depth(2).process_request(Request("http://a.test/", meta={"depth": 3}))


def test_requests_with_a_longer_url_are_dropped():
    UrlLength(20).process_request(Request("http://a.test/123456"))
    UrlLength(0).process_request(Request("http://a.test/" + "x" * 9999))
    with pytest.raises(DropRequest, match="^url length: 21 is over 20"):
        UrlLength(20).process_request(Request("http://a.test/", params={"a": "1234"}))


def allowed(url="http://b.test/", *, depth=1, domains=("a.test",), **fields):
    meta = {"depth": depth, **fields.pop("meta", {})}
    Offsite().process_request(Request(url, meta=meta, **fields), Spider(allowed_domains=domains))


def test_a_request_to_another_domain_is_dropped():
    allowed("http://sub.a.test/")
    with pytest.raises(DropRequest, match=r"^offsite: b\.test"):
        allowed()
    with pytest.raises(DropRequest):
        allowed(domains="a.test")


@pytest.mark.parametrize(
    "url", ["http://b.test/", "http://b.test?x=http://a.test/", "http://a.test@b.test/", "http://b.test"]
)
def test_requests_pass_together_only_if_each_would_pass_alone(url):
    spider = Spider(allowed_domains=["a.test", ""])
    assert Offsite().passes_all(["http://a.test/1", "http://sub.a.test/2"], 1, spider)
    assert not Offsite().passes_all(["http://a.test/1", url], 1, spider)


def test_a_start_request_may_leave_but_not_be_led_away():
    allowed(depth=0)
    with pytest.raises(DropRequest, match=r"^offsite: b\.test"):
        allowed(meta={"redirect_times": 1, "redirect_urls": ["http://a.test/"]}, depth=0)


def test_whoever_says_so_may_leave():
    allowed(filter=False)
    allowed(depth=0)
    allowed(meta={"allow_offsite": True})
    allowed(domains=[])
    Offsite().process_request(Request("http://b.test/", meta={"depth": 1}), Spider())
