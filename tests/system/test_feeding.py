"""Crawls that other programs feed: real processes, a real Redis, entries of every kind, and kills in between."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.torture.actors import RedisProcess, SiteProcess, wait_until
from scrapy_plus.torture.oracle import stored_pages
from scrapy_plus.torture.site import Site
from tests.frontier.conftest import need_redis

PREFIX, KEY = "{fed:fed}", "fed:start_urls"
SPIDER = """
from scrapy_plus.spiders import RedisSpider


class Fed(RedisSpider):
    name = "fed"

    def parse(self, response):
        yield {"page": response.url.rpartition("/")[2]}
"""
SETTINGS: dict[str, Any] = {
    "PROJECT_NAME": "fed",
    "SPIDERS": ["spiders.Fed"],
    "PIPELINES": ["scrapy_plus.pipelines.RedisPipeline"],
    "SCHEDULER_PERSIST": True,
    "LEASE_SECONDS": 2,
    "MAX_IDLE_TIME_BEFORE_CLOSE": 2,
    "MAX_RETRY_TIMES": 10,
    "RETRY_BACKOFF_SECONDS": 0.1,
}


class Crawl:
    """A project with a spider that is fed, its site of 400 pages, and its Redis."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.redis = RedisProcess(need_redis(), folder)
        self.redis.start()
        self.site = SiteProcess(Site(400), folder)
        self.site.start()
        self.client = self.redis.client
        self.nodes: list[subprocess.Popen[str]] = []
        self.write()

    def write(self, **settings: Any) -> None:
        chosen = {**SETTINGS, "REDIS_URL": f"redis://127.0.0.1:{self.redis.port}/0", **settings}
        (self.folder / "settings.py").write_text("".join(f"{name} = {value!r}\n" for name, value in chosen.items()))
        (self.folder / "spiders.py").write_text(SPIDER)
        (self.folder / "main.py").write_text("from scrapy_plus import run\n\nrun()\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        log = (self.folder / f"log{len(self.nodes)}").open("w")
        with log:
            node = subprocess.Popen(
                [sys.executable, "main.py", *words], cwd=self.folder, stderr=log, stdout=subprocess.DEVNULL, text=True
            )
        self.nodes.append(node)
        return node

    def url(self, number: int) -> str:
        return f"{self.site.base}p{number}"

    def entry(self, number: int, **more: Any) -> str:
        return json.dumps({"url": self.url(number), "version": 1, **more})

    def wait(self, is_so: Any, seconds: float = 40.0) -> None:
        assert wait_until(is_so, seconds), self.logs()

    def end(self, node: subprocess.Popen[str]) -> int:
        self.wait(lambda: node.poll() is not None)
        return int(node.returncode)

    def logs(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self.folder.glob("log*")))

    @property
    def store(self) -> RedisFrontier:
        return RedisFrontier(self.client, PREFIX, joins=True)

    @property
    def done(self) -> int:
        value: Any = self.client.hget(f"{PREFIX}:meta", "done")
        return int(value or 0)

    def pages(self) -> Counter[str]:
        return stored_pages(self.store)

    def close(self) -> None:
        for node in self.nodes:
            if node.poll() is None:
                node.kill()
            node.wait(10)
        self.site.kill()
        self.redis.kill()


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    made = Crawl(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_what_is_put_in_while_it_runs_is_crawled_and_it_ends_when_nothing_comes_any_more(crawl, kind):
    push = {
        "list": lambda *entries: crawl.client.rpush(KEY, *entries),
        "set": lambda *entries: crawl.client.sadd(KEY, *entries),
        "zset": lambda *entries: crawl.client.zadd(KEY, dict.fromkeys(entries, 1.0)),
    }[kind]
    node = crawl.start()
    crawl.wait(lambda: crawl.client.exists(f"{PREFIX}:meta"))
    push(*[crawl.url(number) for number in range(150)])
    crawl.wait(lambda: crawl.done >= 150)
    push(*[crawl.entry(number) for number in range(100, 200)])
    assert crawl.end(node) == 0, crawl.logs()
    assert crawl.pages() == Counter({f"p{number}": 1 for number in range(200)})
    assert crawl.client.keys(f"*{KEY}*") == [] and crawl.store.audit() == []


def test_a_wrong_entry_is_a_dead_letter_with_its_bytes_and_the_others_are_crawled(crawl):
    wrong = [b"ftp://x/", b"{", b"\xff\xfe", b"123", b"[1]", b'{"url": 3}', b'{"url": "http://a.test/", "x": 1}', b""]
    crawl.client.rpush(KEY, crawl.url(1), *wrong, crawl.url(2))
    node = crawl.start()
    assert crawl.end(node) == 3, crawl.logs()
    assert crawl.pages() == Counter({"p1": 1, "p2": 1})
    letters, _ = crawl.store.dead_letters()
    assert all("an entry of the feed: " in letter.reason for letter in letters)
    assert sorted(base64.b64decode(json.loads(letter.payload[1:])["base64"]) for letter in letters) == sorted(wrong)


def test_kills_lose_no_entry_and_double_none(crawl):
    crawl.write(REDIS_START_URLS_BATCH_SIZE=20, CONCURRENT_REQUESTS=8)
    crawl.client.rpush(KEY, *[crawl.entry(number, dont_filter=number % 2 == 0) for number in range(400)])
    node = crawl.start()
    for level in (40, 120, 200, 280, 340):
        crawl.wait(lambda level=level: crawl.done >= level)
        os.kill(node.pid, signal.SIGKILL)
        node.wait()
        node = crawl.start()
    assert crawl.end(node) == 0, crawl.logs()
    assert crawl.pages() == Counter({f"p{number}": 1 for number in range(400)})
    assert crawl.store.audit() == []


def test_any_node_takes_from_the_feed_when_the_one_that_did_is_dead(crawl):
    master, slave = crawl.start("master"), crawl.start("slave")
    crawl.wait(lambda: len(crawl.store.nodes()) == 2 if crawl.client.exists(f"{PREFIX}:meta") else False)
    crawl.client.rpush(KEY, *[crawl.url(number) for number in range(50)])
    crawl.wait(lambda: crawl.done == 50)
    master.kill()
    master.wait()
    crawl.client.rpush(KEY, *[crawl.url(number) for number in range(50, 100)])
    assert crawl.end(slave) == 0, crawl.logs()
    assert crawl.pages() == Counter({f"p{number}": 1 for number in range(100)})


def test_a_finished_crawl_that_is_started_again_goes_on_with_what_came_meanwhile(crawl):
    crawl.client.rpush(KEY, crawl.url(1))
    assert crawl.end(crawl.start()) == 0
    crawl.client.rpush(KEY, crawl.url(1), crawl.url(2))
    assert crawl.end(crawl.start()) == 0, crawl.logs()
    assert crawl.pages() == Counter({"p1": 1, "p2": 1})


def test_a_node_that_waits_for_entries_sends_at_most_five_commands_a_second(crawl):
    crawl.write(MAX_IDLE_TIME_BEFORE_CLOSE=0, LEASE_SECONDS=10)
    crawl.start()
    crawl.wait(lambda: bool(crawl.client.exists(f"{PREFIX}:meta")))
    gevent.sleep(2.0)

    def scripts() -> int:
        found: Any = crawl.client.info("commandstats")
        return sum(one["calls"] for name, one in found.items() if name.startswith("cmdstat_eval"))

    before = scripts()
    gevent.sleep(6.0)
    sent = scripts() - before
    assert 0 < sent <= 30, sent


def test_a_key_that_is_no_feed_ends_the_crawl_with_a_line(crawl):
    crawl.client.set(KEY, "x")
    assert crawl.end(crawl.start()) == 1
    assert f"the feed '{KEY}' is a string; a feed is a list, a set or a sorted set" in crawl.logs()


def test_in_memory_there_is_no_feed_and_it_says_what_to_set(crawl):
    crawl.write(SCHEDULER_PERSIST=False)
    assert crawl.end(crawl.start()) == 2
    assert f"the feed '{KEY}' of fed needs a crawl that is kept in Redis; set SCHEDULER_PERSIST = True" in crawl.logs()
