"""Which URLs a crawl goes to, and in a sentence why not to the others: pure rules, for policies and for displays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

KINDS_IN_SCRAPY = {"offsite": "offsite/filtered", "url length": "urllength/request_ignored_count"}
"""Kinds of refusal that Scrapy's statistics have a name for."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of a crawl: domains (none: all), links from the start and characters of a URL (0: any), endings."""

    allowed_domains: tuple[str, ...] = ()
    depth_limit: int = 0
    url_length_limit: int = 0
    denied_extensions: frozenset[str] = frozenset()

    def why_not(self, url: str, *, depth: int = 1) -> str | None:
        """Why the crawl does not go to this URL, found so many links from the start; None if it does.

        A start request (depth 0) is bound by nothing but the length of its URL: somebody meant exactly it.
        """
        if depth and self.allowed_domains and not is_below(host_in(url), self.allowed_domains):
            domains = ", ".join(self.allowed_domains)
            return f"offsite: {host_in(url)} is neither one of the allowed_domains nor below one ({domains})"
        if self.url_length_limit and len(url) > self.url_length_limit:
            return f"url length: {len(url)} characters are more than URLLENGTH_LIMIT ({self.url_length_limit})"
        if self.depth_limit and depth > self.depth_limit:
            return f"depth: {depth} links from the start are more than DEPTH_LIMIT ({self.depth_limit})"
        ending = denied_extension(url, self.denied_extensions) if depth else ""
        return f"extension: .{ending} is one of DENIED_EXTENSIONS" if ending else None


def host_in(url: str) -> str:
    """The host of a URL, in lower case and without a port."""
    return urlsplit(url).hostname or ""


def is_below(host: str, domains: Iterable[str]) -> bool:
    """Whether `host` is one of the domains or a subdomain of one; a URL or a port in the list is forgiven."""
    name = host.rstrip(".").lower()
    for domain in domains:
        wanted = domain_name(domain)
        if name == wanted or (wanted and name.endswith(f".{wanted}")):
            return True
    return False


@lru_cache(maxsize=4096)
def domain_name(domain: str) -> str:
    """The host that somebody meant by "example.com", "https://Example.com/path" or "example.com:8000"."""
    text = domain.strip().lower()
    host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    try:
        return host.rstrip(".").lstrip(".*").encode("idna").decode("ascii")
    except UnicodeError:
        return host


def denied_extension(url: str, denied: frozenset[str]) -> str:
    """That of `denied` (lower case, without a dot) which the file of this URL ends in; "" if none."""
    if not denied or "." not in url[url.find("/", 8) + 1 :]:
        return ""
    file = urlsplit(url).path.rpartition("/")[2].lower()
    _, *endings = file.split(".")
    for place in range(len(endings)):
        ending = ".".join(endings[place:])
        if ending in denied:
            return ending
    return ""


def extensions(names: Iterable[str]) -> frozenset[str]:
    """Endings as somebody writes them: "PDF", ".pdf" and "*.pdf" are one."""
    return frozenset(name.strip().lower().lstrip("*").lstrip(".") for name in names) - {""}
