"""Headers that every request has unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_plus.http.request import Request


class DefaultHeaders:
    """Adds `headers` and a User-Agent where the request has none of its own.

    `spider.user_agent` wins over `user_agent`. A header whose value is None is not sent.
    """

    def __init__(self, headers: Mapping[str, str | None] | None = None, user_agent: str | None = None) -> None:
        self._headers = {name: value for name, value in (headers or {}).items() if value is not None}
        self._user_agent = user_agent

    def process_request(self, request: Request, spider: Any) -> None:
        headers = request.headers
        user_agent = getattr(spider, "user_agent", None) or self._user_agent
        if user_agent and "user-agent" not in headers:
            headers["User-Agent"] = user_agent
        for name, value in self._headers.items():
            if name not in headers:
                headers[name] = value
