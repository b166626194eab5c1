"""The policies of the web beyond plain fetching, made as the settings say: a part of the wiring."""

from __future__ import annotations

from typing import Any

from scrapy_plus.conf.settings import Settings
from scrapy_plus.middlewares.meta_refresh import MetaRefresh


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
