"""The policies of the web beyond plain fetching, made as the settings say: a part of the wiring."""

from __future__ import annotations

from typing import Any

from scrapy_plus.conf.settings import Settings
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.middlewares.cookies import Cookies
from scrapy_plus.middlewares.meta_refresh import MetaRefresh
from scrapy_plus.middlewares.shared_jars import SharedJars


def outer(settings: Settings) -> list[Any]:
    """Those that see an answer when the built-in policies are done with it."""
    if not (settings.REDIRECT_ENABLED and settings.METAREFRESH_ENABLED):
        return []
    return [
        MetaRefresh(
            settings.REDIRECT_MAX_TIMES,
            max_delay_seconds=settings.METAREFRESH_MAXDELAY,
            ignored_tags=settings.METAREFRESH_IGNORE_TAGS,
            priority_adjust=settings.REDIRECT_PRIORITY_ADJUST,
        )
    ]


def inner(settings: Settings, frontier: Frontier) -> list[Any]:
    """Those next to the network: they hear every answer, and what they send with a request is not carried on."""
    has_store = bool(settings.ROLE or settings.SCHEDULER_PERSIST)
    is_shared = settings.COOKIES_SHARED and settings.COOKIES_ENABLED and has_store
    return [
        Cookies(
            settings.COOKIES_ENABLED,
            jars=SharedJars(frontier) if is_shared else None,
            debug=settings.COOKIES_DEBUG,
        )
    ]
