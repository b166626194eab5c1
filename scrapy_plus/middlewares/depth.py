"""How many links away from the start requests a crawl goes."""

from __future__ import annotations

from scrapy_plus.errors import DropRequest
from scrapy_plus.http.request import Request


class Depth:
    """Refuses requests whose meta["depth"] (0 or absent for a start request) is over `limit`; 0 is no limit."""

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit

    def passes_all(self, urls: list[str], depth: int) -> bool:
        return not self._limit or 0 < depth <= self._limit

    def process_request(self, request: Request) -> None:
        if self._limit and request.has_meta and request.meta.get("depth", 0) > self._limit:
            raise DropRequest(f"depth: {request.meta['depth']} is over {self._limit}")
