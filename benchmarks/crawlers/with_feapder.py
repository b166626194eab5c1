"""feapder: AirSpider in memory, Spider with Redis; sessions on and 32 threads, which its settings advise for speed."""

from __future__ import annotations

import os

from tally import Tally

tally = Tally("feapder", "requests")
job = tally.job
os.environ["LOG_LEVEL"] = "WARNING"
os.environ["REDISDB_IP_PORTS"] = job["redis"].split("//")[1].split("/")[0]

import feapder  # noqa: E402  it reads the environment as it is imported
from feapder.pipelines import BasePipeline  # noqa: E402
from lxml import html  # noqa: E402

IN_REDIS, IN_A_SET = 3, 4
"""Filters of feapder: the default one for requests, and the fastest one."""
SETTINGS = {
    "SPIDER_THREAD_COUNT": job["concurrency"],
    "COLLECTOR_TASK_COUNT": job["concurrency"],
    "USE_SESSION": True,
    "RANDOM_HEADERS": False,
    "PROXY_ENABLE": False,
    "REQUEST_FILTER_ENABLE": True,
    "ITEM_PIPELINES": ["__main__.Count"],
}


class Count(BasePipeline):
    def save_items(self, table, items):
        for item in items:
            tally.item(item["url"])
        return True


class PageItem(feapder.Item):
    table_name = "pages"


class Parser:
    def start_requests(self):
        yield feapder.Request(job["url"])

    def parse(self, request, response):
        tally.page()
        root = html.fromstring(response.content)
        item = PageItem()
        item.url, item.title = request.url, root.findtext(".//title")
        yield item
        for href in root.xpath("//a/@href"):
            yield feapder.Request(job["origin"] + href)


class InMemory(Parser, feapder.AirSpider):
    __custom_setting__ = {**SETTINGS, "REQUEST_FILTER_SETTING": {"filter_type": IN_A_SET}}


class InRedis(Parser, feapder.Spider):
    __custom_setting__ = {**SETTINGS, "REQUEST_FILTER_SETTING": {"filter_type": IN_REDIS, "expire_time": 2592000}}


spider = InRedis(redis_key="pages") if job["store"] == "redis" else InMemory()
spider.start()
spider.join()
tally.tell()
