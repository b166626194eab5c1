"""An engine in the middle of a crawl, as the terminal sees one."""

from __future__ import annotations

from typing import Any

from scrapy_plus.core.engine import EngineSnapshot
from scrapy_plus.core.outcome import CrawlSnapshot
from scrapy_plus.core.spider import Spider
from scrapy_plus.core.stats import ErrorGroup, Stats
from scrapy_plus.frontier.base import Counts, DeadLetter, SiteFacts
from scrapy_plus.http.codec import encode
from scrapy_plus.http.request import Request
from scrapy_plus.rules.pace import Pace


def crawl(name: str = "shop", **fields: Any) -> CrawlSnapshot:
    given: dict[str, Any] = {
        "counts": Counts(), "stats": {}, "errors": [], "sites": [], "finish_reason": None, "dead": [], **fields,
    }  # fmt: skip
    return CrawlSnapshot(spider=name, **given)


BUSY = {
    "counts": Counts(ready=5678, leased=16, delayed=2, dead=1, done=1234, seen=6931),
    "stats": {
        "downloader/response_count": 1300,
        "downloader/response_bytes": 15_200_000,
        "downloader/response_status_count/200": 1200,
        "downloader/response_status_count/404": 63,
        "downloader/response_status_count/503": 37,
        "downloader/exception_count": 4,
        "downloader/exception_type_count/DownloadTimeout": 4,
        "item_scraped_count": 1000,
        "item_stored_count/books.jsonl": 1000,
        "retry/count": 41,
        "retry/reason_count/RetryStatus": 37,
        "dupefilter/filtered": 2500,
        "log_count/WARNING": 1,
        "log_count/INFO": 9,
    },
    "errors": [ErrorGroup("HTTP 404", 63, "http://me:secret@shop.test/gone\x1b[2J")],
    "sites": [("http://shop.test:80", SiteFacts(Pace(delay_seconds=0.5, limit=4), ready=5000, in_flight=4))],
}


def dead_letter(url: str, reason: str = "DownloadTimeout: 60 s") -> DeadLetter:
    return DeadLetter(b"x" * 20, encode(Request(url)), reason, 4, 0, 0, 0.0)


class FakeCrawl:
    def __init__(self, name: str) -> None:
        self.spider = Spider(name)
        self.stats = Stats()


class FakeEngine:
    """Answers `snapshot` with what it was given; of its crawls the terminal asks statistics and spider."""

    def __init__(self, *crawls: CrawlSnapshot, elapsed_seconds: float = 30.0) -> None:
        self.crawls = [FakeCrawl(one.spider) for one in crawls]
        self.asked = 0
        self._crawls = list(crawls)
        self._elapsed_seconds = elapsed_seconds

    def snapshot(self) -> EngineSnapshot:
        self.asked += 1
        return EngineSnapshot(self._elapsed_seconds, "running", 16, 12, self._crawls)
