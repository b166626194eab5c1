"""What a site's robots.txt allows, as RFC 9309 reads it: pure rules, without the fetching."""

from __future__ import annotations

import re

from protego import Protego

MAX_BYTES = 500 << 10
"""So much of a robots.txt is read, and the rest passed over (RFC 9309 §2.5 asks for no less)."""
LIFETIME_SECONDS = 24 * 3600.0
"""A robots.txt is asked for again when it is older (RFC 9309 §2.4)."""
MAX_REDIRECTS = 5
_PRODUCT = re.compile(r"[A-Za-z_-]+").match


def product_of(user_agent: str) -> str:
    """The product token that robots.txt calls a crawler by: "scrapyplus" for "scrapyplus/1.0 (+url)"."""
    found = _PRODUCT(user_agent.strip())
    return found[0].lower() if found else "*"


def text_of(body: bytes) -> str:
    """A robots.txt as text, however it is encoded and however long; without what stands behind the limit."""
    text = body[:MAX_BYTES].decode("utf-8", "replace").lstrip("\ufeff")
    return text.rpartition("\n")[0] if len(body) > MAX_BYTES else text


class Robots:
    """The rules of one robots.txt for the crawler with this product token."""

    def __init__(self, text: str, product: str) -> None:
        self._rules = Protego.parse(text) if text.strip() else None
        self._product = product

    def allows(self, url: str) -> bool:
        """Whether this URL of the site may be asked for. Source: RFC 9309 §2.2."""
        return self._rules is None or bool(self._rules.can_fetch(url, self._product))

    def delay_seconds(self, *, limit_seconds: float) -> float:
        """The Crawl-delay, 0 if there is none; longer ones than the limit are cut: mistakes more often than wishes."""
        delay = None if self._rules is None else self._rules.crawl_delay(self._product)
        return min(limit_seconds, max(0.0, float(delay))) if delay else 0.0

    @property
    def sitemaps(self) -> list[str]:
        """The sitemaps that it names."""
        return [] if self._rules is None else list(self._rules.sitemaps)
