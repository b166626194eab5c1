"""A spider stays on its allowed domains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from scrapy_plus.errors import DropRequest
from scrapy_plus.http.request import Request


class Offsite:
    """Refuses requests to hosts that are neither in `spider.allowed_domains` nor below one of them.

    A start request, one with `filter=False` and one with meta allow_offsite go everywhere: somebody meant exactly them.
    Where a start request is redirected nobody meant.
    """

    def process_request(self, request: Request, spider: Any) -> None:
        domains = getattr(spider, "allowed_domains", None)
        if not domains or not request.filter:
            return
        meta = request.meta if request.has_meta else {}
        if meta.get("allow_offsite") or not (meta.get("depth") or meta.get("redirect_times")):
            return
        host = urlsplit(request.url).hostname or ""
        if not is_below(host, [domains] if isinstance(domains, str) else domains):
            raise DropRequest(f"offsite: {host}")


def is_below(host: str, domains: Iterable[str]) -> bool:
    """Whether `host` is one of the domains or a subdomain of one; a URL or a port in the list is forgiven."""
    name = host.rstrip(".").lower()
    for domain in domains:
        wanted = domain_name(domain)
        if name == wanted or (wanted and name.endswith(f".{wanted}")):
            return True
    return False


def domain_name(domain: str) -> str:
    """The host that somebody meant by "example.com", "https://Example.com/path" or "example.com:8000"."""
    text = domain.strip().lower()
    host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    try:
        return host.rstrip(".").lstrip(".*").encode("idna").decode("ascii")
    except UnicodeError:
        return host
