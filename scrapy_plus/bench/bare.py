"""A crawl without a framework: a transport, lxml, a set. What the framework costs is what it takes beyond this."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import gevent
from gevent.event import Event
from gevent.queue import SimpleQueue
from lxml import etree

from scrapy_plus.http.request import Request
from scrapy_plus.transport.base import Transport

TIMEOUT_SECONDS = 60.0
MAX_BYTES = 64 << 20
_links: Any = etree.XPath("//a/@href", smart_strings=False)


def crawl_bare(
    transport: Transport,
    urls: Iterable[str],
    *,
    concurrency: int,
    on_page: Callable[[str, str | None], object],
    is_enough: Callable[[], bool] = lambda: False,
) -> None:
    """Crawls one site from `urls`, of which there must be one, until nothing is left or `is_enough` after a page.

    Its pages must have absolute paths as links: a site of ours, where nothing is to be resolved or made canonical.
    """
    waiting: SimpleQueue[str] = SimpleQueue()
    seen = set()
    origin = ""
    open_pages = 0
    done = Event()
    parser = etree.HTMLParser(encoding="utf-8")

    for url in urls:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        seen.add(url[len(origin) :])
        waiting.put(url)
        open_pages += 1

    def work() -> None:
        nonlocal open_pages
        while True:
            url = waiting.get()
            response = transport.fetch(Request(url), timeout_seconds=TIMEOUT_SECONDS, max_bytes=MAX_BYTES)
            root = etree.fromstring(response.body, parser)
            on_page(url, root.findtext("head/title"))
            for href in _links(root):
                if href not in seen:
                    seen.add(href)
                    open_pages += 1
                    waiting.put(origin + href)
            open_pages -= 1
            if not open_pages or is_enough():
                done.set()

    workers = [gevent.spawn(work) for _ in range(concurrency)]
    try:
        while not done.wait(0.5):
            for worker in workers:
                if worker.ready():
                    worker.get()  # its failure is that of the crawl
    finally:
        gevent.killall(workers)
