"""Crawlee for Python: HttpCrawler on impit with lxml, its fastest; everything in memory."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from crawlee import ConcurrencySettings
from crawlee.crawlers import HttpCrawler
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient
from lxml import html
from tally import Tally

tally = Tally("crawlee", "impit")
job = tally.job
logging.basicConfig(level=logging.WARNING)


async def main() -> None:
    crawler = HttpCrawler(
        http_client=ImpitHttpClient(),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=job["concurrency"],
            max_concurrency=job["concurrency"],
            desired_concurrency=job["concurrency"],
        ),
        use_session_pool=False,
        retry_on_blocked=False,
        configure_logging=False,
        status_message_logging_interval=timedelta(hours=1),
    )

    @crawler.router.default_handler
    async def handle(context) -> None:
        tally.page()
        root = html.fromstring(await context.http_response.read())
        url = context.request.url
        await context.push_data({"url": url, "title": root.findtext(".//title")})
        tally.item(url)
        await context.add_requests([job["origin"] + href for href in root.xpath("//a/@href")])

    await crawler.run([job["url"]])


asyncio.run(main())
tally.tell()
