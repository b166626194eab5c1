"""Cookies that all processes of a crawl share: the jars are facts of the store, and last as long as the crawl does."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Protocol

from scrapy_plus.frontier.base import Frontier
from scrapy_plus.middlewares.cookie_jar import Cookie, Jar
from scrapy_plus.middlewares.public_suffix import owned_domain

MAX_COOKIES = 180
REMEMBERED = 1024
RENEWED_SECONDS = 60.0
"""A cookie that only lives this much longer than before is not written again: many sites renew theirs on every page."""

ORDER_SECONDS = 1e-6
"""By how much a cookie counts as younger than the one before it in the same answer."""


class Jars(Protocol):
    """Where cookies are between two requests; `name` is that of the jar, `host` that of the request."""

    def open(self, name: object, host: str, now: float) -> Jar:
        """The jar with all cookies that may matter to `host`."""

    def keep(self, name: object, host: str, jar: Jar, cookies: Iterable[Cookie], now: float) -> None:
        """Stores what was just set; what is expired is taken out."""


class OwnJars:
    """Jars of this process alone."""

    def __init__(self) -> None:
        self.jars: dict[object, Jar] = {}

    def open(self, name: object, host: str, now: float) -> Jar:
        jar = self.jars.get(name)
        if jar is None:
            jar = self.jars[name] = Jar()
        return jar

    def keep(self, name: object, host: str, jar: Jar, cookies: Iterable[Cookie], now: float) -> None:
        for cookie in cookies:
            jar.store(cookie, now)


class SharedJars:
    """Jars in the store. A request reads those of its domain (one call); an answer writes what it changed (one call).

    Each cookie is a fact of its own, so that of two processes that set different ones neither undoes the other's.
    """

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._known: OrderedDict[str, dict[str, str]] = OrderedDict()

    def open(self, name: object, host: str, now: float) -> Jar:
        facts = self._frontier.site_facts(_place(name, host)).facts
        self._remember(_place(name, host), dict(facts))
        jar = Jar(max_per_host=MAX_COOKIES)
        for cookie in unpack(facts):
            jar.store(cookie, now)
        return jar

    def keep(self, name: object, host: str, jar: Jar, cookies: Iterable[Cookie], now: float) -> None:
        place = _place(name, host)
        known = self._known.get(place, {})
        changes: dict[str, str] = {}
        for index, cookie in enumerate(cookies):
            jar.store(cookie, now)
            key = _key(cookie)
            old = known.get(key, "") if _is_readable(known.get(key, "")) else ""
            if cookie.expires is not None and cookie.expires <= now:
                changes[key] = ""
            elif not _is_same(old, cookie):
                changes[key] = _pack(cookie, json.loads(old)[0] if old else now + index * ORDER_SECONDS)
        changes = {key: value for key, value in changes.items() if value or known.get(key)}
        changes |= _surplus({**known, **changes})
        if changes:
            self._frontier.set_site(place, facts=changes)
            self._remember(place, {**known, **changes})

    def _remember(self, place: str, facts: dict[str, str]) -> None:
        self._known[place] = facts
        self._known.move_to_end(place)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def unpack(facts: Mapping[str, str]) -> list[Cookie]:
    """The cookies of one place, those that were set first in front; what cannot be read is left out."""
    rows = []
    for key, text in facts.items():
        try:
            created, value, is_host_only, is_secure, expires = json.loads(text)
            domain, path, cookie_name = key.split(" ", 2)
            cookie = Cookie(cookie_name, value, domain, path, bool(is_host_only), bool(is_secure), expires)
            rows.append((float(created), key, cookie))
        except (ValueError, TypeError):
            continue
    return [cookie for _, _, cookie in sorted(rows, key=lambda row: row[:2])]


def _place(name: object, host: str) -> str:
    """Under which name the store has the cookies of a jar: one for all hosts that may share some."""
    return f"cookies {owned_domain(host)} {name!r}"


def _key(cookie: Cookie) -> str:
    return f"{cookie.domain} {cookie.path.replace(' ', '%20')} {cookie.name}"


def _pack(cookie: Cookie, created: float) -> str:
    row = [created, cookie.value, int(cookie.is_host_only), int(cookie.is_secure), cookie.expires]
    return json.dumps(row, separators=(",", ":"))


def _is_readable(text: str) -> bool:
    try:
        created, *rest = json.loads(text)
        return len(rest) == 4 and isinstance(created, int | float)
    except (ValueError, TypeError):
        return False


def _is_same(stored: str, cookie: Cookie) -> bool:
    if not stored:
        return False
    created, *_, expires = json.loads(stored)
    if (expires is None) != (cookie.expires is None):
        return False
    is_near = expires is None or abs(float(expires) - float(cookie.expires or 0)) < RENEWED_SECONDS
    return is_near and json.loads(_pack(cookie, created))[:4] == json.loads(stored)[:4]


def _surplus(facts: Mapping[str, str]) -> dict[str, str]:
    """What has to go, the oldest first, so that a site cannot fill the store."""
    kept = [key for key, text in facts.items() if text]
    if len(kept) <= MAX_COOKIES:
        return {}
    kept.sort(key=lambda key: float(json.loads(facts[key])[0]) if _is_readable(facts[key]) else 0.0)
    return dict.fromkeys(kept[: len(kept) - MAX_COOKIES], "")
