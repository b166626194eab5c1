"""URLs: cleaned as browsers do, made canonical for the fingerprint, joined, and cut to their site."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote_plus, urlencode, urlsplit, urlunsplit

from w3lib.url import safe_url_string

DEFAULT_PORTS = {"http": 80, "https": 443}

# What needs no cleaning, is canonical, or can be put behind its base as it stands: one regex instead of a parse, since
# nearly every link of nearly every page is like this. tests/http/test_url.py compares them with the long way.
# No part of these expressions can match the same text in two ways, or a long URL would take time without end.
_NAME = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_PORT = r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?"
_ORIGIN_TEXT = rf"https?://{_NAME}{_PORT}"
_SEGMENT = r"A-Za-z0-9\-._~!$&'()*+,;=@"
_QUERY = r"A-Za-z0-9\-._~!$&()*+,;=:@/?"


def _escaped(characters: str) -> str:
    """Any number of these characters and of escapes."""
    return rf"[{characters}]*(?:%[0-9A-Fa-f]{{2}}[{characters}]*)*"


_TAIL = rf"(?:\?(?=[^#]){_escaped(_QUERY)})?(?:#(?=.){_escaped(_QUERY + chr(39))})?"
_CLEAN = re.compile(rf"{_ORIGIN_TEXT}/{_escaped(_SEGMENT + ':/')}{_TAIL}").fullmatch
_CANONICAL = re.compile(
    rf"https?://{_NAME}(?!:80/|:443/){_PORT}/[{_SEGMENT}:/]*(?:\?[{_QUERY}]+)?",
).fullmatch
# The references that most pages are full of: a path, perhaps a query or a fragment; no host, no scheme, no dots first.
_PLAIN_REFERENCE = re.compile(rf"(?:/(?!/)|(?=[^./%])[{_SEGMENT}]){_escaped(_SEGMENT + '/')}{_TAIL}").fullmatch
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HOST = re.compile(r"[^\s/?#@\\<>^`{|}%\"]+").fullmatch
_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?#]|$)").match
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL).fullmatch
_START = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?([/\\]*)([^?#]*)").match
_DROPPED = str.maketrans("", "", "\t\r\n")
_TRIMMED = "".join(map(chr, range(0x21)))


def clean_url(url: str, *, encoding: str = "utf-8") -> str:
    """The URL as a browser would ask for it: trimmed, IDN and odd characters encoded (the query in `encoding`).

    Raises ValueError if it is no http(s) URL with a host. Source: WHATWG URL, as w3lib does it.
    """
    if not isinstance(url, str):
        raise TypeError(f"a URL is a str, not {type(url).__name__}: {url!r}")
    url = url if type(url) is str else str(url)
    return url if is_clean(url) else _parsed_clean(url, encoding)


def is_clean(url: str) -> bool:
    """Whether the URL is plainly one that `clean_url` gives back as it is."""
    return _CLEAN(url) is not None and "/." not in url


def _parsed_clean(url: str, encoding: str) -> str:
    cleaned = _safe(url.strip(_TRIMMED), encoding)
    parts = urlsplit(cleaned)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"not an http(s) URL: {url!r}; write it with http:// or https://")
    if not parts.hostname or not _HOST(parts.hostname):
        raise ValueError(f"no host in the URL {url!r}")
    path = _remove_dot_segments(parts.path)
    return cleaned if path == parts.path else urlunsplit(parts._replace(path=path))


def _safe(url: str, encoding: str) -> str:
    try:
        cleaned = safe_url_string(_encodable(url, encoding), encoding=encoding)
        _ = urlsplit(cleaned).port
    except (ValueError, LookupError) as error:
        raise ValueError(f"not a usable URL: {url!r} ({error})") from None
    return cleaned


def _encodable(url: str, encoding: str) -> str:
    """The URL with those characters of its query that `encoding` lacks as "&#233;", escaped, as browsers send them."""
    head, mark, query = url.partition("?")
    if encoding == "utf-8" or query.isascii():
        return url
    written = (one if one.encode(encoding, "ignore") else f"%26%23{ord(one)}%3B" for one in query)
    return head + mark + "".join(written)


def canonicalize(url: str, *, keep_fragments: bool = False) -> str:
    """The one spelling of all URLs that name the same resource: case, default port, dots, escapes, query order.

    Source: RFC 3986 §6.2.2, §6.2.3; sorting the query is every crawler's convention.
    """
    if _CANONICAL(url) and "/." not in url and ("&" not in url or _is_sorted(url.partition("?")[2])):
        return url
    parts = urlsplit(clean_url(url))
    path = _normalize_escapes(_remove_dot_segments(_normalize_escapes(parts.path))) or "/"
    query = "&".join(sorted(filter(None, _normalize_escapes(parts.query).split("&")), key=_pair))
    fragment = _normalize_escapes(parts.fragment) if keep_fragments else ""
    return urlunsplit((parts.scheme, _netloc(parts), path, query, fragment))


def _is_sorted(query: str) -> bool:
    arguments = query.split("&")
    return "" not in arguments and arguments == sorted(arguments, key=_pair)


def _pair(argument: str) -> tuple[str, str]:
    key, _, value = argument.partition("=")
    return key, value


def _netloc(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None and parts.port != DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    userinfo, at, _ = parts.netloc.rpartition("@")
    return f"{userinfo}{at}{host}"


def _normalize_escapes(text: str) -> str:
    """Escapes of unreserved characters decoded, the hex of all others in upper case (RFC 3986 §6.2.2)."""
    return _ESCAPE.sub(_normalize_escape, text) if "%" in text else text


def _normalize_escape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


def _remove_dot_segments(path: str) -> str:
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


@lru_cache(maxsize=4096)
def site_of_origin(scheme: str, host: str, port: str | None) -> str:
    return f"{scheme}://{host}:{int(port) if port else DEFAULT_PORTS[scheme]}"


def site(url: str) -> str:
    """The unit of politeness that a URL belongs to: scheme, host and port, as in "https://example.org:443"."""
    end = url.find("/", 8)
    if 0 < end <= _LONGEST_ORIGIN:
        return _site_of(url[:end])
    return _looked_up_site(url)


_LONGEST_ORIGIN = 300
"""Bytes of an origin that is remembered: a name has 253 at most."""


def _looked_up_site(url: str) -> str:
    origin = _ORIGIN(url)
    if origin:
        return site_of_origin(*origin.groups())
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise ValueError(f"not an http(s) URL: {url!r}")
    return site_of_origin(parts.scheme, f"[{host}]" if ":" in host else host, str(parts.port) if parts.port else None)


_site_of = lru_cache(maxsize=4096)(_looked_up_site)


def host_of(place: str) -> str:
    """The host of what `site` gave."""
    return place.partition("://")[2].rpartition(":")[0]


def join(base: str, reference: str) -> str:
    """The absolute URL of a reference found on the page `base`: RFC 3986 §5.2, and browsers' leniency.

    What has a scheme of its own (mailto:, data:) comes back as it is.
    """
    if _PLAIN_REFERENCE(reference) and "/." not in reference:
        place = place_of(base)
        return (place.origin if reference[0] == "/" else place.folder) + reference
    return _resolve(base, reference.strip(_TRIMMED).translate(_DROPPED))


class Place(NamedTuple):
    """What plain references with and without a leading slash are put behind; `is_clean`: so they make clean URLs."""

    origin: str
    folder: str
    is_clean: bool


def place_of(base: str) -> Place:
    """Where the references of a page with this URL lead, as far as that is the same for all pages of its folder."""
    path = base if "?" not in base and "#" not in base else base.partition("?")[0].partition("#")[0]
    end = path.rfind("/") + 1
    return _place_of_folder(path[:end] if end > 8 else path)


@lru_cache(maxsize=1024)
def _place_of_folder(base: str) -> Place:
    parts = urlsplit(base)
    origin = f"{parts.scheme}://{parts.netloc}"
    folder = origin + (_remove_dot_segments(parts.path[: parts.path.rfind("/") + 1]) or "/")
    return Place(origin, folder, bool(_CLEAN(origin + "/") and _CLEAN(folder)) and "/." not in folder)


def join_plain(place: Place, reference: str) -> str | None:
    """`clean_url(join(base, reference))` for the `place_of` a base, if that takes no more than to write one behind the
    other; else None."""
    if place.is_clean and _PLAIN_REFERENCE(reference) and "/." not in reference:
        return (place.origin if reference[0] == "/" else place.folder) + reference
    return None


def joined(place: Place, reference: str) -> str | None:
    """The same as `join_plain`, remembered: the links of a page's frame are on all pages of its site."""
    return _remembered(place, reference) if len(reference) <= _REMEMBERED_LENGTH else join_plain(place, reference)


