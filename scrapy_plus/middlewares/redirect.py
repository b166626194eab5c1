"""Redirects: each hop is a request of its own, so that pace, filter and limits hold for its target too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from scrapy_plus.errors import BadRedirect
from scrapy_plus.http.request import PRIORITY_LIMIT, Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import canonicalize, clean_url, join, site
from scrapy_plus.middlewares.statuses import is_wanted

COOKIES = "redirect_cookies"
"""The key of meta for the cookies of a chain of redirects; it is taken out where the chain ends."""
MAX_CARRIED = 50
STATUSES = frozenset({301, 302, 303, 307, 308})
# Secrets of one origin that another must not get, and the name of the first, which is wrong for the other.
_ORIGIN_BOUND = ("Authorization", "Cookie", "Host")
_BODY_BOUND = (
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Content-Language",
    "Content-Location",
    "Transfer-Encoding",
)
_USERINFO = re.compile(r"//[^/@]*@")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


class Redirect:
    """Turns a redirect into the request of its target; at most `max_times` in a row, each `priority_adjust` higher.

    Not for requests with meta dont_redirect, nor for statuses that the request or the spider handles itself.
    Raises BadRedirect for too many hops, or a target that is no http(s) URL.
    """

    def __init__(self, max_times: int = 20, priority_adjust: int = 2) -> None:
        self._max_times = max_times
        self._priority_adjust = priority_adjust

    def process_response(self, request: Request, response: Response, spider: Any) -> Response | Request:
        if response.status_code not in STATUSES:
            drop_carried(request, response)
            return response
        location = next(iter(response.headers.getlist("Location")), "").strip()
        meta = request.meta if request.has_meta else {}
        if not location or meta.get("dont_redirect") or is_wanted(response.status_code, request, spider):
            drop_carried(request, response)
            return response
        times = int(meta.get("redirect_times", 0)) + 1
        if times > self._max_times:
            raise BadRedirect(f"{site(request.url)}: more than {self._max_times} redirects in a row")
        cookies = response.headers.getlist("Set-Cookie") if "set-cookie" in response.headers else ()
        return hop(request, response.status_code, location, priority_adjust=self._priority_adjust, set_cookies=cookies)


def drop_carried(request: Request, response: Response) -> None:
    """The chain is at its end: its cookies are in the jar, and what the callback makes of this meta must not bring them
    back there later."""
    if request._meta and COOKIES in request._meta:
        del request._meta[COOKIES]
    sent = response.request
    if sent is not None and sent is not request and sent.has_meta:
        sent.meta.pop(COOKIES, None)


def hop(
    request: Request,
    status: int,
    location: str,
    *,
    priority_adjust: int = 0,
    reason: int | str | None = None,
    set_cookies: Sequence[str] = (),
) -> Request:
    """The request that a redirect of `request` asks for; `reason`: why, if not by its status. Raises BadRedirect.

    What the chain's answers have set (`set_cookies`, with where it came from) goes along: another process may fetch it.
    """
    url = target(request.full_url, location, fragment=request.url.partition("#")[2])
    method = method_after(status, request.method)
    is_same_origin = site(url) == site(request.url)
    passed = [*request.meta.get("redirect_urls", ()), request.full_url]
    child = request.replace(
        url=url,
        method=method,
        params=None,
        priority=min(PRIORITY_LIMIT, request.priority + priority_adjust),
        # A URL of the request's own chain was seen, by this very chain: the filter would swallow a page whose first
        # answer only sets a cookie. Loops end at `max_times`.
        filter=request.filter and canonicalize(url) not in {canonicalize(one) for one in passed},
        cookies=request.cookies if is_same_origin else None,
        meta={
            **request.meta,
            "redirect_times": int(request.meta.get("redirect_times", 0)) + 1,
            "redirect_urls": passed,
            "redirect_reasons": [*request.meta.get("redirect_reasons", ()), reason or status],
        },
        **({} if method == request.method else {"data": None, "json": None}),
    )
    child.retry_time = 0
    carried = [*request.meta.get(COOKIES, ()), *([request.full_url, header] for header in set_cookies)]
    if carried:
        child.meta[COOKIES] = carried[-MAX_CARRIED:]
    for name in (*(() if method == request.method else _BODY_BOUND), *(() if is_same_origin else _ORIGIN_BOUND)):
        child.headers.pop(name, None)
    return child


def method_after(status: int, method: str) -> str:
    """The method of the next request. Source: WHATWG Fetch §4.4, which says what browsers do of RFC 9110 §15.4."""
    if status == 303 and method not in ("GET", "HEAD"):
        return "GET"
    if status in (301, 302) and method == "POST":
        return "GET"
    return method


def target(base: str, location: str, *, fragment: str = "") -> str:
    """The absolute URL that `location`, as it was in the header, means on `base`; it inherits the fragment.

    Raises BadRedirect if it is no http(s) URL. Userinfo goes along to the same origin only.
    """
    url = readable(location)
    try:
        url = clean_url(join(base, url))
    except ValueError as error:
        raise BadRedirect(
            f"{site(base)}: redirected to {_USERINFO.sub('//***@', url)[:200]!r}, which is no http(s) URL"
        ) from error
    if fragment and "#" not in url:
        url = f"{url}#{fragment}"
    userinfo, at, _ = urlsplit(base).netloc.rpartition("@")
    if at and "@" not in urlsplit(url).netloc and site(base) == site(url):
        url = url.replace("://", f"://{userinfo}@", 1)
    return url


def readable(location: str) -> str:
    """The header's bytes (latin-1 in `location`) as text: UTF-8 if they are that, else escaped one by one."""
    text = location.strip(" \t\r\n\f\0")
    if text.isascii():
        return text
    try:
        raw = text.encode("latin-1")
    except UnicodeEncodeError:  # it is text already, from a fake transport
        return text
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _NOT_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], raw).decode("ascii")
