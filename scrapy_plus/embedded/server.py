"""The server of one project: how it is started, taken over and ended."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis

from scrapy_plus.conf.redis_address import RedisAddress
from scrapy_plus.embedded.binary import find_binary
from scrapy_plus.embedded.places import Lock, disk_errors, is_listened_to, socket_path, wait_until
from scrapy_plus.errors import UsageError
from scrapy_plus.redis_client import OLDEST, make_client

_log = logging.getLogger("scrapy_plus.embedded")

TURN_SECONDS = 600.0
"""How long one waits for others that start or stop the server; reading a large log takes its time."""
STOP_SECONDS = 30.0
END_SECONDS = 10.0
REMAINS_SECONDS = 2.0
_SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.02
_AWAY = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
# Lines of the level of warnings that a healthy start has as well.
_USUAL = re.compile("oO0Oo|Redis version|Valkey version|Configuration loaded|Server initialized|WARNING|User requested")


class Server:
    """The server of one data folder. Whoever calls start, stop or bring_up holds `start.lock`."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.socket = socket_path(data)
        self.first_socket = self.socket.with_suffix(".new")
        self.log = data / "redis.log"

    @contextmanager
    def turn(self, seconds: float = TURN_SECONDS) -> Iterator[bool]:
        """Holds `start.lock`; answers False if others did not give it up in time."""
        lock = Lock(self.data / "start.lock")
        try:
            yield wait_until(lock.take, seconds)
        finally:
            lock.close()

    def is_running(self) -> bool:
        lock = Lock(self.data / "server.lock")
        try:
            return not lock.take(shared=True)
        finally:
            lock.close()

    def is_reachable(self) -> bool:
        return self.is_running() and is_listened_to(self.socket)

    def client(self, path: Path) -> redis.Redis:
        return make_client(RedisAddress(socket_path=str(path)))

    def bring_up(self) -> bool:
        """Sees to it that a server listens; whether one had to be started."""
        if self.is_reachable():
            return False
        if self.is_running():
            if wait_until(lambda: is_listened_to(self.first_socket), 1.0):
                self._make_ready(has_log=True)  # who started it was killed before it was ready
                return False
            self._end_unreachable()
        self.end_without_folder()
        self._start()
        return True

    # -- starting -----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        has_manifest = (self.data / "appendonlydir").exists()
        has_log = has_manifest or (self.data / "appendonly.aof").exists()
        binary = find_binary((7, 0) if has_manifest else OLDEST)  # an older one would see no data, and begin anew
        with disk_errors(self.data):
            self._tidy()
            began = self._log_size()
        self._run(binary)
        self._refuse_disk_without_locks()
        self._make_ready(has_log=has_log, began=began)
        _log.info("started %s for %s", binary, self.data)

    def _tidy(self) -> None:
        """Takes away what a server that was killed left behind, and keeps its log of events small."""
        half_written = [*self.data.glob("temp-*"), *self.data.glob("appendonlydir/temp-*")]
        for path in (self.socket, self.first_socket, *half_written):
            path.unlink(missing_ok=True)
        if self._log_size() > 1 << 20:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _run(self, binary: str) -> None:
        """Starts the server as a daemon: nobody's child, in a session of its own, where Ctrl-C does not reach it."""
        lock = Lock(self.data / "server.lock")
        try:
            if not lock.take():
                raise UsageError(f"another Redis has just begun to use {self.data}; start again")
            done = subprocess.run(
                [binary, *self._options()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(lock.fd,),
                start_new_session=True,
                cwd=self.data,
                timeout=_SILENT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"the crawl's Redis did not start: {error}") from error
        finally:
            lock.close()
        if done.returncode:
            said = " ".join(done.stdout.decode("utf-8", "replace").split())
            raise UsageError(f"the crawl's Redis did not start: {said or self._complaint(0)} ({binary})")

    def _options(self) -> list[str]:
        options = {
            "daemonize": "yes",
            "port": "0",
            "protected-mode": "yes",
            "unixsocket": str(self.first_socket),
            "unixsocketperm": "700",
            "dir": str(self.data),
            "logfile": str(self.log),
            "pidfile": str(self.data / "redis.pid"),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "aof-load-truncated": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        return [part for name, value in options.items() for part in (f"--{name}", value)]

    def _refuse_disk_without_locks(self) -> None:
        if not self.is_running() and wait_until(lambda: is_listened_to(self.first_socket), 1.0):
            self.ask_to_end(self.first_socket)
            raise UsageError(f"{self.data} is on a disk without locks (flock); move the project, or set REDIS_URL")

    def _make_ready(self, *, has_log: bool, began: int = 0) -> None:
        """Waits for the data, lets the log be written anew, and gives the socket its name; else ends the server."""
        client = self.client(self.first_socket)
        try:
            self._await(client, "loading", "reads its log")
            if has_log:
                self._rewrite(client, began)
            self.first_socket.rename(self.socket)
        except BaseException as error:
            complaint = self._complaint(began)
            self._end_unreachable()
            self.first_socket.unlink(missing_ok=True)
            if isinstance(error, _AWAY):
                raise UsageError(f"the crawl's Redis did not start: {complaint}") from error
            raise
        finally:
            client.close()

    def _rewrite(self, client: redis.Redis, began: int) -> None:
        try:
            client.bgrewriteaof()
        except redis.exceptions.ResponseError as error:
            if "already in progress" not in str(error):
                raise UsageError(f"the crawl's Redis cannot write its log anew: {error} ({self.log})") from error
        self._await(client, "aof_rewrite_scheduled", "is about to write its log anew")
        facts = self._await(client, "aof_rewrite_in_progress", "writes its log anew")
        if facts.get("aof_last_bgrewrite_status") != "ok":
            raise UsageError(f"the crawl's Redis cannot write its log anew: {self._complaint(began)}")

    def _await(self, client: redis.Redis, flag: str, doing: str) -> dict[str, Any]:
        """Waits until the server is no longer about it; raises _AWAY if it ended, or was silent for a minute."""
        heard = told = time.monotonic()
        while True:
            try:
                facts: Any = client.info("persistence")
                heard = time.monotonic()
                if not facts.get(flag):
                    return dict(facts)
            except _AWAY:
                if not self.is_running() or time.monotonic() - heard > _SILENT_SECONDS:
                    raise
            if time.monotonic() - told > 10:
                told = time.monotonic()
                _log.info("the Redis in %s still %s", self.data, doing)
            time.sleep(_POLL_SECONDS)

    # -- ending -------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the server, its log flushed; leaves it to the next start if it does not end in time."""
        self.ask_to_end()
        if wait_until(lambda: not self.is_running(), STOP_SECONDS):
            self.socket.unlink(missing_ok=True)
        else:
            _log.warning("the Redis in %s does not end; the next start takes it over", self.data)

    def ask_to_end(self, path: Path | None = None) -> None:
        client = self.client(path or self.socket)
        try:
            client.execute_command("SHUTDOWN", "NOSAVE")  # no snapshot; the log is flushed in any case
        except _AWAY:
            pass  # that is its answer
        except redis.exceptions.RedisError as error:
            _log.warning("the Redis in %s refuses to end: %s", self.data, error)
        finally:
            client.close()

    def end_without_folder(self) -> None:
        """Ends what listens there for a folder that was removed: it has nothing left to keep, for anybody."""
        if is_listened_to(self.socket):
            self.ask_to_end()
            wait_until(lambda: not is_listened_to(self.socket), STOP_SECONDS)
        self.socket.unlink(missing_ok=True)

    def _end_unreachable(self) -> None:
        """Ends a server that nobody can reach any more, since its socket was removed; its data is in its log."""
        if is_listened_to(self.first_socket):
            self.ask_to_end(self.first_socket)
        # What remains of a killed server, the child that wrote the log anew, ends by itself within a second or so.
        if wait_until(lambda: not self.is_running(), REMAINS_SECONDS):
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._holders():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            if wait_until(lambda: not self.is_running(), END_SECONDS):
                return
        raise UsageError(
            f"a Redis that cannot be reached from here holds {self.data}, maybe in another container; "
            "end it, or name one for both in REDIS_URL"
        )

    def _holders(self) -> list[int]:
        """The servers that have `server.lock` open, where the system tells (/proc)."""
        lock = (self.data / "server.lock").stat()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_server = (process / "comm").read_text("utf-8").startswith(("redis", "valkey"))
                if is_server and any(os.path.samestat(os.stat(fd), lock) for fd in (process / "fd").iterdir()):
                    found.append(int(process.name))
        return found

    # -- what it said -------------------------------------------------------------------------------------------------

    def _log_size(self) -> int:
        with suppress(FileNotFoundError):
            return self.log.stat().st_size
        return 0

    def _complaint(self, began: int) -> str:
        """The last warnings of the server's log, from that byte on; in one line."""
        lines: list[str] = []
        with suppress(OSError):
            lines = self.log.read_bytes()[began:].decode("utf-8", "replace").splitlines()
        warnings = [line.partition(" # ")[2] for line in lines if " # " in line and not _USUAL.search(line)]
        if not warnings and not shutil.disk_usage(self.data).free:
            warnings = ["the disk is full"]
        return f"{'; '.join(warnings[-2:]) or 'it does not say why'} ({self.log})"