_REMEMBERED_LENGTH = 200
_remembered = lru_cache(maxsize=8192)(join_plain)


def _resolve(base: str, reference: str) -> str:
    of_base = urlsplit(base)
    scheme, authority, path, query, fragment = _parts(_two_slashes(reference, of_base.scheme))
    if scheme is not None and (scheme.lower() != of_base.scheme or authority is not None):
        return f"{scheme}:{'' if authority is None else '//' + authority}{path}{query or ''}{fragment or ''}"
    if authority is None:
        authority = of_base.netloc
        if not path:
            path, query = of_base.path, query if query is not None else of_base.query and "?" + of_base.query
        elif path[0] != "/":
            path = (of_base.path[: of_base.path.rfind("/") + 1] or "/") + path
    return f"{of_base.scheme}://{authority}{_remove_dot_segments(path)}{query or ''}{fragment or ''}"


def _two_slashes(reference: str, scheme_of_base: str) -> str:
    """The reference with slashes for backslashes, and two before a host that has fewer or more: so browsers read it.

    `https:x` on a page of http names a host, on one of https a path. Source: WHATWG URL §4.4, special schemes.
    """
    start = _START(reference)
    assert start is not None  # every string matches
    scheme, slashes, path = (start[1] or "").lower(), start[2], start[3].replace("\\", "/")
    if scheme and scheme not in DEFAULT_PORTS:
        return reference
    has_host = len(slashes) >= 2 or scheme not in ("", scheme_of_base)
    prefix = (f"{scheme}:" if scheme else "") + ("//" if has_host else "/" * len(slashes))
    return prefix + path + reference[start.end() :]


