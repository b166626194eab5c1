"""The processes of a torture: a Redis, the site, the master, the slaves. Each is ended by its own id, and only so."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_plus import version
from scrapy_plus.stores import NODE
from scrapy_plus.torture.site import Site

START_SECONDS = 30.0
END_SECONDS = 20.0
ROOM_BYTES = 2048
AWAY = (redis.exceptions.RedisError, OSError)
"""What a Redis that is being tortured may answer."""


def free_port() -> int:
    """A port that nobody listens to at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(is_so: Callable[[], bool], seconds: float, *, every_seconds: float = 0.02) -> bool:
    """Whether it became so in time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(every_seconds)
    return True


def is_ours(pid: int, folder: Path) -> bool:
    """Whether a process of this id lives and is one of the project in `folder`: ids are given out again."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
        return state != "Z" and Path(f"/proc/{pid}/cwd").resolve() == folder.resolve()
    except OSError:
        return False


def end_all_of(folder: Path) -> None:
    """Kills every process of the project in `folder`: workers too, whose supervisor has died."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_ours(int(entry.name), folder):
            with suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings in it, and with this very framework on the path."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_PLUS_")}
    root = str(Path(version.__file__).resolve().parent.parent)
    return {**own, "PYTHONPATH": os.pathsep.join(filter(None, (root, own.get("PYTHONPATH")))), **more}


class Actor:
    """One process at a time, started again and again."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.is_frozen = False

    def spawn(self, command: list[str], **options: Any) -> None:
        self.started_at = time.monotonic()
        self.is_frozen = False
        with self.log.open("ab") as log:
            output = options.pop("stdout", log)
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=log, start_new_session=True, **options
            )

    @property
    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def freeze(self) -> None:
        self.is_frozen = True
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.is_frozen = False
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """At once, as the power cord does."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait(END_SECONDS)


class Node(Actor):
    """A master or a slave of the project in `folder`; each start is a new node, named here if it `is_named`."""

    def __init__(self, name: str, folder: Path, words: list[str], *, is_named: bool = True) -> None:
        super().__init__(name, folder / f"{name}.log")
        self._folder = folder
        self._command = [sys.executable, "main.py", *words]
        self._is_named = is_named
        self.worker = ""

    def start(self) -> None:
        self.worker = uuid.uuid4().hex
        named = {NODE: self.worker} if self._is_named else {}
        told = environment(PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1", **named)
        self.spawn(self._command, cwd=self._folder, env=told)


class SiteProcess(Actor):
    """The site, served by a process of its own."""

    def __init__(self, site: Site, folder: Path) -> None:
        super().__init__("site", folder / "site.log")
        self._site = site
        self._fetches = folder / "fetches.txt"
        self.base = ""

    def start(self) -> None:
        words = [f"--{name}={getattr(self._site, name)}" for name in ("pages", "seeds", "unfiltered")]
        command = [sys.executable, "-m", "scrapy_plus.torture.site", f"--log={self._fetches}", *words]
        self.spawn(command, stdout=subprocess.PIPE, env=environment())
        assert self.process is not None and self.process.stdout is not None
        self.base = f"http://127.0.0.1:{int(self.process.stdout.readline())}/"

    def fetches(self) -> list[str]:
        """The names of the pages in the order in which they were asked for, each as often as it was."""
        return self._fetches.read_text("ascii").split() if self._fetches.exists() else []


class RedisProcess(Actor):
    """A redis-server with an append-only log in `folder`; `fsync` is everysec or always."""

    def __init__(self, binary: str, folder: Path, *, fsync: str = "everysec", name: str = "redis") -> None:
        super().__init__(name, folder / f"{name}.log")
        self.folder = folder / f"{name}-data"
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.fsync = fsync
        self._binary = binary
        self.client = redis.Redis(port=self.port, socket_timeout=10, retry=Retry(NoBackoff(), 0), protocol=2)

    def start(self, *, replica_of: int = 0) -> None:
        command = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", self.fsync]
        if replica_of:
            command += ["--replicaof", f"127.0.0.1 {replica_of}", "--repl-diskless-sync-delay", "0"]
        # Python ignores SIGXFSZ, and so shall the server: a file that may not grow is a disk that is full.
        self.spawn(command, restore_signals=False)
        if not wait_until(self.answers, START_SECONDS):
            raise RuntimeError(f"{self.name} did not start; its log ends with: {self.log.read_text()[-1000:]}")

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except AWAY:
            return False

    def info(self, section: str) -> dict[str, Any]:
        found: Any = self.client.info(section)
        return found

    def tear(self, size: int) -> int:
        """Cuts the last bytes off the log of a dead server, as a power failure does; how many."""
        log = self.last_log()
        if log is None:
            return 0
        length = log.stat().st_size
        os.truncate(log, max(0, length - size))
        return min(size, length)

    def last_log(self) -> Path | None:
        """The file that is appended to: the one of the highest number, which sorts as a number."""
        logs = [*self.folder.glob("appendonlydir/*.incr.aof"), *self.folder.glob("appendonly.aof")]
        return max(logs, key=lambda path: int(re.sub(r"\D", "", path.name) or 0), default=None)

    def fill_disk(self, is_full: bool) -> None:
        """No file of the server may grow any more, or all may again."""
        assert self.process is not None
        log = self.last_log()
        size = log.stat().st_size + ROOM_BYTES if log is not None and is_full else resource.RLIM_INFINITY
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
