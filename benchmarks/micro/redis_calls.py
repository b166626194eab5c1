"""How often a whole crawl calls Redis: every command of one process with 32 workers, from the first seed to the end.

    python benchmarks/micro/redis_calls.py [PAGES] [--limit N] [--redis-server PATH]

Crawls the site of speed.py (PAGES pages, default 5,000, ten links each) with a redis-server of its own, and prints the
calls by name, the answers that the server sent, those for each page, and microseconds of Redis's CPU a page.
With --limit at most N pages of the site are on the wire at a time, over all processes: then every free slot is told of.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import argparse
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from speed import CONCURRENCY, PagesSpider

from scrapy_plus import Engine
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.wiring import engine_arguments


def crawl(url: str, redis_url: str, pages: int, limit: int) -> None:
    class AllPages(PagesSpider):
        start_urls = [url]

    overrides = {
        "SPIDERS": [AllPages],
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": limit,
        "PIPELINES": ["scrapy_plus.pipelines.RedisPipeline"],
        "PROJECT_NAME": "calls",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": redis_url,
        "LOG_LEVEL": "ERROR",
    }
    engine = Engine(**engine_arguments(load_settings(None, overrides=overrides, environ={})))
    assert engine.start() == 0
    assert engine.snapshot().crawls[0].stats["item_scraped_count"] == pages


def sent(client: redis.Redis) -> dict[str, int]:
    """Commands by name, as the server counted them; what scripts do inside it is counted too, so only calls of them."""
    stats: dict[str, Any] = client.info("commandstats")
    outside = ("evalsha", "eval", "script|load", "hello", "client|setinfo", "info", "ping")
    return {name: stats[f"cmdstat_{name}"]["calls"] for name in outside if f"cmdstat_{name}" in stats}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("pages", nargs="?", type=int, default=5_000)
    options.add_argument("--limit", type=int, default=0)
    options.add_argument("--redis-server", default="redis-server")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = str(Path(folder) / "redis.sock")
        command = [given.redis_server, "--port", "0", "--unixsocket", socket, "--dir", folder, "--appendonly", "yes"]
        server = subprocess.Popen([*command, "--save", ""], stdout=subprocess.DEVNULL)
        serve = [sys.executable, str(Path(__file__).with_name("speed.py")), "serve", str(given.pages)]
        site = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        try:
            assert site.stdout is not None
            url = f"http://127.0.0.1:{site.stdout.readline().strip()}/0"
            client = redis.Redis(unix_socket_path=socket, retry=Retry(ConstantBackoff(0.1), 50))
            version = client.info("server")["redis_version"]
            cpu, answers = client.info("cpu")["used_cpu_user"], client.info("stats")["total_writes_processed"]
            crawl(url, f"unix://{socket}", given.pages, given.limit)
            answers = client.info("stats")["total_writes_processed"] - answers - 1
            calls = sent(client)
            cpu = client.info("cpu")["used_cpu_user"] - cpu
        finally:
            site.kill()
            server.kill()
    print(f"Redis {version}, Python {platform.python_version()}, {CONCURRENCY} workers, {given.pages:,} pages")
    print(f"{answers} answers, calls of scripts and questions: {calls}")
    print(f"{answers / given.pages:.3f} round trips a page, {1e6 * cpu / given.pages:.0f} us of Redis CPU a page")


if __name__ == "__main__":
    main()
