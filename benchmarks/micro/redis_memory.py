"""Bytes that Redis takes for a queued plain GET with a 60-character URL, over all keys, and for a seen URL.

    python benchmarks/micro/redis_memory.py [COUNT]

Starts a redis-server of its own. `queued` is the growth of used_memory over COUNT offers, a request; `seen` is the same
when they are done. Prints MEMORY USAGE of the largest keys as well, and `queued=… seen=…` at the end.
"""

from __future__ import annotations

import scrapy_plus  # isort: skip

import subprocess
import sys
import tempfile
import time

import redis

from scrapy_plus.frontier.base import Page, Record
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.codec import encode
from scrapy_plus.http.request import Request
from scrapy_plus.http.url import site
from scrapy_plus.rules.fingerprint import fingerprint

BATCH = 500


def records(start: int, count: int) -> list[Record]:
    requests = [Request(f"http://bookshop.example.org/catalogue/books/{n:016d}") for n in range(start, start + count)]
    return [Record(fingerprint(request), site(request.url), encode(request)) for request in requests]


def settled_memory(client: redis.Redis) -> int:
    """used_memory once rehashing has ended: hash tables grow in steps, and hold two tables while they do."""
    for _ in range(20):
        client.ping()
        time.sleep(0.05)
    return int(client.info("memory")["used_memory"])


def show_keys(client: redis.Redis, frontier: RedisFrontier, count: int) -> None:
    keys = frontier.keys
    for name in (keys.req, keys.queue(1), keys.meta):
        size = client.memory_usage(name, samples=1000) or 0
        print(f"  {name:<24} {size / count:8.1f} bytes a request (MEMORY USAGE)")
    size, split, epoch = (int(value) for value in client.hmget(keys.meta, ["size", "split", "epoch"]))
    buckets = size + split
    sample = [keys.bucket(epoch, number) for number in range(0, buckets, max(1, buckets // 2000))]
    each = sum(client.memory_usage(name) or 0 for name in sample) / len(sample)
    encodings = {client.object("encoding", name) for name in sample if client.exists(name)}
    print(f"  seen: {buckets:,} buckets      {each * buckets / count:8.1f} bytes a URL (MEMORY USAGE), {encodings}")


def measure(client: redis.Redis, count: int) -> tuple[float, float]:
    frontier = RedisFrontier(client, "{bench:books}", seen_cache=2, lease_seconds=3600)
    before = settled_memory(client)
    for start in range(0, count, BATCH):
        frontier.offer(records(start, min(BATCH, count - start)))
    queued = (settled_memory(client) - before) / count
    print(f"{count:,} queued: {queued:.1f} bytes each (used_memory)")
    show_keys(client, frontier, count)
    base = 0
    while leases := frontier.lease("w", base, BATCH).leases:
        base += len(leases)
        frontier.ack([Page(lease.id, lease.token) for lease in leases])
    seen = (settled_memory(client) - before) / count
    print(f"{count:,} done: {seen:.1f} bytes each (used_memory)")
    show_keys(client, frontier, count)
    return queued, seen


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/redis.sock"
        command = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(unix_socket_path=socket)
            while not _answers(client):
                time.sleep(0.05)
            print(f"redis {client.info('server')['redis_version']}, {scrapy_plus.__version__}")
            queued, seen = measure(client, count)
            print(f"queued={queued:.0f} seen={seen:.1f}")
        finally:
            server.terminate()
            server.wait()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False


if __name__ == "__main__":
    main()