def _parts(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """(scheme, authority, path, query with "?", fragment with "#") by the expression of RFC 3986, appendix B."""
    match = _PARTS(reference)
    assert match is not None  # every string matches
    return match[1], match[2], match[3], match[4], match[5]


def add_params(url: str, params: Any, *, encoding: str = "utf-8") -> str:
    """The URL with `params` (a mapping, pairs, or a ready query string) appended to its query."""
    if not params:
        return url
    query = params if isinstance(params, str) else encode_form(params, encoding=encoding)
    base, hash_, fragment = url.partition("#")
    glue = "" if base.endswith(("?", "&")) else "&" if "?" in base else "?"
    return f"{base}{glue}{query}{hash_}{fragment}"


def encode_form(fields: Any, *, encoding: str = "utf-8") -> str:
    """Mapping or pairs as application/x-www-form-urlencoded; a list is one field repeated, None is left out.

    What the encoding has no letter for is written as browsers do, "&#8364;".
    """
    pairs = fields.items() if hasattr(fields, "items") else fields
    flat = [
        (name, one)
        for name, value in pairs
        for one in (value if isinstance(value, list | tuple) else (value,))
        if one is not None
    ]
    return urlencode(flat, quote_via=quote_plus, encoding=encoding, errors="xmlcharrefreplace")
