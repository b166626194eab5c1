"""What goes out: from a request to its origin, the fields of its head and their bytes. Every wire says the same."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from scrapy_plus.http.request import Request
from scrapy_plus.http.url import DEFAULT_PORTS
from scrapy_plus.transport.base import Unsendable

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_BODY_EXPECTED = frozenset({"POST", "PUT", "PATCH"})

# These may be sent again when a kept connection turns out to be dead (RFC 9110 §9.2.2).
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})


class Origin(NamedTuple):
    """What the part of a URL before its path says."""

    scheme: str
    host: str
    port: int
    shown: str
    userinfo: str
    authorization: str | None


def split(url: str) -> tuple[Origin, str]:
    """A clean http(s) URL as its origin and the target of the request line, which is kept letter by letter."""
    scheme, _, rest = url.partition("://")
    at = min((index for index in (rest.find("/"), rest.find("?"), rest.find("#")) if index >= 0), default=len(rest))
    target = rest[at:].partition("#")[0]
    return parse_origin(scheme, rest[:at]), target if target[:1] == "/" else f"/{target}"


@lru_cache(maxsize=1024)
def parse_origin(scheme: str, netloc: str) -> Origin:
    """Host, port and basic authorization. Raises ValueError for a port that is none."""
    parts = urlsplit(f"{scheme}://{netloc}")
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS.get(scheme, 1080)
    shown = f"[{host}]" if ":" in host else host
    if port != DEFAULT_PORTS.get(scheme):
        shown = f"{shown}:{port}"
    userinfo, at, _ = netloc.rpartition("@")
    return Origin(scheme, host, port, shown, userinfo, _basic(userinfo) if at else None)


def _basic(userinfo: str) -> str:
    user, _, password = userinfo.partition(":")
    return "Basic " + b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode("ascii")


def proxy_of(request: Request) -> str | None:
    return request.proxy or (request.meta.get("proxy") if request.has_meta else None)


def parse_proxy(url: str) -> Origin:
    """Raises Unsendable, without quoting it (it may have a password), for what is no proxy's URL."""
    scheme, separator, netloc = url.rpartition("://")
    try:
        origin = parse_origin(scheme.lower() if separator else "http", netloc.partition("/")[0])
    except ValueError:
        raise Unsendable("the request's proxy is no URL") from None
    if not origin.host or origin.scheme not in _PROXY_SCHEMES:
        raise Unsendable(f"the request's proxy is no URL with a host and one of {', '.join(_PROXY_SCHEMES)}")
    return origin


def fields_of(request: Request, origin: Origin, body: bytes) -> dict[str, str]:
    """The fields of the head, names in the case and order they were given, those that follow from the rest added."""
    fields: dict[str, str] = {"Host": origin.shown}
    for name, value in request.headers.pairs() if request.has_headers else ():
        key = name.lower()
        if key == "host":
            fields["Host"] = value
        elif key not in _FRAMING:
            fields[name] = f"{fields[name]}{'; ' if key == 'cookie' else ', '}{value}" if name in fields else value
    if body or request.method in _BODY_EXPECTED:
        if body and request.content_type and "content-type" not in request.headers:
            fields["Content-Type"] = request.content_type
        fields["Content-Length"] = str(len(body))
    if origin.authorization and "authorization" not in request.headers:
        fields["Authorization"] = origin.authorization
    return fields


def body_of(request: Request) -> bytes:
    return request.body if request.data or request.json is not None else b""


def lines_of(fields: dict[str, str], host: str) -> tuple[bytes, ...]:
    """The fields as libcurl takes them, without those that it says itself; a name alone keeps it from saying one.

    Raises Unsendable for a line break in one of them.
    """
    lines = []
    names = set()
    for name, value in fields.items():
        key = name.lower()
        names.add(key)
        if key == "content-length" or (key == "host" and value == host):
            continue
        line = f"{name}: {value}" if value else f"{name};"
        _check_line(line)
        lines.append(encode_line(line))
    lines += [b"%s:" % name for name in (b"Accept", b"Expect", b"Content-Type") if name.decode().lower() not in names]
    return tuple(lines)


def _check_line(line: str) -> None:
    """Raises Unsendable if something in this line of a head would end it, or the head, early."""
    if "\n" in line or "\r" in line or "\0" in line:
        raise Unsendable("a line break, NUL or space where the request line or a header cannot have one")


def serialize(method: str, target: str, fields: dict[str, str]) -> bytes:
    """The head of the request. Raises Unsendable if something in it would end a line, or the request, early."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in fields.items()]]
    text = "\r\n".join(lines) + "\r\n\r\n"
    ends = len(lines) + 1
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text or " " in target:
        raise Unsendable("a line break, NUL or space where the request line or a header cannot have one")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return b"\r\n".join(encode_line(line) for line in lines) + b"\r\n\r\n"


def encode_line(line: str) -> bytes:
    """Latin-1, which gives bytes back as they came in; what it has no letters for as UTF-8, which browsers send."""
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode("utf-8")
