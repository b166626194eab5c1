"""Scrapy, alone or with scrapy-redis: links by lxml, which is faster than its selectors."""

from __future__ import annotations

from urllib.parse import urljoin

import scrapy
from lxml import html
from scrapy.crawler import CrawlerProcess
from tally import Tally

tally = Tally("Scrapy", "Twisted")
job = tally.job
if job["store"] == "redis":
    tally.packages += ("scrapy-redis", "redis", "hiredis")
REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "REDIS_URL": job["redis"],
    "SCHEDULER_PERSIST": False,
}


class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        yield scrapy.Request(job["url"])  # start_urls would fetch it twice: it is not filtered there

    def parse(self, response):
        tally.page()
        root = html.fromstring(response.body)
        yield {"url": response.url, "title": root.findtext(".//title")}
        for href in root.xpath("//a/@href"):
            yield scrapy.Request(urljoin(response.url, href))


class Count:
    def process_item(self, item):
        tally.item(item["url"])
        return item


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": job["concurrency"],
        "CONCURRENT_REQUESTS_PER_DOMAIN": job["concurrency"],
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "WARNING",
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "ITEM_PIPELINES": {Count: 1},
        **(REDIS if job["store"] == "redis" else {}),
    }
)
process.crawl(Pages)
process.start()
tally.tell()
