"""One round: a crawl from its first process to the exit of its last, with disturbances in between."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent

from scrapy_plus.core.engine import EXIT_USAGE
from scrapy_plus.frontier.keys import Keys
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.stores import NODE
from scrapy_plus.torture.actors import AWAY, END_SECONDS, Node, RedisProcess, SiteProcess, is_ours, wait_until
from scrapy_plus.torture.oracle import judge
from scrapy_plus.torture.project import PREFIX, SETTINGS, write_project
from scrapy_plus.torture.proxy import Proxy
from scrapy_plus.torture.site import Site
from scrapy_plus.torture.tally import Tally

LOOK_SECONDS = 0.05
STALL_SECONDS = 60.0
EXIT_SECONDS = 45.0
YOUNG_SECONDS = 3.0
FOLLOW_SECONDS = 30.0
FINISHED = b"finished"
_GIVEN_BACK = re.compile(r"gave back (\d+) requests of silent workers, buried (\d+)")
_REFUSED = "was given to another worker meanwhile"


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: how many slaves, how many of them with `workers` processes; by way of a proxy; with a replica."""

    binary: str
    slaves: int = 4
    supervised: int = 1
    workers: int = 2
    fsync: str = "everysec"
    is_proxied: bool = False
    has_replica: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def lease_seconds(self) -> float:
        return float(self.settings.get("LEASE_SECONDS", SETTINGS["LEASE_SECONDS"]))


