"""One of the crawls that are compared, in a process of its own: python -m scrapy_plus.bench.crawler JOB.

JOB is JSON: kind (fetched, bare, memory, redis), urls, seconds, concurrency, transport and redis. It prints what
it did as a line of JSON, and stops by itself after its seconds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import deque
from typing import Any

import gevent

from scrapy_plus.bench.bare import MAX_BYTES, TIMEOUT_SECONDS, crawl_bare
from scrapy_plus.conf.settings import Settings, load_settings
from scrapy_plus.core.spider import Spider
from scrapy_plus.errors import CloseSpider
from scrapy_plus.http.request import Request
from scrapy_plus.log import setup
from scrapy_plus.transport.base import Transport
from scrapy_plus.wiring import build_engine, build_transport

WARM_UP_PAGES = 200
"""What is not counted: connections are opened, regular expressions compiled."""


class Count:
    """Pages from the first that is counted until the time is over, and the CPU that they took."""

    def __init__(self, seconds: float) -> None:
        self.pages = -WARM_UP_PAGES
        self.seconds = seconds
        self._from = self._to = (0.0, 0.0)

    def page(self) -> None:
        self.pages += 1
        if self.pages == 0:
            self._from = (time.perf_counter(), time.process_time())
        self._to = (time.perf_counter(), time.process_time())

    def is_enough(self) -> bool:
        return self.pages > 0 and self._to[0] - self._from[0] >= self.seconds

    def told(self) -> dict[str, float]:
        seconds, cpu_seconds = (to - start for start, to in zip(self._from, self._to, strict=True))
        switches = resource.getrusage(resource.RUSAGE_SELF)
        crowded = switches.ru_nivcsw / max(1, switches.ru_nivcsw + switches.ru_nvcsw)
        return {"pages": max(0, self.pages), "seconds": seconds, "cpu_seconds": cpu_seconds, "crowded": crowded}


def fetch(transport: Transport, urls: list[str], concurrency: int, count: Count) -> None:
    """Nothing is parsed: the same pages over and over."""
    waiting = deque(urls)

    def work() -> None:
        while not count.is_enough():
            waiting.rotate()
            transport.fetch(Request(waiting[0]), timeout_seconds=TIMEOUT_SECONDS, max_bytes=MAX_BYTES)
            count.page()

    gevent.joinall([gevent.spawn(work) for _ in range(concurrency)], raise_error=True)


def crawl(settings: Settings) -> None:
    setup("ERROR", None, settings.LOG_FORMAT, settings.LOG_DATEFORMAT)
    code = build_engine(settings).start()
    if code:
        raise SystemExit(code)


def settings_of(job: dict[str, Any], count: Count) -> Settings:
    class Pages(Spider):
        name = "bench"
        start_urls = job["urls"]

        def parse(self, response: Any) -> Any:
            if count.is_enough():
                raise CloseSpider("enough")
            yield {"url": response.url, "title": response.xpath("//title/text()").get()}
            yield from response.follow_all(xpath="//a/@href")

    class Counting:
        def process_item(self, item: Any, spider: Spider) -> Any:
            count.page()
            return item

    overrides = {
        "SPIDERS": [Pages],
        "PIPELINES": [Counting],
        "CONCURRENT_REQUESTS": job["concurrency"],
        "TRANSPORT": job["transport"],
        "ROBOTSTXT_OBEY": False,
        "SHUTDOWN_SECONDS": 1,
    }
    if job["kind"] == "redis":
        overrides |= {"SCHEDULER_PERSIST": True, "REDIS_URL": job["redis"], "PROJECT_NAME": job["project"]}
    return load_settings(None, overrides=overrides, environ={})


def main() -> None:
    job = json.loads(sys.argv[1])
    count = Count(job["seconds"])
    settings = settings_of(job, count)
    if job["kind"] in ("memory", "redis"):
        crawl(settings)
    else:
        transport = build_transport(settings)
        if job["kind"] == "fetched":
            fetch(transport, job["urls"], job["concurrency"], count)
        else:
            on_page = lambda url, title: count.page()  # noqa: E731
            crawl_bare(
                transport, job["urls"], concurrency=job["concurrency"], on_page=on_page, is_enough=count.is_enough
            )
    print(json.dumps(count.told() | {"transport": transport_name(settings)}), flush=True)


def transport_name(settings: Settings) -> str:
    transport = build_transport(settings)
    transport.close()
    return "libcurl" if "Curl" in type(transport).__name__ else "requests"


if __name__ == "__main__":
    main()
