"""A spider that starts from a site's own list of its pages."""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

from lxml import etree

from scrapy_plus.core.spider import Spider
from scrapy_plus.http.encoding import page_text
from scrapy_plus.http.request import Request
from scrapy_plus.http.url import join

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

Method = str | Callable[..., Any]
Entry = dict[str, Any]

log = logging.getLogger(__name__)

_GZIP = b"\x1f\x8b"
_ROBOTS_LINE = re.compile(r"^\s*sitemap\s*:\s*(\S+)", re.IGNORECASE | re.MULTILINE)
# Some send a line of white space, a warning of their PHP or a comment first.
_XML_START = re.compile(
    rb"<\?xml|<!--|<!DOCTYPE|<(?:[\w.-]+:)?(?:urlset|sitemapindex)\b|(?<![^\s\xbf])<\w", re.IGNORECASE
).search
_DECLARED = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)").match
_DECLARATION = re.compile(rb"\A\s*<\?xml[^>]*\?>")
_BARE_AMPERSAND = re.compile(
    rb"<!\[CDATA\[.*?\]\]>|&(?!(?:#[0-9]+|#x[0-9a-f]+|[a-z][a-z0-9]*);)", re.DOTALL | re.IGNORECASE
)
_TEXT_LINE = re.compile(r"\s*(https?://\S+)\s*\Z", re.IGNORECASE).match


class SitemapSpider(Spider):
    """Crawls the pages of `sitemap_urls`: sitemaps, sitemap indexes, gzipped or not, or a robots.txt that names them.

    `sitemap_rules` are (pattern, method) pairs, the first that matches a page's URL gets it; `sitemap_follow` are the
    patterns of the sitemaps that an index leads on to. `sitemap_filter` may change or leave out entries.
    """

    sitemap_urls: Iterable[str] = ()
    sitemap_rules: ClassVar[Iterable[tuple[str | re.Pattern[str], Method]]] = (("", "parse"),)
    sitemap_follow: ClassVar[Iterable[str | re.Pattern[str]]] = ("",)
    sitemap_alternate_links: bool = False
    sitemap_max_bytes: int = 64 << 20

    def __init__(self, name: str | None = None, **arguments: Any) -> None:
        super().__init__(name, **arguments)
        self._rules = [(re.compile(pattern), _name(method)) for pattern, method in self.sitemap_rules]
        self._follow = [re.compile(pattern) for pattern in self.sitemap_follow]

    def start_requests(self) -> Iterable[Request]:
        for url in (self.sitemap_urls,) if isinstance(self.sitemap_urls, str) else self.sitemap_urls:
            yield Request(url, parse="_parse_sitemap")

    def sitemap_filter(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        """The entries to go on with: each a dict of what the sitemap says (loc, lastmod, ...; alternate: a list)."""
        return entries

    def _parse_sitemap(self, response: Response) -> Iterator[Request]:
        if response.url.partition("?")[0].endswith("/robots.txt"):
            for url in _ROBOTS_LINE.findall(response.text):
                yield from self._request(join(response.url, url), "_parse_sitemap")
            return
        kind, entries = read_sitemap(unpack(response.body, self.sitemap_max_bytes))
        if not kind:
            log.warning("not a sitemap", extra={"url": response.url})
        for entry in self.sitemap_filter(entries):
            for url in (join(response.url, one) for one in self._urls(entry)):
                if kind == "sitemapindex":
                    if any(pattern.search(url) for pattern in self._follow):
                        yield from self._request(url, "_parse_sitemap")
                elif method := next((name for pattern, name in self._rules if pattern.search(url)), None):
                    yield from self._request(url, method)

    def _urls(self, entry: Entry) -> Iterator[str]:
        if "loc" in entry:
            yield entry["loc"]
        if self.sitemap_alternate_links:
            yield from entry.get("alternate", ())

    def _request(self, url: str, method: str) -> Iterator[Request]:
        try:
            yield Request(url, parse=method)
        except ValueError as error:  # one bad entry among thousands of good ones
            log.warning("bad URL in a sitemap", extra={"reason": str(error)})


def _name(method: Method) -> str:
    return method if isinstance(method, str) else str(getattr(method, "__name__", method))


def unpack(body: bytes, max_bytes: int) -> bytes:
    """The sitemap, inflated if it is gzipped (several members in a row too): at most `max_bytes`, or what was whole."""
    if not body.startswith(_GZIP):
        return body[:max_bytes]
    unpacked = bytearray()
    while body.startswith(_GZIP) and len(unpacked) < max_bytes:
        member = zlib.decompressobj(wbits=31)
        try:
            unpacked += member.decompress(body, max_bytes - len(unpacked))
        except zlib.error as error:
            log.warning("broken gzip in a sitemap", extra={"reason": str(error)})
            break
        body = member.unused_data
    return bytes(unpacked)


def read_sitemap(body: bytes) -> tuple[str, Iterable[Entry]]:
    """("urlset", "sitemapindex", "text" or "" if it is none; its entries), read one by one from however broken XML."""
    start = body[:4096]
    if b"\x00" in start or _XML_START(start):
        events = _events(mend_xml(body))
        root = next((element for event, element in events if event == "start"), None)
        kind = "" if root is None else _local_name(root)
        return (kind, _entries(events)) if kind in ("urlset", "sitemapindex") else ("", ())
    lines = body.decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    entries = [{"loc": match[1]} for line in lines if (match := _TEXT_LINE(line))]
    return ("text" if entries else ""), entries


def mend_xml(body: bytes) -> bytes:
    """The sitemap as UTF-8 that begins with its XML and whose bare ampersands are escaped: the parser would leave out
    what stands behind one ("?a=1&b=2"), and give up at once where the declared encoding is not the real one."""
    declared = _DECLARED(body[:200])
    if b"\x00" in body[:4096] or (declared and declared[1].lower() not in (b"utf-8", b"utf8")):
        body = page_text(body, None)[1].encode("utf-8", "replace")
    begin = _XML_START(body[:4096])
    body = _DECLARATION.sub(b"", body[begin.start() if begin else 0 :], count=1)
    return (
        _BARE_AMPERSAND.sub(lambda found: found[0] if len(found[0]) > 1 else b"&amp;", body) if b"&" in body else body
    )


def _events(body: bytes) -> Iterator[tuple[str, Any]]:
    return iter(
        etree.iterparse(
            BytesIO(body.lstrip()),
            events=("start", "end"),
            recover=True,
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            huge_tree=True,
        )
    )


def _entries(events: Iterator[tuple[str, Any]]) -> Iterator[Entry]:
    """Each <url> or <sitemap> as it ends; then it is dropped, so that 50,000 of them do not stand in memory."""
    for event, element in events:
        if event == "end" and _local_name(element) in ("url", "sitemap"):
            yield _entry(element)
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def _entry(element: Any) -> Entry:
    entry: Entry = {}
    for child in element.iterchildren(tag=etree.Element):
        name = _local_name(child)
        if name == "link":
            if (href := child.get("href", "").strip()) and child.get("rel", "alternate").strip().lower() == "alternate":
                entry.setdefault("alternate", []).append(href)
        elif text := (child.text or "").strip():
            entry.setdefault(name, text)
    return entry


def _local_name(element: Any) -> str:
    """Without its namespace, or the prefix of one that nobody declared."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2].lower()
