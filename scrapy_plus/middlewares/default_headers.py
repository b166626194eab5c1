"""Headers that every request has unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_plus.http.headers import Headers
from scrapy_plus.http.request import Request


class DefaultHeaders:
    """Adds `headers` and a User-Agent where the request has none of its own.

    `spider.user_agent` wins over `user_agent`. A header whose value is None is not sent. They are sent in the order
    that they have here, a value of the request's own in its place, and what only the request has behind them. A
    request with a User-Agent of its own keeps its own order. `accept_encoding` is what Compression adds to a request:
    those without headers of their own get it here, since all of them can share what nobody changes.
    """

    def __init__(
        self,
        headers: Mapping[str, str | None] | None = None,
        user_agent: str | None = None,
        accept_encoding: str | None = None,
    ) -> None:
        self._headers = {name: value for name, value in (headers or {}).items() if value is not None}
        self._names = Headers(self._headers)
        self._user_agent = user_agent
        self._accept_encoding = accept_encoding
        self._template: tuple[str | None, Headers] | None = None

    def process_request(self, request: Request, spider: Any) -> None:
        if request.has_headers and "user-agent" not in request.headers:
            request.headers = self._in_order(request.headers, spider)
            return
        if not request.has_headers:
            request.headers = self._alone(getattr(spider, "user_agent", None) or self._user_agent)
            return
        headers = request.headers
        for name, value in self._headers.items():
            if name not in headers:
                headers[name] = value

    def _in_order(self, own: Headers, spider: Any) -> Headers:
        user_agent = getattr(spider, "user_agent", None) or self._user_agent
        ordered = Headers({"User-Agent": user_agent} if user_agent else None)
        rows = list(own.pairs())
        for default, value in self._headers.items():
            for name, one in [row for row in rows if row[0].lower() == default.lower()] or [(default, value)]:
                ordered.add(name, one)
        for name, one in rows:
            if name not in self._names:
                ordered.add(name, one)
        return ordered

    def _alone(self, user_agent: str | None) -> Headers:
        """What a request without headers of its own gets, as nearly all are: made once."""
        if self._template is None or self._template[0] != user_agent:
            made = Headers({"User-Agent": user_agent} if user_agent else None)
            for name, value in [*self._headers.items(), ("Accept-Encoding", self._accept_encoding)]:
                if value is not None and name not in made:
                    made[name] = value
            self._template = (user_agent, made)
        return self._template[1]
