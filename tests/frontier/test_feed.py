"""A feed's entries are moved, never popped: whoever dies between the steps, another takes in the same batch."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import redis

import scrapy_plus  # noqa: F401  the gevent patch comes before redis
from scrapy_plus.errors import UsageError
from scrapy_plus.frontier.redis_feed import RedisFeed

ENTRIES = [b"u%d" % number for number in range(2500)]
PUSH = {
    "list": lambda client, key: client.rpush(key, *ENTRIES),
    "set": lambda client, key: client.sadd(key, *ENTRIES),
    "zset": lambda client, key: client.zadd(key, {entry: number for number, entry in enumerate(ENTRIES)}),
}
pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server")


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            for _ in range(200):
                if path.exists():
                    break
                time.sleep(0.05)
            yield redis.Redis(unix_socket_path=str(path))
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture(params=sorted(PUSH))
def feed(request: Any, server: Any) -> RedisFeed:
    server.flushdb()
    feed = RedisFeed(server, "quotes:start_urls")
    PUSH[request.param](server, feed.key)
    return feed


def test_all_entries_come_once_and_no_key_stays(feed: RedisFeed, server: Any):
    got: list[bytes] = []
    for number in range(10):
        if (batch := feed.move(b"t%d" % number, 5000)) is None:
            break
        assert len(batch.entries) <= 1000 and feed.remove(batch)
        got += batch.entries
    assert sorted(got) == sorted(ENTRIES) and server.keys() == []


def test_a_batch_that_was_not_taken_in_comes_again_to_whoever_asks_under_its_first_token(feed: RedisFeed):
    batch = feed.move(b"dead", 7)
    assert batch is not None and len(batch.entries) == 7
    assert feed.move(b"heir", 100) == batch


def test_a_late_node_removes_no_batch_but_its_own(feed: RedisFeed):
    first = feed.move(b"late", 7)
    assert first is not None and feed.remove(first)
    second = feed.move(b"heir", 7)
    assert not feed.remove(first) and feed.move(b"heir", 7) == second


def test_a_key_that_is_no_feed_is_refused_and_stays(server: Any):
    server.flushdb()
    server.hset("h", "a", "1")
    with pytest.raises(UsageError, match="the feed 'h' is a hash; a feed is a list, a set or a sorted set"):
        RedisFeed(server, "h").move(b"t", 1)
    assert server.keys() == [b"h"]
