"""scrapy_plus as it comes: retries, redirects, cookies, statistics, paces and pipelines are on."""

from __future__ import annotations

import scrapy_plus  # isort: skip

import sys
from typing import Any

from tally import Tally

from scrapy_plus import Spider
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.log import setup
from scrapy_plus.wiring import build_engine

tally = Tally("requests", "gevent", "lxml", "pycurl")
job = tally.job
REDIS = {"SCHEDULER_PERSIST": True, "REDIS_URL": job["redis"], "PROJECT_NAME": "bench"}


class Pages(Spider):
    name = "pages"
    start_urls = job.get("start_urls") or [job["url"]]

    def parse(self, response):
        tally.page()
        yield {"url": response.url, "title": response.xpath("//title/text()").get()}
        yield from response.follow_all(xpath="//a/@href")


class Count:
    def process_item(self, item: Any, spider: Spider) -> Any:
        tally.item(item["url"])
        return item


settings = load_settings(
    None,
    overrides={
        "SPIDERS": [Pages],
        "PIPELINES": [Count],
        "CONCURRENT_REQUESTS": job["concurrency"],
        "LOG_LEVEL": "WARNING",
        "ROBOTSTXT_OBEY": False,
        **(REDIS if job["store"] == "redis" else {}),
        **job.get("settings", {}),
    },
    environ={},
)
setup("WARNING", None, settings.LOG_FORMAT, settings.LOG_DATEFORMAT)
engine = build_engine(settings)
code = engine.start()
tally.tell(version=scrapy_plus.__version__, exit_code=code)
sys.exit(code)
