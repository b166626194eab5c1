"""The project that crawls the site: written to a folder, and run from there as anybody's project is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy_plus.torture.site import Site

NAME = "torture"
PREFIX = f"{{{NAME}:{NAME}}}"
"""What all keys of the crawl begin with."""

MAIN = """from scrapy_plus import run

run()
"""

SPIDER = """from scrapy_plus import Request, Spider
from scrapy_plus.torture.site import Site

BASE = {base!r}
SITE = {site!r}


class TortureSpider(Spider):
    name = {name!r}

    def start_requests(self):
        for page, is_filtered in SITE.start():
            yield Request(BASE + page, filter=is_filtered)

    def parse(self, response):
        yield {{"page": response.url.rpartition("/")[2]}}
        yield from response.follow_all(css="a")
"""

SETTINGS: dict[str, Any] = {
    "PROJECT_NAME": NAME,
    "SPIDERS": ["spiders.TortureSpider"],
    "PIPELINES": ["scrapy_plus.pipelines.RedisPipeline"],
    "SCHEDULER_PERSIST": True,
    "SCHEDULER_QUEUE_CLASS": "priority",
    "CONCURRENT_REQUESTS": 8,
    "START_REQUESTS_BUFFER": 200,
    "LEASE_SECONDS": 2,
    "MAX_RETRY_TIMES": 10,
    "RETRY_BACKOFF_SECONDS": 0.2,
    "RETRY_BACKOFF_MAX_SECONDS": 1.0,
    "REDIS_RETRY_SECONDS": 60,
    "LOG_LEVEL": "INFO",
    "PANEL": False,
}
"""A short lease, so that what a dead process held is soon given back, and little concurrency, so that a crawl lasts."""


def write_project(folder: Path, site: Site, base: str, redis_url: str, settings: Mapping[str, Any]) -> None:
    """A project in `folder` that crawls the site at `base`; `settings` are above those that it has anyway."""
    folder.mkdir(parents=True, exist_ok=True)
    all_settings = {**SETTINGS, **settings, "REDIS_URL": redis_url}
    lines = [f"{name} = {value!r}\n" for name, value in all_settings.items()]
    (folder / "settings.py").write_text("".join(lines), "utf-8")
    (folder / "spiders.py").write_text(SPIDER.format(base=base, site=site, name=NAME), "utf-8")
    (folder / "main.py").write_text(MAIN, "utf-8")
