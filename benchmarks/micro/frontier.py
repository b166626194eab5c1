"""Microseconds of CPU that each verb of the frontier takes, a request: in memory, and by batches of 32 in Redis.

    python benchmarks/micro/frontier.py [REQUESTS]

Offers new requests and known ones, leases them, settles them. Redis's own CPU is told beside the client's.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha1

import redis

from scrapy_plus.frontier.base import Frontier, Page, Record
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.frontier.redis import RedisFrontier

BATCH = 32


def records(count: int) -> list[Record]:
    urls = [b"http://bookshop.example.org/catalogue/books/%016d" % number for number in range(count)]
    return [Record(sha1(url).digest(), "http://bookshop.example.org:80", b'1{"u":"%s"}' % url) for url in urls]


def measure(frontier: Frontier, count: int, server_cpu: Callable[[], float]) -> None:
    known = records(count)
    held = []

    def offer() -> None:
        for start in range(0, count, BATCH):
            frontier.offer(known[start : start + BATCH])

    def lease() -> None:
        while leases := frontier.lease("w", len(held), BATCH).leases:
            held.extend(leases)

    def ack() -> None:
        for start in range(0, count, BATCH):
            frontier.ack([Page(lease.id, lease.token) for lease in held[start : start + BATCH]])

    for name, act in {"offer, new": offer, "offer, known": offer, "lease": lease, "ack": ack}.items():
        spent, server = time.process_time(), server_cpu()
        act()
        spent, server = time.process_time() - spent, server_cpu() - server
        redis_part = f", Redis {server / count * 1e6:5.1f}" if server else ""
        print(f"  {name:14}{spent / count * 1e6:6.1f} us{redis_part}")
    assert len(held) == count


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    print(f"memory, {count:,} requests")
    measure(MemoryFrontier(), count, lambda: 0.0)
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", "0", "--unixsocket", f"{folder}/s", "--dir", folder, "--save", ""]
        server = subprocess.Popen([*command, "--appendonly", "yes"], stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(unix_socket_path=f"{folder}/s")
            for _ in range(200):
                try:
                    client.ping()
                    break
                except redis.exceptions.ConnectionError:
                    time.sleep(0.05)
            print(f"Redis {client.info('server')['redis_version']}, {count:,} requests, {BATCH} a call")

            def server_cpu() -> float:
                told = client.info("cpu")
                return float(told["used_cpu_user_main_thread"]) + float(told["used_cpu_sys_main_thread"])

            measure(RedisFrontier(client, "{bench:verbs}", lease_seconds=600), count, server_cpu)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
