"""Cookies between requests: what answers set is stored, what fits is sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.cookie_jar import Cookie, Jar, Place, domain_matches, parse, place


class Cookies:
    """One jar for each value of meta["cookiejar"] (one in all without it).

    `request.cookies`, a dict or a list of dicts (name, value, domain, path, secure), goes into the jar first. A Cookie
    header that the request has of its own is sent with what the jar adds. With meta dont_merge_cookies, and when not
    `enabled`, no jar is used: only what the request carries itself is sent, nothing is stored.
    """

    def __init__(self, enabled: bool = True, *, clock: Callable[[], float] = time.time) -> None:
        self.jars: dict[Hashable, Jar] = {}
        self._enabled = enabled
        self._clock = clock

    def process_request(self, request: Request) -> Request | None:
        """A copy with the Cookie header, if there is any: the request itself must not carry it on to the next hop, nor
        into a queue, where it would grow old."""
        if not request.cookies and not self.jars:
            return None
        at, now = place(request.full_url), self._clock()
        own = list(_own_cookies(request, at))
        if self._uses_jar(request):
            jar = self._jar(request)
            # The next hop of a redirect brings them again, but an answer may have changed them since.
            for cookie in own if not (request.has_meta and request.meta.get("redirect_times")) else ():
                jar.store(cookie, now)
            cookies = jar.matching(at, now)
        else:
            cookies = [cookie for cookie in own if cookie.goes_to(at, now)]
        header = _header(request.headers.get("Cookie", ""), cookies)
        if not cookies or not header:
            return None
        sent = request.copy()
        sent.headers["Cookie"] = header
        return sent

    def process_response(self, request: Request, response: Response) -> Response:
        response.request = request
        if "set-cookie" in response.headers and self._uses_jar(request):
            at, now = place(request.full_url), self._clock()
            jar = self._jar(request)
            for header in response.headers.getlist("Set-Cookie"):
                cookie = parse(header, at, now)
                if cookie is not None:
                    jar.store(cookie, now)
        return response

    def _uses_jar(self, request: Request) -> bool:
        return self._enabled and not (request.has_meta and request.meta.get("dont_merge_cookies"))

    def _jar(self, request: Request) -> Jar:
        name = request.meta.get("cookiejar") if request.has_meta else None
        key = name if isinstance(name, Hashable) else repr(name)
        jar = self.jars.get(key)
        if jar is None:
            jar = self.jars[key] = Jar()
        return jar


def _own_cookies(request: Request, at: Place) -> Iterator[Cookie]:
    """What `request.cookies` says; a domain that the request's host is not below is left out."""
    given = request.cookies or ()
    rows = [{"name": n, "value": v} for n, v in given.items()] if isinstance(given, Mapping) else given
    for row in rows:
        if row.get("name") is None or row.get("value") is None:
            continue
        cookie = Cookie(_text(row["name"]), _text(row["value"]), at.host, row.get("path") or "/")
        domain = str(row.get("domain") or "").lower().removeprefix(".")
        if domain and not domain_matches(at.host, domain):
            continue
        if domain:
            cookie = replace(cookie, domain=domain, is_host_only=False)
        yield replace(cookie, is_secure=bool(row.get("secure")))


def _text(value: Any) -> str:
    """As it is in a header: the bytes of UTF-8, one to a character."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value).encode("utf-8").decode("latin-1")


def _header(own: str, cookies: list[Cookie]) -> str:
    """The request's own Cookie header, and the cookies that it does not name."""
    named = {pair.partition("=")[0].strip() for pair in own.split(";")}
    added = [f"{cookie.name}={cookie.value}" for cookie in cookies if not own or cookie.name not in named]
    return "; ".join([*([own.strip().rstrip(";")] if own.strip() else []), *added])
