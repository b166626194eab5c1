"""Cookies between requests: what answers set is stored, what fits is sent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.cookie_jar import Cookie, Jar, Place, domain_matches, parse, place
from scrapy_plus.middlewares.public_suffix import is_public_suffix
from scrapy_plus.middlewares.redirect import COOKIES
from scrapy_plus.middlewares.shared_jars import Jars, OwnJars

log = logging.getLogger("scrapy_plus.cookies")


class Cookies:
    """One jar for each value of meta["cookiejar"] (one in all without it).

    `request.cookies`, a dict or a list of dicts (name, value, domain, path, secure), goes into the jar first. A Cookie
    header that the request has of its own is sent with what the jar adds. With meta dont_merge_cookies, and when not
    `enabled`, no jar is used: only what the request carries itself is sent, nothing is stored. `jars` is where they
    are: in this process, or in the store for all. With `debug` what is sent and set is logged, values and all.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        jars: Jars | None = None,
        debug: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._own_jars = None if jars is not None else OwnJars()
        self._jars: Jars = jars if jars is not None else self._own_jars or OwnJars()
        self._enabled = enabled
        self._debug = debug
        self._clock = clock

    @property
    def jars(self) -> dict[object, Jar]:
        """The jars of this process."""
        return self._own_jars.jars if self._own_jars is not None else {}

    def process_request(self, request: Request) -> Request | None:
        """A copy with the Cookie header, if there is any: the request itself must not carry it on to the next hop, nor
        into a queue, where it would grow old."""
        carried = request.meta.get(COOKIES) if request.has_meta else None
        if not request.cookies and not carried and self._own_jars is not None and not self._own_jars.jars:
            return None
        at, now = place(request.full_url), self._clock()
        if carried and self._uses_jar(request):
            self._take_along(request, carried, now)
        own = list(_own_cookies(request, at))
        if self._uses_jar(request):
            name = _jar_name(request)
            jar = self._jars.open(name, at.host, now)
            # The next hop of a redirect brings them again, but an answer may have changed them since.
            if own and not (request.has_meta and request.meta.get("redirect_times")):
                self._jars.keep(name, at.host, jar, own, now)
            cookies = jar.matching(at, now)
        else:
            cookies = [cookie for cookie in own if cookie.goes_to(at, now)]
        header = _header(request.headers.get("Cookie", ""), cookies)
        if not cookies or not header:
            return None
        sent = request.copy()
        sent.headers["Cookie"] = header
        if self._debug:
            log.info("cookies sent to %r: %s", request, header)
        return sent

    def process_response(self, request: Request, response: Response) -> Response:
        response.request = request
        if "set-cookie" in response.headers and self._uses_jar(request):
            at, now = place(request.full_url), self._clock()
            name = _jar_name(request)
            headers = response.headers.getlist("Set-Cookie")
            if self._debug:
                log.info("cookies set by %r: %s", request, " | ".join(headers))
            cookies = [cookie for header in headers if (cookie := parse(header, at, now, is_public_suffix))]
            if cookies:
                self._jars.keep(name, at.host, self._jars.open(name, at.host, now), cookies, now)
        return response

    def _take_along(self, request: Request, carried: list[list[str]], now: float) -> None:
        """What the redirects that led here have set, by answers that another process may have got."""
        for url, header in carried:
            was_at = place(url)
            cookie = parse(header, was_at, now, is_public_suffix)
            if cookie is not None:
                name = _jar_name(request)
                self._jars.keep(name, was_at.host, self._jars.open(name, was_at.host, now), [cookie], now)

    def _uses_jar(self, request: Request) -> bool:
        return self._enabled and not (request.has_meta and request.meta.get("dont_merge_cookies"))


def _jar_name(request: Request) -> Hashable:
    name = request.meta.get("cookiejar") if request.has_meta else None
    return name if isinstance(name, Hashable) else repr(name)


def _own_cookies(request: Request, at: Place) -> Iterator[Cookie]:
    """What `request.cookies` says; a domain that the request's host is not below, or that is nobody's, is left out."""
    given = request.cookies or ()
    rows = [{"name": n, "value": v} for n, v in given.items()] if isinstance(given, Mapping) else given
    for row in rows:
        if row.get("name") is None or row.get("value") is None:
            continue
        cookie = Cookie(_text(row["name"]), _text(row["value"]), at.host, row.get("path") or "/")
        domain = str(row.get("domain") or "").lower().removeprefix(".")
        if domain and domain != at.host and (not domain_matches(at.host, domain) or is_public_suffix(domain)):
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
