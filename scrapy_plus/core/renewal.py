"""Leases are renewed by a native thread: a callback that computes for a minute stops every greenlet, but not this.

It renews only while the process is alive in the sense that matters: no lease of a request that was started longer than
`callback_seconds` ago, and none at all when the hub has not turned for that long. So a hung process loses its leases.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from gevent import monkey

from scrapy_plus.core.committer import Committer
from scrapy_plus.errors import ScrapyPlusError
from scrapy_plus.frontier.base import Frontier

log = logging.getLogger("scrapy_plus.renewal")

_start_native_thread = monkey.get_original("_thread", "start_new_thread")
_sleep = monkey.get_original("time", "sleep")
STEP_SECONDS = 0.1


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
        self._turned_at = time.monotonic()

    def start(self) -> None:
        _start_native_thread(self._run, ())

    def stop(self) -> None:
        self._is_stopped = True

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
            lost = frontier.renew(leases, started=started)
            self._committer.renewed(leases, lost, now)
            if lost:
                log.warning("%d leases were lost to other processes; their pages are dropped", len(lost))
