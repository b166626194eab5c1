"""Cookies as RFC 6265 has them, pure: which are stored, which are sent. The clock is an argument.

Not the jar of `http.cookiejar`, which `requests` uses too: it sends host-only cookies to subdomains, renames hosts
without a dot, and looks at every domain it knows for every request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import urlsplit

MAX_COOKIE_BYTES = 4096
MAX_PER_HOST = 180
MAX_HOSTS = 20_000
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
_DATE_TOKENS = re.compile(r"[0-9A-Za-z:\x7f-\xff]+").findall
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)").match
_DAY = re.compile(r"(\d{1,2})(?!\d)").match
_YEAR = re.compile(r"(\d{2,4})(?!\d)").match
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+").fullmatch


class Place(NamedTuple):
    """The part of a URL that decides about cookies."""

    host: str
    path: str
    is_secure: bool


@dataclass(frozen=True, slots=True)
class Cookie:
    """A stored cookie. `expires` is None for one that lives as long as the jar."""

    name: str
    value: str
    domain: str
    path: str
    is_host_only: bool = True
    is_secure: bool = False
    expires: float | None = None

    def goes_to(self, place: Place, now: float) -> bool:
        """Whether a request there carries it. Source: RFC 6265 §5.4."""
        return (
            (self.expires is None or self.expires > now)
            and (place.host == self.domain or (not self.is_host_only and domain_matches(place.host, self.domain)))
            and path_matches(place.path, self.path)
            and (place.is_secure or not self.is_secure)
        )


def place(url: str) -> Place:
    """Where a URL is, for cookies."""
    parts = urlsplit(url)
    return Place((parts.hostname or "").rstrip("."), parts.path or "/", parts.scheme == "https")


def domain_matches(host: str, domain: str) -> bool:
    """Source: RFC 6265 §5.1.3; an address matches itself only."""
    return host == domain or (host.endswith(f".{domain}") and not is_address(host))


def path_matches(path: str, cookie_path: str) -> bool:
    """Source: RFC 6265 §5.1.4."""
    return path == cookie_path or (
        path.startswith(cookie_path) and (cookie_path.endswith("/") or path[len(cookie_path)] == "/")
    )


def default_path(path: str) -> str:
    """Source: RFC 6265 §5.1.4."""
    return path[: path.rfind("/")] or "/" if path.startswith("/") else "/"


def is_address(host: str) -> bool:
    return ":" in host or _IPV4(host) is not None


def is_top_level(domain: str) -> bool:
    """Whether no cookie may be for all of `domain`. Without a list of public suffixes: whether it has no dot."""
    return "." not in domain.strip(".")


def parse(header: str, at: Place, now: float, is_public: Callable[[str], bool] = is_top_level) -> Cookie | None:
    """The cookie that a Set-Cookie header of an answer from `at` asks to store, or None if it must not be.

    Source: RFC 6265 §5.2, §5.3. A cookie that is to be removed comes with a time in the past.
    """
    pair, _, rest = header.partition(";")
    name, equals, value = pair.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or len(name) + len(value) > MAX_COOKIE_BYTES or _CONTROL(header):
        return None
    given = dict(_attributes(rest))
    domain = given.get("domain", "").lower().removeprefix(".").rstrip(".")
    if domain and domain != at.host and (is_public(domain) or not domain_matches(at.host, domain)):
        return None
    path = given.get("path", "")
    return Cookie(
        name=name,
        value=value,
        domain=domain or at.host,
        path=path if path.startswith("/") else default_path(at.path),
        is_host_only=not domain or is_public(domain) or is_address(domain),
        is_secure="secure" in given,
        expires=_expires(given, now),
    )


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    for attribute in text.split(";"):
        name, _, value = attribute.partition("=")
        yield name.strip().lower(), value.strip()


def _expires(given: dict[str, str], now: float) -> float | None:
    """Max-Age wins over Expires; one that cannot be read is as if it were not there."""
    age = given.get("max-age", "")
    if re.fullmatch(r"-?[0-9]{1,18}", age):
        return now + int(age) if int(age) > 0 else 0.0
    return parse_date(given.get("expires", ""))


def parse_date(text: str) -> float | None:
    """Seconds since 1970 of a date as cookies write it, in any of its dialects; None if it is none.

    Source: RFC 6265 §5.1.1: the first token that looks like a time is it, and so on.
    """
    clock: list[int] = []
    day = month = year = None
    for token in _DATE_TOKENS(text):
        if not clock and (found := _TIME(token)):
            clock = [int(part) for part in found.groups()]
        elif day is None and (found := _DAY(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR(token)):
            year = int(found[1])
            year += 1900 if 70 <= year <= 99 else 2000 if year < 70 else 0
    if not clock or day is None or month is None or year is None or year < 1601:
        return None
    try:
        return datetime(year, month, day, clock[0], clock[1], clock[2], tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


class Jar:
    """Cookies by host; bounded, the host that stored first goes first."""

    def __init__(self, *, max_hosts: int = MAX_HOSTS, max_per_host: int = MAX_PER_HOST) -> None:
        self._hosts: dict[str, dict[tuple[str, str], tuple[int, Cookie]]] = {}
        self._stored = 0
        self._max_hosts = max_hosts
        self._max_per_host = max_per_host

    def __len__(self) -> int:
        return sum(map(len, self._hosts.values()))

    def __iter__(self) -> Iterator[Cookie]:
        return (cookie for cookies in self._hosts.values() for _, cookie in cookies.values())

    def store(self, cookie: Cookie, now: float) -> None:
        """Stores it in the place of its namesake, or removes that one if this is expired."""
        cookies = self._hosts.get(cookie.domain)
        key = (cookie.name, cookie.path)
        if cookie.expires is not None and cookie.expires <= now:
            if cookies is not None:
                cookies.pop(key, None)
            return
        if cookies is None:
            while len(self._hosts) >= self._max_hosts:
                del self._hosts[next(iter(self._hosts))]
            cookies = self._hosts[cookie.domain] = {}
        self._stored += 1
        cookies[key] = (cookies[key][0] if key in cookies else self._stored, cookie)
        while len(cookies) > self._max_per_host:
            del cookies[next(iter(cookies))]

    def matching(self, at: Place, now: float) -> list[Cookie]:
        """The cookies for a request there: those of longer paths first, then those stored first."""
        if not self._hosts:
            return []
        found = [
            (-len(cookie.path), serial, cookie)
            for domain in _and_above(at.host)
            for serial, cookie in self._hosts.get(domain, {}).values()
            if cookie.goes_to(at, now)
        ]
        return [cookie for _, _, cookie in sorted(found, key=lambda row: row[:2])]


def _and_above(host: str) -> Iterator[str]:
    yield host
    if not is_address(host):
        while "." in host:
            host = host.partition(".")[2]
            yield host
