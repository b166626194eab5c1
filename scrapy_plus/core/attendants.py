"""What a process does for a crawl in a far store beside the pages.

The keeper gives back what dead processes held and says that this one lives. Leases are renewed by a native thread: a
callback that computes for a minute stops every greenlet, but not this. It renews only while the process is alive in the
sense that matters: no lease of a request that was started longer than `callback_seconds` ago, and none at all when the
hub has not turned for that long. So a hung process loses its leases.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
from collections.abc import Callable
from typing import Protocol

import gevent
from gevent import monkey

from scrapy_plus.core.committer import Committer
from scrapy_plus.errors import ScrapyPlusError
from scrapy_plus.frontier.base import Frontier

log = logging.getLogger("scrapy_plus.attendants")

TURN_SECONDS = 0.5
REAP_SECONDS = 2.0
BEAT_SECONDS = 3.0
FIRST_CALL_SECONDS, CALL_SECONDS = 3.0, 10.0
SILENT_SECONDS = 3 * BEAT_SECONDS
STEP_SECONDS = 0.05
STOP_SECONDS = 2.0
LOOK_SECONDS = 0.01
_start_native_thread = monkey.get_original("_thread", "start_new_thread")
_sleep = monkey.get_original("time", "sleep")


class Attendant(Protocol):
    """Something that works beside the pages from the opening of a crawl to its close."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Renewal:
    """Renews what `committer` holds every `every_seconds`, over a connection of its own made by `connect`."""

    def __init__(
        self,
        committer: Committer,
        connect: Callable[[], Frontier],
        *,
        every_seconds: float,
        callback_seconds: float,
    ) -> None:
        self._committer = committer
        self._connect = connect
        self._every_seconds = every_seconds
        self._callback_seconds = callback_seconds
        self._is_stopped = False
        self._is_over = True
        self._turned_at = time.monotonic()

    def start(self) -> None:
        self._is_over = False
        _start_native_thread(self._run, ())

    def stop(self) -> None:
        """Waits for the thread, but for ever not: an interpreter that ends under it may crash."""
        self._is_stopped = True
        until = time.monotonic() + STOP_SECONDS
        while not self._is_over and time.monotonic() < until:
            gevent.sleep(LOOK_SECONDS)
        gevent.sleep(LOOK_SECONDS)  # its last instructions

    def hub_turned(self) -> None:
        """To be called by a greenlet, often: the process is not hung."""
        self._turned_at = time.monotonic()

    def _run(self) -> None:
        try:
            frontier = self._connect()
            while self._pause():
                self._renew(frontier)
            frontier.close()
        except ScrapyPlusError as error:
            if not self._is_stopped:
                log.error("leases are not renewed any more: %s", error)
        finally:
            gevent.get_hub().destroy(destroy_loop=True)  # this thread's own, made by its first wait
            self._is_over = True

    def _pause(self) -> bool:
        until = time.monotonic() + self._every_seconds
        while not self._is_stopped and time.monotonic() < until:
            _sleep(STEP_SECONDS)
        return not self._is_stopped

    def _renew(self, frontier: Frontier) -> None:
        now = time.monotonic()
        if now - self._turned_at > self._callback_seconds:
            return
        held = list(self._committer.held.copy().items())
        leases = [(id, one.token) for id, one in held if now - (one.started_at or now) < self._callback_seconds]
        if leases:
            started = [id for id, one in held if one.started_at]
            self._committer.renewed(leases, frontier.renew(leases, started=started), now)


class Keeper:
    """Reaps and beats for one crawl in a far store; in a greenlet of its own, over a connection of its own.

    With `misses_slaves` it tells now and then how to start one when no other process works on the crawl.
    """

    def __init__(
        self,
        frontier: Frontier,
        committer: Committer,
        renewal: Renewal | None,
        *,
        role: str,
        misses_slaves: bool = False,
    ) -> None:
        self._frontier = frontier
        self._committer = committer
        self._renewal = renewal
        self._facts = {"role": role, "host": socket.gethostname(), "pid": str(os.getpid())}
        self._next_reap = time.monotonic() + random.uniform(0, REAP_SECONDS)
        self._next_beat = 0.0
        self._told, self._told_at = 0, time.monotonic()
        self._next_call = time.monotonic() + FIRST_CALL_SECONDS if misses_slaves else float("inf")

    def start(self) -> None:
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        self._greenlet.kill()
        self._frontier.close()

    def _run(self) -> None:
        while True:
            if self._renewal is not None:
                self._renewal.hub_turned()
            try:
                self._turn(time.monotonic())
            except ScrapyPlusError as error:
                log.debug("the keeper waits: %s", error)
            gevent.sleep(TURN_SECONDS)

    def _turn(self, now: float) -> None:
        if now >= self._next_beat:
            self._next_beat = now + BEAT_SECONDS
            if self._frontier.beat(self._committer.worker, {**self._facts, **self._load(now)}):
                self._committer.drain()
        if now >= self._next_reap:
            # A little apart from the others': one that finds something is enough.
            self._next_reap = now + REAP_SECONDS * random.uniform(0.7, 1.0)
            self._reap()
        if now >= self._next_call:
            self._next_call = now + CALL_SECONDS
            self._call_for_slaves()

    def _load(self, now: float) -> dict[str, str]:
        """What this process works on, and how fast: a display need not look at every lease for it."""
        held = list(self._committer.held.values())
        oldest = max((now - one.given_at for one in held), default=0.0)
        settled, seconds = self._committer.settled, now - self._told_at
        rate = 60 * (settled - self._told) / seconds if seconds > 0 else 0.0
        self._told, self._told_at = settled, now
        return {"leased": str(len(held)), "oldest_seconds": f"{oldest:.0f}", "pages_per_minute": f"{rate:.0f}"}

    def _call_for_slaves(self) -> None:
        others = [
            node
            for node in self._frontier.nodes()
            if node.age_seconds < SILENT_SECONDS and node.facts.get("role") != self._facts["role"]
        ]
        if not others and self._committer.state == "running":
            log.warning("no slave works on this crawl; start one: python main.py slave, or the master with --workers 2")

    def _reap(self) -> None:
        ready, dead = self._frontier.reap()
        if ready or dead:
            log.warning(
                "gave back %d requests of silent workers, buried %d whose workers kept dying", len(ready), len(dead)
            )
            self._committer.poke()
