"""What a site's robots.txt says to one crawler, as RFC 9309 reads it: pure rules, without the fetching.

Which of its lines are for whom is decided here, by the whole product token; what their paths match, by protego.
"""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

MAX_BYTES = 500 << 10
"""So much of a robots.txt is read, and the rest passed over (RFC 9309 §2.5 asks for no less)."""
LIFETIME_SECONDS = 24 * 3600.0
"""A robots.txt is asked for again when it is older (RFC 9309 §2.4)."""
MAX_REDIRECTS = 5
_PRODUCT = re.compile(r"[a-z0-9_-]+").match
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNDECODED = re.compile("[\udc80-\udcff]")
_AGENT = ("user-agent", "useragent", "user agent")
_RULES = ("allow", "disallow", "crawl-delay")


class Met(Enum):
    """How a robots.txt was met: it was read, there is none, or nobody knows."""

    READ = "read"
    ABSENT = "absent"
    UNREACHABLE = "unreachable"


def met_by(status: int) -> Met:
    """What an answer with this status means. 4xx: there are no rules; 5xx: nobody knows them, so nothing may be asked.

    429 is a 4xx that says when to come again, as 503 does. Source: RFC 9309 §2.3.1.
    """
    if 200 <= status < 300:
        return Met.READ
    return Met.UNREACHABLE if status >= 500 or status == 429 else Met.ABSENT


def product_of(user_agent: str) -> str:
    """The product token that robots.txt calls a crawler by: "scrapyplus" for "scrapyplus/1.0 (+url)"."""
    found = _PRODUCT(user_agent.strip().lower())
    return found[0] if found else "*"


def text_of(body: bytes) -> str:
    """A robots.txt as text, however it is encoded and however long; without what stands behind the limit.

    A byte that is no UTF-8 becomes what stands for it in a URL (%E9).
    """
    cut = body[:MAX_BYTES]
    if cut[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) and cut.count(0) > len(cut) // 3:
        text = cut.decode("utf-16", "replace")
    else:
        text = cut.removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")
        text = _UNDECODED.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", text)
    if len(body) > len(cut):  # half of a rule may forbid more than the whole one
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return text.replace("\0", "")


def lines_of(text: str) -> Iterator[tuple[str, str]]:
    """The fields and values of a robots.txt in order, without comments and what is no line of one."""
    for line in _LINE_END.split(text):
        name, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield name.strip().lower(), " ".join(value.splitlines()).strip()


def rules_for(text: str, product: str) -> list[tuple[str, str]]:
    """The lines that are for the crawler of this name: those of all its groups, else those of all groups for *.

    Lines that know no group, such as Sitemap, neither end one nor belong to one. Source: RFC 9309 §2.2.1.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    agents: list[str] = []
    is_naming = False
    for name, value in lines_of(text):
        if name in _AGENT:
            agents = [*(agents if is_naming else ()), product_of(value)]
            found.setdefault(agents[-1], [])
            is_naming = True
        elif name in _RULES:
            is_naming = False
            for agent in dict.fromkeys(agents):
                found[agent].append((name, value))
    return found.get(product, found.get("*", []))


class Robots:
    """The rules of one robots.txt for the crawler with this product token."""

    __slots__ = ("_matcher", "_rules", "text")

    def __init__(self, text: str, product: str) -> None:
        self.text = text
        self._rules = rules_for(text, product)
        self._matcher = _matcher(self._rules)

    def allows(self, url: str) -> bool:
        """Whether this URL of the site may be asked for: the longest rule that fits decides; the file itself may be.

        Source: RFC 9309 §2.2.2.
        """
        if self._matcher is None or urlsplit(url).path == "/robots.txt":
            return True
        return bool(self._matcher.can_fetch(url, "*"))

    def delay_seconds(self, *, limit_seconds: float) -> float:
        """The Crawl-delay, 0 if there is none; longer ones than the limit are cut: mistakes more often than wishes."""
        delays = [_seconds(value) for name, value in self._rules if name == "crawl-delay"]
        return min(limit_seconds, max(delays, default=0.0))

    @property
    def sitemaps(self) -> list[str]:
        """The sitemaps that it names."""
        return [value for name, value in lines_of(self.text) if name == "sitemap" and value]


def _seconds(text: str) -> float:
    try:
        seconds = float(text.replace(",", "."))
    except ValueError:
        return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _matcher(rules: list[tuple[str, str]]) -> Any:
    """None if nothing is forbidden: most crawls of one's own pages never need protego."""
    if not any(name == "disallow" and value for name, value in rules):
        return None
    from protego import Protego

    # A rule for /index.html would be taken as one for / too; with a star, which changes nothing else, it is not.
    paths = [
        (name, f"{value}*" if value.endswith("/index.html") else value)
        for name, value in rules
        if value and name != "crawl-delay"
    ]
    return Protego.parse("\n".join(["User-agent: *", *(f"{name}: {value}" for name, value in paths)]))
