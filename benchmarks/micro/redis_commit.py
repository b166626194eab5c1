"""What a page costs Redis: 20 links of which 5 are new, one item, 32 pages at a time.

    python benchmarks/micro/redis_commit.py [PAGES] [--redis-server PATH]

Starts a redis-server of its own (appendonly, everysec). Prints, for a process that remembers what is seen and for one
that does not: microseconds of Redis's CPU a page, round trips a page, and pages a second of one client.
"""

from __future__ import annotations

import scrapy_plus  # isort: skip

import argparse
import subprocess
import tempfile
import time
from hashlib import sha1

import redis

from scrapy_plus.frontier.base import Ask, Lease, Page, Record
from scrapy_plus.frontier.redis import RedisFrontier

WORKERS, LINKS, NEW = 32, 20, 5
SITE = "http://bookshop.example.org:80"
NAVIGATION = 200
"""Pages that all pages link to."""


def record(number: int) -> Record:
    url = f"http://bookshop.example.org/catalogue/books/{number:016d}"
    return Record(sha1(url.encode()).digest(), SITE, b'1{"u":"%s"}' % url.encode())


class Site:
    """Each page links to pages that were met before and to five new ones."""

    def __init__(self) -> None:
        self.known = [record(number) for number in range(NAVIGATION)]
        self.next = NAVIGATION

    def page(self, lease: Lease) -> Page:
        new = [record(self.next + number) for number in range(NEW)]
        self.next += NEW
        old = [self.known[(self.next * 7 + number) % NAVIGATION] for number in range(LINKS - NEW)]
        return Page(lease.id, lease.token, [*old, *new], [b'{"title": "a book"}' * 5], counters={"pages": 1})


def crawl(client: redis.Redis, pages: int, *, seen_cache: int) -> str:
    frontier = RedisFrontier(client, f"{{bench:{seen_cache}}}", seen_cache=seen_cache, lease_seconds=600)
    site, base, done = Site(), 0, 0
    frontier.offer(site.known)
    leases = frontier.lease("w", base, WORKERS).leases
    trips, cpu, started = frontier.server.round_trips, cpu_seconds(client), time.perf_counter()
    while done < pages:
        base += len(leases)
        done += len(leases)
        answer = frontier.commit(pages=[site.page(lease) for lease in leases], ask=Ask("w", base, WORKERS))
        leases = answer.lease.leases if answer.lease else []
    seconds = time.perf_counter() - started
    cpu, trips = cpu_seconds(client) - cpu, frontier.server.round_trips - trips
    return f"redis_us={cpu / done * 1e6:.0f} round_trips={trips / done:.3f} pages_per_second={done / seconds:,.0f}"


def cpu_seconds(client: redis.Redis) -> float:
    info = client.info("cpu")
    return float(info["used_cpu_user_main_thread"]) + float(info["used_cpu_sys_main_thread"])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("pages", type=int, nargs="?", default=30_000)
    arguments.add_argument("--redis-server", default="redis-server")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/redis.sock"
        command = [given.redis_server, "--port", "0", "--unixsocket", socket, "--dir", folder, "--appendonly", "yes"]
        server = subprocess.Popen([*command, "--save", ""], stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(unix_socket_path=socket)
            for _ in range(200):
                try:
                    client.ping()
                    break
                except redis.exceptions.ConnectionError:
                    time.sleep(0.05)
            print(f"redis {client.info('server')['redis_version']}, {WORKERS} workers, {given.pages:,} pages")
            print("remembers what is seen: ", crawl(client, given.pages, seen_cache=100_000))
            print("sends every link:       ", crawl(client, given.pages, seen_cache=0))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    assert scrapy_plus.__version__
    main()
