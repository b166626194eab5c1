"""No framework: the same transport, lxml and a set, in as many greenlets; what is to be had at most."""

from __future__ import annotations

import scrapy_plus  # isort: skip

from tally import Tally

from scrapy_plus.bench.bare import crawl_bare
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.wiring import build_transport

tally = Tally("requests", "gevent", "lxml", "pycurl")
job = tally.job
overrides = {"CONCURRENT_REQUESTS": job["concurrency"], **job.get("settings", {})}
transport = build_transport(load_settings(None, overrides=overrides, environ={}))


def on_page(url: str, title: str | None) -> None:
    tally.page()
    tally.item(url)


crawl_bare(transport, [job["url"]], concurrency=job["concurrency"], on_page=on_page)
tally.tell(version=scrapy_plus.__version__)
