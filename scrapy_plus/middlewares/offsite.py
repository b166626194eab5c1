"""A spider stays on its allowed domains."""

from __future__ import annotations

from typing import Any

from scrapy_plus.errors import DropRequest
from scrapy_plus.http.request import Request
from scrapy_plus.rules.scope import host_in, is_below


class Offsite:
    """Refuses requests to hosts that are neither in `spider.allowed_domains` nor below one of them.

    A start request, one with `filter=False` and one with meta allow_offsite go everywhere: somebody meant exactly them.
    Where a start request is redirected nobody meant.
    """

    def passes_all(self, urls: list[str], depth: int, spider: Any) -> bool:
        domains = getattr(spider, "allowed_domains", None)
        if not domains:
            return True
        wanted = [domains] if isinstance(domains, str) else domains
        origins = {url[: url.find("/", 8) + 1] for url in urls}  # few; one without an end is empty
        return "" not in origins and all(is_below(host_in(origin), wanted) for origin in origins)

    def process_request(self, request: Request, spider: Any) -> None:
        domains = getattr(spider, "allowed_domains", None)
        if not domains or not request.filter:
            return
        meta = request.meta if request.has_meta else {}
        if meta.get("allow_offsite") or not (meta.get("depth") or meta.get("redirect_times")):
            return
        host = host_in(request.url)
        if not is_below(host, [domains] if isinstance(domains, str) else domains):
            raise DropRequest(f"offsite: {host}")
