"""Files of some kinds are not crawled."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy_plus.errors import DropRequest
from scrapy_plus.http.request import Request
from scrapy_plus.rules.scope import denied_extension, extensions


class Extensions:
    """Refuses links and redirects to URLs whose path ends in one of `denied`; a start request is meant as it is."""

    def __init__(self, denied: Iterable[str]) -> None:
        self._denied = extensions(denied)

    def passes_all(self, urls: list[str], depth: int) -> bool:
        return not any(denied_extension(url, self._denied) for url in urls)

    def process_request(self, request: Request) -> None:
        meta = request.meta if request.has_meta else {}
        if not (meta.get("depth") or meta.get("redirect_times")):
            return
        ending = denied_extension(request.url, self._denied)
        if ending:
            raise DropRequest(f"extension: .{ending} is denied")
