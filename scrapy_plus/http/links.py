"""The links of a page, chosen by pattern, domain and place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy_plus.http.url import canonicalize

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

Patterns = str | re.Pattern[str] | Iterable[str | re.Pattern[str]]

_NO_PAGES = (
    "7z 7zip apk bz2 cdr dmg gz img iso jar rar tar tar.gz tgz xz zip zst "  # archives
    "ai bmp cr2 drw dxf eps gif ico jng jpe jpeg jpg jxl mng pbm pct pct2 pgm png pnm ppm ps psd psp raw svg tif tiff "
    "webp xbm xpm avif heic "  # images
    "aac aiff aif au flac m4a mid mp3 ogg opus ra wav wma "  # sound
    "3gp asf asx avi flv m4v mov mp4 mpeg mpg ogv qt rm swf vob webm wmv "  # films
    "doc docm docx dotx epub key numbers odg odp ods odt pages pdf pot potx pps ppsx ppt pptx rtf xls xlsm xlsx xltx "
    "bin class com css dll exe js msi deb rpm sh torrent woff woff2 eot ttf otf"
)
IGNORED_EXTENSIONS = frozenset(_NO_PAGES.split())
"""The kinds of file that are no pages."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a page: where it leads and how it is written there."""

    url: str
    text: str = ""
    fragment: str = field(default="", compare=False)
    nofollow: bool = False


class LinkExtractor:
    """Takes the links of a page that match all of what is asked.

    `allow` (any of them) and `deny` (none) are regular expressions searched for in the absolute URL; `allow_domains`
    and `deny_domains` include their subdomains; `deny_extensions` are endings of files, by default those of no pages
    (IGNORED_EXTENSIONS). `restrict_xpaths` and `restrict_css` name the parts of the page to look in, `restrict_text`
    what the text of the link must match. `tags` and `attrs` say where links are written; `process_value` gets each
    attribute and returns it, mended, or None to skip it; `strip` takes white space off it. `canonicalize` gives URLs in
    their canonical form; `unique` leaves out links whose canonical URL was there before. `obey_nofollow` leaves out
    those of rel=nofollow, and all of a page that says nofollow to robots (<meta name="robots">, X-Robots-Tag).
    """

    def __init__(
        self,
        allow: Patterns = (),
        deny: Patterns = (),
        allow_domains: str | Iterable[str] = (),
        deny_domains: str | Iterable[str] = (),
        restrict_xpaths: str | Iterable[str] = (),
        tags: str | Iterable[str] = ("a", "area"),
        attrs: str | Iterable[str] = ("href",),
        canonicalize: bool = False,
        unique: bool = True,
        process_value: Callable[[str], str | None] | None = None,
        deny_extensions: str | Iterable[str] | None = None,
        restrict_css: str | Iterable[str] = (),
        strip: bool = True,
        restrict_text: Patterns = (),
        obey_nofollow: bool = False,
    ) -> None:
        self.allow = _patterns(allow)
        self.deny = _patterns(deny)
        self.allow_domains = _domains(allow_domains)
        self.deny_domains = _domains(deny_domains)
        self.restrict_xpaths = _words(restrict_xpaths)
        self.restrict_css = _words(restrict_css)
        self.restrict_text = _patterns(restrict_text)
        self.tags = _words(tags)
        self.attrs = _words(attrs)
        self.canonicalize = canonicalize
        self.unique = unique
        self.process_value = process_value
        self.strip = strip
        self.obey_nofollow = obey_nofollow
        denied = IGNORED_EXTENSIONS if deny_extensions is None else _words(deny_extensions)
        self.deny_extensions = frozenset(one.lower().lstrip(".") for one in denied)

    def extract_links(self, response: Response) -> list[Link]:
        """The page's links that match, in its order."""
        found: list[Link] = []
        seen: set[str] = set()
        if self.obey_nofollow and says_nofollow(response):
            return found
        for element, value in self._values(response):
            url = self._url(response, value)
            if url is None or not self.matches(url):
                continue
            link = _link(url, element)
            if self.obey_nofollow and link.nofollow:
                continue
            if self.restrict_text and not any(one.search(link.text) for one in self.restrict_text):
                continue
            key = url if self.canonicalize else canonicalize(url, keep_fragments=True)
            if not self.unique or key not in seen:
                seen.add(key)
                found.append(link)
        return found

    def matches(self, url: str) -> bool:
        """Whether a link to this URL would be taken, by its URL alone."""
        if self.allow and not any(one.search(url) for one in self.allow):
            return False
        if any(one.search(url) for one in self.deny):
            return False
        if self.allow_domains or self.deny_domains:
            host = urlsplit(url).hostname or ""
            if self.allow_domains and not _is_within(host, self.allow_domains):
                return False
            if _is_within(host, self.deny_domains):
                return False
        return not (self.deny_extensions and _extension(url) & self.deny_extensions)

    def _values(self, response: Response) -> Iterator[tuple[Any, str]]:
        for region in self._regions(response):
            for element in region.iter(*self.tags) if self.tags else ():
                for name in self.attrs:
                    value = element.get(name)
                    if value is not None:
                        yield element, value

    def _regions(self, response: Response) -> Iterable[Any]:
        """The whole page, or the parts asked for: each once, though one lies inside another."""
        if not self.restrict_xpaths and not self.restrict_css:
            return (response.root,)
        found = [one for xpath in self.restrict_xpaths for one in response.xpath(xpath)]
        found += [one for css in self.restrict_css for one in response.css(css)]
        return [one for one in found if hasattr(one, "iter")]

    def _url(self, response: Response, value: str) -> str | None:
        """The absolute URL of an attribute's value, or None for what is no link to the web."""
        if self.strip:
            value = value.strip(" \t\n\r\f")
        if self.process_value is not None and not (value := self.process_value(value) or ""):
            return None
        try:
            url = response.link_url(value)
            return canonicalize(url) if self.canonicalize else url
        except ValueError:
            return None


def says_nofollow(response: Response) -> bool:
    """Whether the page asks robots to follow none of its links; what it says to one robot by name does not count."""
    said = [one for one in response.headers.getlist("X-Robots-Tag") if ":" not in one.partition(",")[0]]
    if b"robots" in response.body.lower() if isinstance(response.body, bytes) else "robots" in response.text.lower():
        metas = (meta for meta in response.root.iter("meta") if (meta.get("name") or "").strip().lower() == "robots")
        said += [meta.get("content") or "" for meta in metas]
    words = {word.strip().lower() for one in said for word in one.split(",")}
    return not words.isdisjoint({"nofollow", "none"})


def _link(url: str, element: Any) -> Link:
    rel = element.get("rel")
    nofollow = rel is not None and "nofollow" in rel.lower().replace(",", " ").split()
    return Link(url, "".join(element.itertext(with_tail=False)), url.partition("#")[2], nofollow)


def _words(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _patterns(value: Patterns) -> list[re.Pattern[str]]:
    every = (value,) if isinstance(value, str | re.Pattern) else value
    return [re.compile(one) for one in every]


def _domains(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(one.lower().lstrip(".") for one in _words(value))


def _is_within(host: str, domains: tuple[str, ...]) -> bool:
    return any(host == domain or host.endswith("." + domain) for domain in domains)


def _extension(url: str) -> set[str]:
    """The last and the last two endings of the URL's path: for "a.tar.gz" both "gz" and "tar.gz"."""
    path = url.partition("#")[0].partition("?")[0].partition("://")[2]
    name = path.rpartition("/")[2].lower() if "/" in path else ""
    endings = name.split(".")[1:]
    return {endings[-1], ".".join(endings[-2:])} if endings else set()
