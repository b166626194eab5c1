"""A Redis that a person starts and ends: durable, in the project's folder, for all who have its address.

It has a folder of its own beside that of the project's embedded one, which belongs to the processes of a crawl.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis

from scrapy_plus.conf.redis_address import RedisAddress
from scrapy_plus.embedded.binary import find_binary
from scrapy_plus.embedded.places import Lock, data_folder, disk_errors
from scrapy_plus.errors import UsageError
from scrapy_plus.redis_client import OLDEST, make_client

POLL_SECONDS = 0.05
EVERYWHERE = ("0.0.0.0", "::", "*")


def serve(
    project_dir: Path, *, port: int, bind: str, password: str | None, on_ready: Callable[[RedisAddress], None]
) -> None:
    """Runs the server until SIGINT, SIGTERM or SIGHUP ends it; `on_ready` is told its address when it answers.

    Raises: UsageError in one line if it cannot be run, would be open to anybody, or ends by itself.
    """
    if password is None and not _is_of_this_machine(bind):
        raise UsageError(
            f"anybody who reaches {bind} could read and change what is kept there; give it a password (--password)"
        )
    data = data_folder(project_dir).with_name("redis-foreground")
    log = data / "redis.log"
    with disk_errors(data):
        data.mkdir(mode=0o700, exist_ok=True)
        log.touch(mode=0o600)
        began = log.stat().st_size
    with _signals() as is_ended:
        process = _start(_config(port, bind, password, data, log), data)
        try:
            if _answers(process, RedisAddress(_reached_at(bind), port, password=password), is_ended):
                on_ready(RedisAddress(socket.gethostname() if bind in EVERYWHERE else bind, port, password=password))
            while process.poll() is None and not is_ended():
                time.sleep(POLL_SECONDS)
        finally:
            time.sleep(POLL_SECONDS)  # Ctrl-C comes to both, and it may be the quicker one
            by_itself = process.poll() is not None and not is_ended()
            if process.poll() is None:
                process.terminate()
            process.wait()
    if by_itself:
        raise UsageError(f"the Redis ended: {_complaint(log, began, data)} ({log})")


def _is_of_this_machine(bind: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(bind).is_loopback
    return bind == "localhost"


def _reached_at(bind: str) -> str:
    return "127.0.0.1" if bind in EVERYWHERE else bind


def _config(port: int, bind: str, password: str | None, data: Path, log: Path) -> str:
    options = {
        "port": str(port),
        "bind": bind,
        "protected-mode": "yes",
        "daemonize": "no",
        "dir": str(data),
        "logfile": str(log),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    if password is not None:
        options["requirepass"] = password
    return "".join(f"{name} {_quoted(value)}\n" for name, value in options.items())


def _quoted(value: str) -> str:
    """As redis.conf writes a text; a line's end would begin another option."""
    return '"' + "".join(char if char.isprintable() and char not in '"\\' else _escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode())


def _start(config: str, data: Path) -> subprocess.Popen[bytes]:
    """The options go through a pipe: a password on the command line is seen by everybody, and a file would stay.

    It stays in the group of this process, so that who ends the group ends it; by Ctrl-C it ends in order, too.
    """
    binary = find_binary((7, 0) if (data / "appendonlydir").exists() else OLDEST)  # an older one would see no data
    lock = Lock(data / "server.lock")
    try:
        if not lock.take():
            raise UsageError(f"a Redis that keeps {data} runs already; end that one first")
        process = subprocess.Popen(
            [binary, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock.fd,),
            cwd=data,
        )
    except OSError as error:
        raise UsageError(f"the Redis did not start: {error}") from error
    finally:
        lock.close()
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(config.encode())
        process.stdin.close()
    return process


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """While inside, the signals that end a program are only noted; what is given answers whether one came."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda which, _: came.append(which)) for number in numbers}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _answers(process: subprocess.Popen[bytes], address: RedisAddress, is_ended: Callable[[], bool]) -> bool:
    """Waits until it answers, its data read; False if it, or the wish for it, ended before."""
    client = make_client(address)
    try:
        while process.poll() is None and not is_ended():
            with contextlib.suppress(redis.exceptions.RedisError, OSError):
                facts: Any = client.info("server")  # who listened there before is another
                if client.ping() and facts["process_id"] == process.pid:
                    return True
            time.sleep(POLL_SECONDS)
        return False
    finally:
        client.close()


def _complaint(log: Path, began: int, data: Path) -> str:
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = log.read_bytes()[began:].decode("utf-8", "replace").splitlines()
    said = [
        line.partition(" # ")[2] for line in lines if " # " in line and "oO0Oo" not in line and "WARNING" not in line
    ]
    said = [line for line in said if not line.startswith(("Redis version", "Valkey version", "Configuration loaded"))]
    if not said and not shutil.disk_usage(data).free:
        return "the disk is full"
    return "; ".join(said[-2:]) or "it does not say why"
