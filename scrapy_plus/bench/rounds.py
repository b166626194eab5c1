"""The crawls of `scrapy-plus bench`, one after the other, in turns, with a site and a Redis of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from statistics import median
from typing import Any
from urllib.request import ProxyHandler, build_opener

import redis
from lxml import etree

from scrapy_plus.bench import pages
from scrapy_plus.bench.verdict import Figure
from scrapy_plus.conf.redis_address import RedisAddress, parse_redis_url
from scrapy_plus.embedded.binary import find_binary
from scrapy_plus.errors import UsageError
from scrapy_plus.redis_client import check_server, make_client

ROUNDS = 2
START_SECONDS = 1.0
"""What a crawl takes beside its time: a Python starts, connections are opened."""
LEAST_SECONDS = 0.3
PARSE_SECONDS = 0.3
PATIENCE_SECONDS = 60.0
_opener = build_opener(ProxyHandler({}))


@contextmanager
def site(page_bytes: int) -> Iterator[str]:
    """The pages, served by a process that ends with the context; gives their origin."""
    command = [sys.executable, pages.__file__, str(page_bytes)]
    with _ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"


@contextmanager
def redis_of(url: str | None) -> Iterator[tuple[str, redis.Redis]]:
    """The Redis that is named, else one of our own, gone afterwards. Raises UsageError if it cannot be used."""
    if url:
        client = make_client(parse_redis_url(url))
        check_server(client)
        yield url, client
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        socket = str(Path(folder) / "redis.sock")
        options = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--appendonly", "yes", "--save", ""]
        with _ending(subprocess.Popen([find_binary(), *options], stdout=subprocess.DEVNULL)):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not Path(socket).exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield f"unix://{socket}", make_client(RedisAddress(socket_path=socket))


@contextmanager
def _ending(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Bench:
    """What is measured, and with what. `redis_url` None is a Redis of our own."""

    def __init__(
        self, *, seconds: float, concurrency: int, page_bytes: int, transport: str, redis_url: str | None
    ) -> None:
        self.concurrency = concurrency
        self.page_bytes = page_bytes
        self.transport = transport
        self.notes: list[str] = []
        self._seconds = seconds
        self._redis_url = redis_url
        self._project = f"scrapy-plus-bench-{token_hex(4)}"

    def run(self) -> list[Figure]:
        """The figures of each kind of crawl; `notes` tell what could not be measured. Takes about its `seconds`."""
        with ExitStack() as stack:
            origin = stack.enter_context(site(self.page_bytes))
            kinds = ["fetched", "bare", "memory"]
            url, client = "", None
            try:
                url, client = stack.enter_context(redis_of(self._redis_url))
                kinds.append("redis")
            except UsageError as error:
                if self._redis_url:
                    raise
                self.notes.append(f"not measured with Redis: {error}")
            each = max(LEAST_SECONDS, self._seconds / ROUNDS / len(kinds) - START_SECONDS)
            runs = [self._crawl(kind, origin, url, client, each) for _ in range(ROUNDS) for kind in kinds]
            return [_median([run for run in runs if run.kind == kind]) for kind in kinds]

    def _crawl(self, kind: str, origin: str, url: str, client: redis.Redis | None, seconds: float) -> Figure:
        project = f"{self._project}-{token_hex(2)}"
        job = {
            "kind": kind,
            "urls": [origin + path for path in pages.start_paths()],
            "seconds": seconds,
            "concurrency": self.concurrency,
            "transport": self.transport,
            "redis": url,
            "project": project,
        }
        server_cpu, redis_cpu, started = _server_cpu(origin), _redis_cpu(client), time.monotonic()
        told = _told([sys.executable, "-m", "scrapy_plus.bench.crawler", json.dumps(job)], seconds)
        # Both serve this crawl alone, and it starts before it counts: a share of all its time would be too small.
        wall = min(time.monotonic() - started, max(told["seconds"], LEAST_SECONDS))
        self.transport_used = str(told["transport"])
        figure = Figure(
            kind,
            told["pages"] / told["seconds"],
            told["cpu_seconds"] / told["pages"] * 1000,
            told["cpu_seconds"] / told["seconds"],
            min(1.0, (_server_cpu(origin) - server_cpu) / wall),
            min(1.0, (_redis_cpu(client) - redis_cpu) / wall) if kind == "redis" else 0.0,
            told["crowded"],
        )
        if client is not None and kind == "redis":
            _forget(client, project)
        return figure


def _told(command: list[str], seconds: float) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + PATIENCE_SECONDS, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UsageError(f"a crawl ended with {done.returncode}: {said}")
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if not told["pages"] or not told["seconds"]:
        raise UsageError("too few pages to measure; give it more --seconds")
    return told


def _server_cpu(origin: str) -> float:
    with _opener.open(f"{origin}/cpu", timeout=PATIENCE_SECONDS) as answer:
        return float(answer.read())


def _redis_cpu(client: redis.Redis | None) -> float:
    if client is None:
        return 0.0
    told = client.info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


def _forget(client: redis.Redis, project: str) -> None:
    """Takes away what the crawl left, in somebody's Redis too."""
    for key in client.scan_iter(match=f"{{{project}:*", count=1000):
        client.unlink(key)


def _median(runs: list[Figure]) -> Figure:
    values = ([getattr(run, name) for run in runs] for name in Figure.FIELDS)
    return Figure(runs[0].kind, *(median(value) for value in values))


def parse_ms(page_bytes: int) -> float:
    """CPU milliseconds that lxml takes for a page: its tree, its links, its title."""
    filling = pages.FILLING * (page_bytes // len(pages.FILLING))
    body = pages.page(1000, 1 << 60, filling)
    links, count = etree.XPath("//a/@href", smart_strings=False), 0
    until = time.process_time() + PARSE_SECONDS
    while time.process_time() < until:
        links(etree.fromstring(body, etree.HTMLParser(encoding="utf-8")))
        count += 1
    return PARSE_SECONDS / count * 1000
