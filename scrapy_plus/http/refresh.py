"""Where a page sends its readers by itself: `<meta http-equiv="refresh">`, and the header of the same name."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

_INERT = frozenset(
    ["script", "style", "template", "textarea", "title", "iframe", "noembed", "noframes", "xmp", "plaintext", "select"]
)
"""Elements in which a <meta> is text, or is never looked at."""
_HTML_TYPES = re.compile(r"\s*(?:text/html|application/xhtml\+xml)\s*(?:;|$)", re.IGNORECASE).match
_TIME = re.compile(r"[ \t\n\r\f]*(\d+|(?=\.))[\d.]*").match
_URL_WORD = re.compile(r"[uU][rR][lL][ \t\n\r\f]*=[ \t\n\r\f]*").match
_SPACE = " \t\n\r\f"
_LONGEST_SECONDS = 1e9


class Refresh(NamedTuple):
    """After `seconds` the page gives way to `url`, which is as it was written; empty: the page itself, anew."""

    seconds: float
    url: str


def parse_refresh(content: str) -> Refresh | None:
    """What the attribute or header says, or None if browsers do not understand it.

    Source: WHATWG HTML, "shared declarative refresh steps".
    """
    found = _TIME(content)
    if found is None:
        return None
    seconds = min(float(found[1] or 0), _LONGEST_SECONDS) if len(found[1]) < 20 else _LONGEST_SECONDS
    rest = content[found.end() :]
    if not rest:
        return Refresh(seconds, "")
    if rest[0] not in ";," and rest[0] not in _SPACE:
        return None
    rest = rest.lstrip(_SPACE)
    if rest[:1] in (";", ","):
        rest = rest[1:].lstrip(_SPACE)
    return Refresh(seconds, _unquoted(rest))


def _unquoted(rest: str) -> str:
    """The URL behind an optional `url=`, out of its quotes; a quote that is never closed reaches to the end."""
    word = _URL_WORD(rest)
    if word is None and rest[:1] in ("u", "U"):
        return rest.strip(_SPACE)
    rest = rest[word.end() :] if word else rest
    if rest[:1] in ("'", '"'):
        rest = rest[1:].partition(rest[0])[0]
    return rest.strip(_SPACE)


def find_refresh(response: Response, ignored_tags: Collection[str] = ("noscript",)) -> Refresh | None:
    """The first refresh of an HTML page that counts: none in a comment, a script, or below `ignored_tags`."""
    if not _may_refresh(response):
        return None
    skipped = _INERT.union(tag.lower() for tag in ignored_tags)
    for meta in response.root.iter("meta"):
        if (meta.get("http-equiv") or "").strip(_SPACE).lower() == "refresh" and not _is_below(meta, skipped):
            refresh = parse_refresh(meta.get("content") or "")
            if refresh is not None:
                return refresh
    return None


def is_html(response: Response) -> bool:
    """By its Content-Type, or by how it begins if it has none."""
    kind = response.headers.get("content-type")
    if kind:
        return _HTML_TYPES(kind) is not None
    return response.text[:1024].lstrip("\ufeff" + _SPACE).startswith("<")


def _may_refresh(response: Response) -> bool:
    """Whether it is worth parsing the page: nearly all pages have no such word."""
    body = response.body
    if not isinstance(body, bytes) or b"\0" in body[:64]:  # UTF-16, or text that somebody put there
        return is_html(response) and "refresh" in response.text.lower()
    return b"refresh" in response.lowered and is_html(response)


def _is_below(element: Any, tags: Collection[str]) -> bool:
    return any(one.tag in tags for one in element.iterancestors())
