"""How often a whole crawl calls Redis."""

from __future__ import annotations

from typing import Any

import gevent

from scrapy_plus import Engine, Spider
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.transport.base import Transport
from scrapy_plus.wiring import engine_arguments
from tests.frontier.conftest import own_redis, redis_client  # noqa: F401

PAGES = 1000


class TreeTransport(Transport):
    """Page n leads to the pages 10n+1 to 10n+10, and takes about as long as a near server."""

    network = False

    def fetch(self, request: Request, **_: Any) -> Response:
        gevent.sleep(0.002)
        number = int(request.url.rpartition("/")[2])
        linked = range(10 * number + 1, min(10 * number + 11, PAGES))
        body = "".join(f'<a href="/{one}">{one}</a>' for one in linked)
        return Response(request.url, body=body.encode(), request=request)


class TreeSpider(Spider):
    name = "tree"
    start_urls = ["http://tree.test/0"]

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")


def scripts_run(client: Any) -> int:
    stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


def test_a_crawl_of_an_unlimited_site_makes_at_most_a_call_for_ten_pages(own_redis, redis_client, tmp_path):  # noqa: F811
    overrides = {
        "SPIDERS": [TreeSpider],
        "PIPELINES": ["scrapy_plus.pipelines.RedisPipeline"],
        "CONCURRENT_REQUESTS": 32,
        "PROJECT_NAME": "calls",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": f"unix://{own_redis.socket}",
    }
    before = scripts_run(redis_client)
    settings = load_settings(tmp_path, overrides=overrides, environ={})
    engine = Engine(**engine_arguments(settings, make_transport=lambda _: TreeTransport()))
    assert engine.start() == 0
    assert engine.snapshot().crawls[0].counts.done == PAGES
    assert (scripts_run(redis_client) - before) / PAGES <= 0.1
