"""URLs: cleaned as browsers do, made canonical for the fingerprint, joined, and cut to their site."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, quote_plus, urlencode, urljoin, urlsplit, urlunsplit

from w3lib.url import safe_url_string

DEFAULT_PORTS = {"http": 80, "https": 443}

# What needs no cleaning: one regex instead of a parse, since nearly every link of nearly every page is like this.
_CLEAN = re.compile(
    r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[1-9]\d{0,3})?/"
    r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*(?:#[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]*)?",
).fullmatch
# What is canonical as it stands: no port, query, fragment, escapes or dot segments.
_CANONICAL = re.compile(r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/(?:(?!\.)[A-Za-z0-9\-._~!$&'()*+,;=:@]+/?)*").fullmatch
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HOST = re.compile(r"[^\s/?#@\\<>^`{|}%\"]+").fullmatch
_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+)(?::(\d+))?(?=[/?#]|$)").match
_PLAIN_REFERENCE = re.compile(r"(?:[A-Za-z0-9_~!$&'()*+,;=@-][A-Za-z0-9_~!$&'()*+,;=@.-]*/)*[A-Za-z0-9_~-][A-Za-z0-9_~.-]*").fullmatch


def clean_url(url: str, *, encoding: str = "utf-8") -> str:
    """The URL as a browser would ask for it: trimmed, IDN and odd characters encoded (the query in `encoding`).

    Raises ValueError if it is no http(s) URL with a host. Source: WHATWG URL, as w3lib does it.
    """
    if _CLEAN(url):
        return url
    if not isinstance(url, str):
        raise TypeError(f"a URL is a str, not {type(url).__name__}: {url!r}")
    cleaned = _parsed_clean(url, encoding)
    parts = urlsplit(cleaned)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"not an http(s) URL: {url!r}; write it with http:// or https://")
    if not parts.hostname or not _HOST(parts.hostname):
        raise ValueError(f"no host in the URL {url!r}")
    return cleaned


def _parsed_clean(url: str, encoding: str) -> str:
    try:
        cleaned = safe_url_string(url.strip(), encoding=encoding)
        _ = urlsplit(cleaned).port
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"not a usable URL: {url!r} ({error})") from None
    return cleaned


def canonicalize(url: str, *, keep_fragments: bool = False) -> str:
    """The one spelling of all URLs that name the same resource: case, default port, dots, escapes, query order.

    Source: RFC 3986 §6.2.2, §6.2.3; sorting the query is every crawler's convention.
    """
    if _CANONICAL(url):
        return url
    parts = urlsplit(clean_url(url))
    path = _normalize_escapes(_remove_dot_segments(_normalize_escapes(parts.path))) or "/"
    query = "&".join(sorted(filter(None, _normalize_escapes(parts.query).split("&")), key=_pair))
    fragment = _normalize_escapes(parts.fragment) if keep_fragments else ""
    return urlunsplit((parts.scheme, _netloc(parts), path, query, fragment))


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
    origin = _ORIGIN(url)
    if origin:
        return site_of_origin(*origin.groups())
    parts = urlsplit(url)
    host = parts.hostname or ""
    return site_of_origin(parts.scheme, f"[{host}]" if ":" in host else host, str(parts.port) if parts.port else None)


def join(base: str, reference: str) -> str:
    """The absolute URL of a reference found on the page `base` (RFC 3986 §5)."""
    if _PLAIN_REFERENCE(reference) and "?" not in base and "#" not in base and base.count("/") > 2:
        return base[: base.rindex("/") + 1] + reference
    return urljoin(base, reference.strip(" \t\r\n\f\x00"))


def add_params(url: str, params: Any) -> str:
    """The URL with `params` (a mapping, pairs, or a ready query string) appended to its query."""
    if not params:
        return url
    query = params if isinstance(params, str) else encode_form(params)
    base, hash_, fragment = url.partition("#")
    glue = "" if base.endswith(("?", "&")) else "&" if "?" in base else "?"
    return f"{base}{glue}{query}{hash_}{fragment}"


def encode_form(fields: Any) -> str:
    """Mapping or pairs as application/x-www-form-urlencoded; a list is one field repeated, None is left out."""
    pairs = fields.items() if hasattr(fields, "items") else fields
    flat = [
        (name, one)
        for name, value in pairs
        for one in (value if isinstance(value, list | tuple) else (value,))
        if one is not None
    ]
    return urlencode(flat, quote_via=quote_plus)


def without_password(url: str) -> str:
    """The URL as it may be shown: a password in it is replaced by ***."""
    if "@" not in url:
        return url
    parts = urlsplit(url)
    if parts.password is None:
        return url
    userinfo, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{userinfo.partition(':')[0]}:***@{host}"))
