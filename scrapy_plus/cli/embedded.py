"""`Engine()` without arguments: what a main.py that does not call run() gets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy_plus import log
from scrapy_plus.cli.base import tell
from scrapy_plus.conf.settings import active
from scrapy_plus.terminal import Terminal
from scrapy_plus.wiring import engine_arguments


def project_engine() -> dict[str, Any]:
    """The arguments of an engine for the project at hand; mistakes are told as by the commands, and end the program."""
    with _telling():
        settings = active()
        log.setup(settings.LOG_LEVEL, settings.LOG_FILE, settings.LOG_FORMAT, settings.LOG_DATEFORMAT)
        terminal = Terminal(panel=settings.PANEL, stats_seconds=settings.LOG_STATS_SECONDS)
        arguments = engine_arguments(settings, observers=[terminal])
        return {**arguments, "make_crawls": _telling()(arguments["make_crawls"])}


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise SystemExit(tell(error, sys.argv[0] or "Engine()")) from None
