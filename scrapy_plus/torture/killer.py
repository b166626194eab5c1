"""The disturbances: each breaks something of a stage, and leaves all mended but for what the crawl must mend itself."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import gevent

from scrapy_plus.torture.actors import AWAY, Node, wait_until
from scrapy_plus.torture.proxy import WAYS
from scrapy_plus.torture.stage import FOLLOW_SECONDS, Stage, worker_name

LIVES = 3.0
"""How long a process lives on average, in times that it needs from its start to its first ack."""
STOP_LEASES = 2.5
OUTAGE_LEASES = 1.5
FULL_SECONDS = 2.0
CUT_SECONDS = 0.15
MOST_TORN_BYTES = 40_000
MASTER_SHARE = 0.2
ROOM_BYTES = 20_000
LOST_SECONDS = 0.5
GRACE_LEASES = 3.0


class Killer:
    """Takes one event after the other from `events`; to be given to `Stage.crawl`, round after round."""

    def __init__(self, events: Iterable[str]) -> None:
        self.events = deque(events)

    def disturb(self, stage: Stage) -> float | None:
        """Carries out the next event; answers the seconds until the one after it, None if there is none."""
        if not self.events:
            return None
        event = self.events.popleft()
        pause: float | None = getattr(self, f"_{event}")(stage)
        stage.tally.events[event] += 1
        return self._interval(stage) if pause is None else pause

    def _interval(self, stage: Stage) -> float:
        processes = len(stage.nodes) + len(stage.all_workers())
        return stage.dice.uniform(0.5, 1.5) * LIVES * stage.tally.first_acks[-1] / processes

    # -- processes ----------------------------------------------------------------------------------------------------

    def _kill(self, stage: Stage) -> None:
        """kill -9 of the master, a slave or one of a supervisor's workers."""
        if stage.dice.random() < MASTER_SHARE:
            stage.master.kill()
            stage.master.start()
            return
        slave = stage.dice.choice([node for node in stage.slaves if not node.is_frozen] or stage.slaves)
        workers = stage.workers_of(slave)
        if workers and stage.dice.random() < 0.8:
            self._kill_worker(stage, stage.dice.choice(workers))
        else:
            self._kill_slave(stage, slave, workers)

    def _kill_slave(self, stage: Stage, slave: Node, workers: list[int]) -> None:
        stage.orphans.update(workers)  # a supervisor's workers outlive it, and work on
        worker = slave.worker
        slave.kill()
        if not workers:
            gevent.spawn(measure_takeover, stage, worker, stage.tally.takeovers)
        slave.start()

    def _kill_worker(self, stage: Stage, pid: int) -> None:
        worker = worker_name(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        gevent.spawn(measure_takeover, stage, worker, stage.tally.quick_takeovers)

    def _stop(self, stage: Stage) -> None:
        """A slave stands still for longer than its leases, and wakes up."""
        slaves = [node for node in stage.slaves if not node.is_frozen and not stage.workers_of(node) and node.is_alive]
        if slaves:
            slave = stage.dice.choice(slaves)
            slave.freeze()
            gevent.spawn_later(STOP_LEASES * stage.cast.lease_seconds, slave.thaw)

    # -- Redis --------------------------------------------------------------------------------------------------------

    def _redis_kill(self, stage: Stage) -> None:
        self._restart_redis(stage, torn_bytes=0)

    def _torn(self, stage: Stage) -> None:
        """The log ends within a command, as after a power failure; and soon the server dies once more."""
        stage.was_torn = True
        self._restart_redis(stage, torn_bytes=stage.dice.randint(1, MOST_TORN_BYTES))
        gevent.sleep(stage.dice.uniform(0.3, 1.5))
        self._restart_redis(stage, torn_bytes=0)

    def _restart_redis(self, stage: Stage, torn_bytes: int) -> None:
        stage.redis_breaks()
        # With everysec a write waits for the fsync before it, so even a kill may take what was answered for.
        stage.has_rolled_back |= stage.was_torn or stage.redis.fsync == "everysec"
        stage.redis.kill()
        if torn_bytes:
            stage.tally.torn_bytes += stage.redis.tear(torn_bytes)
        gevent.sleep(stage.dice.uniform(0.0, 0.5))
        stage.redis.start()

    def _outage(self, stage: Stage) -> None:
        """Redis stands still for longer than a lease: nobody could renew, and nobody is to blame."""
        stage.redis_breaks()
        stage.redis.freeze()
        gevent.sleep(OUTAGE_LEASES * stage.cast.lease_seconds)
        stage.redis.thaw()

    def _oom(self, stage: Stage) -> None:
        """No memory for anything new, for a while."""
        used = int(stage.redis.info("memory")["used_memory"])
        stage.redis.client.config_set("maxmemory", used + ROOM_BYTES)
        gevent.sleep(FULL_SECONDS)
        stage.redis.client.config_set("maxmemory", 0)

    def _disk_full(self, stage: Stage) -> None:
        """The log cannot grow, for a while: the server refuses every write then."""
        stage.redis.fill_disk(True)
        refuses = wait_until(lambda: stage.redis.info("persistence")["aof_last_write_status"] != "ok", 5 * FULL_SECONDS)
        gevent.sleep(FULL_SECONDS)
        stage.redis.fill_disk(False)
        if not refuses:
            stage.tally.problems.append(f"{stage.where}: the disk was full, and Redis did not notice")

    def _failover(self, stage: Stage) -> None:
        """The replica takes over, without the last half second of what the old server answered for."""
        old, new = stage.redis, stage.replica
        assert new is not None and stage.proxy is not None
        if not wait_until(stage.is_followed, FOLLOW_SECONDS):
            stage.tally.problems.append(f"{stage.where}: the replica does not follow")
            return
        stage.has_rolled_back = True
        stage.redis_breaks()
        new.client.execute_command("REPLICAOF", "NO", "ONE")
        gevent.sleep(LOST_SECONDS)
        stage.redis, stage.replica = new, old
        stage.proxy.lead_to(new.port)
        old.kill()
        old.start(replica_of=new.port)

    # -- connections --------------------------------------------------------------------------------------------------

    def _cut(self, stage: Stage) -> float:
        """A request that does not arrive, arrives by half, or whose answer does not."""
        assert stage.proxy is not None
        proxy = stage.proxy
        proxy.arm(stage.dice.choice(WAYS))
        wait_until(lambda: not proxy.armed, 5.0)
        return stage.dice.uniform(0.0, 2 * CUT_SECONDS)


def measure_takeover(stage: Stage, worker: str, seconds: list[float]) -> None:
    """How long until nothing is held by a worker that was killed just now.

    Not told if Redis breaks meanwhile, or did a moment ago: then nobody is late for one lease time.
    """
    began, events = time.monotonic(), stage.redis_events
    if began - stage.redis_broke_at < GRACE_LEASES * stage.cast.lease_seconds:
        return
    limit = began + 10 * stage.cast.lease_seconds
    held: Any = None
    while time.monotonic() < limit:
        try:
            left = stage.leases_of(worker)
        except AWAY:
            return
        if stage.redis_events != events:
            return
        held = left if held is None else held
        if not left:
            if held:
                seconds.append(time.monotonic() - began)
            return
        gevent.sleep(0.05)
    stage.tally.problems.append(f"{stage.where}: a dead worker still holds requests after ten lease times")
