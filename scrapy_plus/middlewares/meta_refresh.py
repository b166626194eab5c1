"""A page that sends its readers on by `<meta http-equiv="refresh">` is a redirect like any other."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy_plus.errors import BadRedirect
from scrapy_plus.http.refresh import Refresh, find_refresh, is_html, parse_refresh
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import canonicalize, site
from scrapy_plus.middlewares.redirect import hop, readable

REASON = "meta refresh"
"""What `redirect_reasons` says of it, where a redirect has its status."""


class MetaRefresh:
    """Turns an HTML page (2xx) that gives way within `max_delay_seconds` into the request of its target, by GET.

    `max_times` counts with the redirects of the same chain. A page that would only load itself again is given to the
    callback, unless it has set a cookie: then it may be another one, and is asked once more. Not for requests with meta
    dont_redirect.
    """

    def __init__(
        self,
        max_times: int = 20,
        *,
        max_delay_seconds: float = 100.0,
        ignored_tags: Iterable[str] = ("noscript",),
        priority_adjust: int = 2,
    ) -> None:
        self._max_times = max_times
        self._max_delay_seconds = max_delay_seconds
        self._ignored_tags = tuple(ignored_tags)
        self._priority_adjust = priority_adjust

    def process_response(self, request: Request, response: Response) -> Response | Request:
        if not response.body or not 200 <= response.status_code < 300:
            return response
        refresh = self._refresh(response)
        if refresh is None or refresh.seconds > self._max_delay_seconds:
            return response
        meta = request.meta if request.has_meta else {}
        url = self._target(request, response, refresh.url)
        if url is None or meta.get("dont_redirect"):
            return response
        if int(meta.get("redirect_times", 0)) >= self._max_times:
            raise BadRedirect(f"{site(request.url)}: more than {self._max_times} redirects in a row")
        cookies = response.headers.getlist("Set-Cookie") if "set-cookie" in response.headers else ()
        return hop(request, 303, url, priority_adjust=self._priority_adjust, reason=REASON, set_cookies=cookies)

    def _refresh(self, response: Response) -> Refresh | None:
        header = response.headers.get("refresh")
        if header and is_html(response):
            return parse_refresh(readable(header))
        return find_refresh(response, self._ignored_tags)

    @staticmethod
    def _target(request: Request, response: Response, reference: str) -> str | None:
        """The URL to go on with, or None: the page stays, or leads to what is no page of the web."""
        try:
            url = response.link_url(reference) if reference else request.full_url
        except ValueError:
            return None
        if canonicalize(url) != canonicalize(request.full_url):
            return url
        has_new_cookie = "set-cookie" in response.headers
        is_again = bool(request.has_meta and REASON in request.meta.get("redirect_reasons", ()))
        return url if has_new_cookie and not is_again else None
