"""`Engine()` without arguments: what a main.py that does not call run() gets."""

from __future__ import annotations

import sys
from typing import Any

from scrapy_plus import log
from scrapy_plus.conf.settings import active
from scrapy_plus.errors import UsageError
from scrapy_plus.terminal import Terminal
from scrapy_plus.wiring import engine_arguments


def project_engine() -> dict[str, Any]:
    """The arguments of an engine for the project at hand; a user's mistake is told in lines, with exit code 2."""
    try:
        settings = active()
        log.setup(settings.LOG_LEVEL, settings.LOG_FILE, settings.LOG_FORMAT, settings.LOG_DATEFORMAT)
        terminal = Terminal(panel=settings.PANEL, stats_seconds=settings.LOG_STATS_SECONDS)
        return engine_arguments(settings, observers=[terminal])
    except UsageError as error:
        print(f"{sys.argv[0] or 'Engine()'}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
