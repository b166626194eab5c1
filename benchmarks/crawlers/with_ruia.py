"""ruia: it has no filter, so the spider keeps a set; uvloop, which it takes where it is installed.

One worker: two share one list of tasks, and what one of them adds while the other waits is thrown away.
"""

from __future__ import annotations

import logging

from lxml import html
from ruia import Item, Spider, TextField
from tally import Tally

tally = Tally("ruia", "aiohttp", "uvloop")
job = tally.job
seen = {job["url"]}
logging.disable(logging.INFO)


class PageItem(Item):
    title = TextField(css_select="title")


class Pages(Spider):
    name = "pages"
    start_urls = [job["url"]]
    concurrency = job["concurrency"]
    worker_numbers = job.get("workers", 1)

    async def parse(self, response):
        tally.page()
        root = html.fromstring(await response.read())
        item = PageItem()
        item.results = {"url": response.url, "title": root.findtext(".//title")}
        yield item
        for href in root.xpath("//a/@href"):
            url = job["origin"] + href
            if url not in seen:
                seen.add(url)
                yield self.request(url=url, callback=self.parse)

    async def process_item(self, item):
        tally.item(item.results["url"])


Pages.start()
tally.tell()
