"""URLs that grow without end are a trap more often than a page."""

from __future__ import annotations

from scrapy_plus.errors import DropRequest
from scrapy_plus.http.request import Request


class UrlLength:
    """Refuses requests whose URL has more than `limit` characters; 0 is no limit."""

    def __init__(self, limit: int = 2083) -> None:
        self._limit = limit

    def passes_all(self, urls: list[str], depth: int) -> bool:
        return max(map(len, urls), default=0) <= self._limit

    def process_request(self, request: Request) -> None:
        is_short = len(request.url) <= self._limit and not request.params
        if not is_short and self._limit and len(request.full_url) > self._limit:
            raise DropRequest(f"url length: {len(request.full_url)} is over {self._limit}")
