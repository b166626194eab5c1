"""Tiny crawls: one to five pages, two to four nodes that come at any time; little more than a beginning and an end.

The nodes are engines of this process, with a network that is only played: so there can be thousands of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gevent
from gevent.pool import Pool

from scrapy_plus.conf.settings import load_settings
from scrapy_plus.core.engine import Engine
from scrapy_plus.core.spider import Spider
from scrapy_plus.frontier.keys import Keys, crawl_prefix
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.pipelines.redis_items import RedisPipeline
from scrapy_plus.torture.actors import RedisProcess
from scrapy_plus.torture.tally import Tally
from scrapy_plus.transport.fake import FakeTransport
from scrapy_plus.wiring import engine_arguments

PROJECT = "tiny"
BASE = "http://tiny.test/"
MOST_PAGES, MOST_SLAVES = 5, 3
LATE_SECONDS = 0.3
PAGE_SECONDS = 0.03
HANG_SECONDS = 60.0
AT_ONCE = 8


class TinySpider(Spider):
    name = "tiny"
    start_urls = [f"{BASE}0"]  # noqa: RUF012  as spiders are written

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"page": response.url.rpartition("/")[2]}
        yield from response.follow_all(css="a")


@dataclass(frozen=True, slots=True)
class TinyCrawl:
    """One crawl: whom each page is linked from, and when each node starts; the first is the master."""

    number: int
    parents: tuple[int, ...]
    starts: tuple[float, ...]
    seconds: tuple[float, ...]

    @classmethod
    def thrown(cls, number: int, dice: random.Random) -> TinyCrawl:
        pages = dice.randint(1, MOST_PAGES)
        return cls(
            number,
            tuple(dice.randrange(page) for page in range(1, pages)),
            tuple(dice.uniform(0, LATE_SECONDS) for _ in range(1 + dice.randint(1, MOST_SLAVES))),
            tuple(dice.uniform(0, PAGE_SECONDS) for _ in range(pages)),
        )

    @property
    def prefix(self) -> str:
        return crawl_prefix(PROJECT, str(TinySpider.name), str(self.number))

    def transport(self) -> FakeTransport:
        return FakeTransport({f"{BASE}{page}": self._answer(page) for page in range(len(self.seconds))})

    def _answer(self, page: int) -> Callable[[Request], Response]:
        links = "".join(f'<a href="/{child}">' for child, parent in enumerate(self.parents, 1) if parent == page)

        def answer(request: Request) -> Response:
            gevent.sleep(self.seconds[page])
            return Response(request.url, body=links.encode() or b" ")

        return answer


def play_tiny_crawls(count: int, dice: random.Random, server: RedisProcess, tally: Tally) -> None:
    """Plays them, some at a time; what is wrong with one is a problem of the tally."""
    pool = Pool(AT_ONCE)
    with _failures_noted(tally):
        for number in range(count):
            pool.spawn(_play, TinyCrawl.thrown(number, dice), server, tally)
        pool.join()
    tally.events["tiny_crawl"] += count


@contextmanager
def _failures_noted(tally: Tally) -> Iterator[None]:
    """A greenlet that fails, of any node, is a problem, though its node may end well."""
    hub = gevent.get_hub()
    handle = hub.handle_error

    def note(context: object, kind: type, value: BaseException, trace: object) -> None:
        if not issubclass(kind, gevent.GreenletExit):
            tally.problems.append(f"a tiny crawl: {context!r} failed with {value!r}")
        handle(context, kind, value, trace)

    hub.handle_error = note
    try:
        yield
    finally:
        hub.handle_error = handle


def _play(crawl: TinyCrawl, server: RedisProcess, tally: Tally) -> None:
    where = f"tiny crawl {crawl.number}"
    nodes = [
        gevent.spawn_later(at, _run_node, crawl, server, "slave" if number else "master")
        for number, at in enumerate(crawl.starts)
    ]
    gevent.joinall(nodes, timeout=HANG_SECONDS)
    for node in nodes:
        if not node.ready():
            tally.problems.append(f"{where}: a node does not end")
        elif node.exception is not None:
            tally.problems.append(f"{where}: {node.exception!r}")
        else:
            code, was_finished = node.value
            tally.exit_codes[code] += 1
            tally.problems += [f"{where}: ended with code {code}"] if code else []
            tally.problems += [] if was_finished else [f"{where}: a node ended before the crawl"]
    gevent.killall(nodes)
    _judge(crawl, RedisFrontier(server.client, crawl.prefix), tally, where)


def _run_node(crawl: TinyCrawl, server: RedisProcess, role: str) -> tuple[int, bool]:
    """The exit code, and whether the crawl was finished then."""
    overrides = {
        "SPIDERS": [TinySpider],
        "PIPELINES": [RedisPipeline],
        "ROLE": role,
        "PROJECT_NAME": PROJECT,
        "JOB": str(crawl.number),
        "REDIS_URL": f"redis://127.0.0.1:{server.port}/0",
        "CONCURRENT_REQUESTS": 2,
        "SCHEDULER_PERSIST": True,  # so that there is something left to look at
    }
    settings = load_settings(None, overrides=overrides, environ={})
    code = Engine(**engine_arguments(settings, make_transport=lambda _: crawl.transport())).start()
    state: Any = server.client.hget(Keys(crawl.prefix).meta, "state")
    return code, state == b"finished"


def _judge(crawl: TinyCrawl, frontier: RedisFrontier, tally: Tally, where: str) -> None:
    pages = sorted(json.loads(item)["page"] for item in frontier.items("", 100)[0])
    expected = [str(page) for page in range(len(crawl.seconds))]
    tally.pages += len(expected)
    tally.once += sum(1 for page in expected if pages.count(page) == 1)
    tally.lost += len(set(expected) - set(pages))
    tally.doubled += sum(1 for page in set(pages) if pages.count(page) > 1)
    if pages != expected:
        tally.problems.append(f"{where}: items of the pages {' '.join(pages)}, not of {' '.join(expected)}")
    tally.audit += [f"{where}: {line}" for line in frontier.audit()]
    frontier.close()
