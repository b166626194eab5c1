"""scrapy_plus: a crawler framework that loses nothing.

Importing it makes the standard library cooperative (gevent), so it must be the first import of a program.
"""

from scrapy_plus.patching import patch

patch()

from scrapy_plus.core.engine import Engine  # noqa: E402
from scrapy_plus.core.outcome import Failure  # noqa: E402
from scrapy_plus.core.pipeline import Pipeline  # noqa: E402
from scrapy_plus.core.spider import Spider  # noqa: E402
from scrapy_plus.errors import (  # noqa: E402
    CloseSpider,
    DontCloseSpider,
    DropItem,
    DropRequest,
    IgnoreRequest,
    StopCrawl,
)
from scrapy_plus.http.links import LinkExtractor  # noqa: E402
from scrapy_plus.http.request import FormRequest, JsonRequest, Request  # noqa: E402
from scrapy_plus.http.response import Response  # noqa: E402
from scrapy_plus.item import Item  # noqa: E402
from scrapy_plus.middlewares.downloader_middlewares import DownloaderMiddleware  # noqa: E402
from scrapy_plus.middlewares.spider_middlewares import SpiderMiddleware  # noqa: E402
from scrapy_plus.spiders.crawl import CrawlSpider, Rule  # noqa: E402
from scrapy_plus.spiders.sitemap import SitemapSpider  # noqa: E402
from scrapy_plus.start import project_engine, run  # noqa: E402
from scrapy_plus.transport.fake import FakeTransport  # noqa: E402
from scrapy_plus.version import __version__  # noqa: E402
from scrapy_plus.wiring import CrawlResult, crawl  # noqa: E402

Engine.from_project = project_engine

__all__ = [
    "CloseSpider",
    "CrawlResult",
    "CrawlSpider",
    "DontCloseSpider",
    "DownloaderMiddleware",
    "DropItem",
    "DropRequest",
    "Engine",
    "Failure",
    "FakeTransport",
    "FormRequest",
    "IgnoreRequest",
    "Item",
    "JsonRequest",
    "LinkExtractor",
    "Pipeline",
    "Request",
    "Response",
    "Rule",
    "SitemapSpider",
    "Spider",
    "SpiderMiddleware",
    "StopCrawl",
    "__version__",
    "crawl",
    "run",
]