class Stage:
    """The processes of one round in `folder`. `crawl` lets them work until the crawl is finished."""

    def __init__(self, folder: Path, site: Site, cast: Cast, tally: Tally, dice: random.Random) -> None:
        self.cast = cast
        self.tally = tally
        self.dice = dice
        self.where = f"round {tally.rounds + 1}"
        self.redis = RedisProcess(cast.binary, folder, fsync=cast.fsync)
        self.replica = RedisProcess(cast.binary, folder, fsync=cast.fsync, name="replica") if cast.has_replica else None
        self.proxy = Proxy(self.redis.port) if cast.is_proxied or cast.has_replica else None
        self.has_rolled_back = self.was_torn = False
        self.redis_events = 0
        self.redis_broke_at = 0.0
        self._site = site
        self._folder = folder
        self._site_process = SiteProcess(site, folder)
        self._keys = Keys(PREFIX)
        self.master = Node("master", folder, ["master"], is_named=False)
        self.slaves = [self._slave(number) for number in range(1, cast.slaves + 1)]
        self.orphans: set[int] = set()
        self._done, self._moved_at, self._acked_at = 0, 0.0, 0.0

    def _slave(self, number: int) -> Node:
        is_supervised = number > self.cast.slaves - self.cast.supervised
        words = ["slave", "--workers", str(self.cast.workers)] if is_supervised else ["slave"]
        return Node(f"slave{number}", self._folder, words, is_named=not is_supervised)

    @property
    def nodes(self) -> list[Node]:
        return [self.master, *self.slaves]

    # -- begin and end ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Stage:
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        return self

    def _open(self) -> None:
        self.redis.start()
        if self.replica is not None:
            self.replica.start(replica_of=self.redis.port)
            wait_until(self.is_followed, FOLLOW_SECONDS)
        port = self.redis.port if self.proxy is None else self.proxy.start()
        self._site_process.start()
        url = f"redis://127.0.0.1:{port}/0"
        write_project(self._folder, self._site, self._site_process.base, url, self.cast.settings)
        for node in self.dice.sample(self.nodes, len(self.nodes)):  # who is there first shall not matter
            node.start()

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        for pid in self.all_workers() | self.orphans:
            if pid in self.orphans and not is_ours(pid, self._folder):
                continue
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for actor in (*self.nodes, self._site_process, self.redis, self.replica):
            if actor is not None:
                actor.kill()
        if self.proxy is not None:
            self.proxy.stop()

    def redis_breaks(self) -> None:
        """To be called whenever Redis is broken on purpose."""
        self.redis_events += 1
        self.redis_broke_at = time.monotonic()

    # -- the crawl ----------------------------------------------------------------------------------------------------

    def crawl(self, disturb: Callable[[Stage], float | None], until: float) -> None:
        """Lets it go on to its end, at most until that time; `disturb` answers how long to leave it in peace then."""
        self._moved_at = time.monotonic()
        peace_until = None
        while not self._is_over(until):
            self._look_after_nodes()
            now = time.monotonic()
            if peace_until is None and self._done:
                started_at = min(node.started_at for node in self.slaves)
                self.tally.first_acks.append(now - started_at)
                peace_until = now
            if peace_until is not None and now >= peace_until:
                pause = disturb(self)
                peace_until = float("inf") if pause is None else time.monotonic() + pause
            gevent.sleep(LOOK_SECONDS)
        self._end()

    def _is_over(self, until: float) -> bool:
        state, done = self._state()
        now = time.monotonic()
        if done != self._done:
            self._done, self._moved_at, self._acked_at = done, now, now
        if state == FINISHED:
            return True
        if now - self._moved_at > STALL_SECONDS or now > until:
            why = "is out of time" if now > until else f"stands still since {STALL_SECONDS:.0f} s"
            self.tally.problems.append(f"{self.where}: the crawl {why}: {self._done} pages done")
            return True
        return False

    def _state(self) -> tuple[bytes | None, int]:
        try:
            found: Any = self.redis.client.hmget(self._keys.meta, ["state", "done"])
        except AWAY:
            return None, self._done
        return found[0], int(found[1] or 0)

    def _look_after_nodes(self) -> None:
        """Who has ended though the crawl has not is started again: a store that was rolled back needs all of them."""
        for node in self.nodes:
            if node.exit_code is None:
                continue
            state, _ = self._state()
            if state in (FINISHED, None):
                continue
            is_in_vain = node.exit_code == EXIT_USAGE and self.redis_broke_at >= node.started_at
            if is_in_vain or (node.exit_code == 0 and self.has_rolled_back):
                self.tally.resumed += 1  # started without a Redis, or before the end of the crawl was undone
            else:
                self.tally.problems.append(f"{self.where}: {node.name} ended early, with code {node.exit_code}")
            node.start()

    def _end(self) -> None:
        for node in self.nodes:
            if node.is_frozen:
                node.thaw()
        # Who was started a moment ago has not come to work yet, and ends later.
        last = time.monotonic() - YOUNG_SECONDS
        grown_up = [node for node in self.nodes if node.started_at < last]
        wait_until(lambda: not any(node.is_alive for node in grown_up), EXIT_SECONDS)
        if self._acked_at and grown_up:
            self.tally.ends.append(time.monotonic() - self._acked_at)
        wait_until(lambda: not any(node.is_alive for node in self.nodes), EXIT_SECONDS)
        for node in self.nodes:
            if node.exit_code is None:
                self.tally.problems.append(f"{self.where}: {node.name} does not end")
            else:
                self.tally.exit_codes[node.exit_code] += 1
                if node.exit_code:
                    self.tally.problems.append(f"{self.where}: {node.name} ended with code {node.exit_code}")
        if not wait_until(lambda: not any(is_ours(pid, self._folder) for pid in self.orphans), END_SECONDS):
            self.tally.problems.append(f"{self.where}: a worker whose supervisor was killed does not end")

    def is_followed(self) -> bool:
        """Whether the replica has what the server has."""
        return self.replica is not None and self.replica.info("replication").get("master_link_status") == "up"

    # -- looking ------------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """What came of it, into the tally."""
        tally = self.tally
        frontier = RedisFrontier(self.redis.client, PREFIX, lease_seconds=self.cast.lease_seconds, retry_seconds=20.0)
        fetches = self._site_process.fetches()
        judge(frontier, self._site, fetches, tally, self.where, was_torn=self.was_torn)
        frontier.close()
        tally.rounds += 1
        for node in self.nodes:
            log = node.log.read_text("utf-8", "replace")
            for ready, dead in _GIVEN_BACK.findall(log):
                tally.given_back += int(ready)
                tally.buried += int(dead)
            tally.refused_late += log.count(_REFUSED)
            tally.problems += [f"{self.where}: a traceback in {node.log}" for _ in log.split("Traceback")[1:2]]
        if self.proxy is not None:
            tally.cuts.update(self.proxy.cuts)

    def workers_of(self, node: Node) -> list[int]:
        """The worker processes of a supervisor."""
        if node.process is None:
            return []
        try:
            text = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text("ascii")
        except OSError:
            return []
        return [int(pid) for pid in text.split() if is_ours(int(pid), self._folder)]

    def all_workers(self) -> set[int]:
        return {pid for node in self.slaves for pid in self.workers_of(node)}

    def leases_of(self, worker: str) -> int:
        """How many requests this worker holds, as the store knows it."""
        owners: Any = self.redis.client.hvals(self._keys.owner)
        return sum(1 for owner in owners if f":{worker}:".encode() in owner)


def worker_name(pid: int) -> str:
    """The name that a supervisor gave to its worker process."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    names = [value for name, _, value in (each.partition(b"=") for each in variables) if name == NODE.encode()]
    return names[0].decode() if names else ""
