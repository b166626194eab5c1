"""What a process does for its crawl beside the pages: it gives back what dead ones held, and says that it lives."""

from __future__ import annotations

import logging
import os
import random
import socket
import time

import gevent

from scrapy_plus.core.committer import Committer
from scrapy_plus.core.renewal import Renewal
from scrapy_plus.errors import ScrapyPlusError
from scrapy_plus.frontier.base import Frontier

log = logging.getLogger("scrapy_plus.keeper")

TURN_SECONDS = 0.5
REAP_SECONDS = 2.0
BEAT_SECONDS = 3.0


class Keeper:
    """Reaps and beats for one crawl in a far store; runs in a greenlet of its own."""

    def __init__(self, frontier: Frontier, committer: Committer, renewal: Renewal | None, *, role: str) -> None:
        self._frontier = frontier
        self._committer = committer
        self._renewal = renewal
        self._facts = {"role": role, "host": socket.gethostname(), "pid": str(os.getpid())}
        self._next_reap = time.monotonic() + random.uniform(0, REAP_SECONDS)
        self._next_beat = 0.0

    def run(self) -> None:
        """Until it is killed."""
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
            self._frontier.beat(self._committer.worker, self._facts)
        if now >= self._next_reap:
            # A little apart from the others': one that finds something is enough.
            self._next_reap = now + REAP_SECONDS * random.uniform(0.7, 1.0)
            self._reap()

    def _reap(self) -> None:
        ready, dead = self._frontier.reap()
        if ready or dead:
            log.warning(
                "gave back %d requests of silent workers, buried %d whose workers kept dying", len(ready), len(dead)
            )
            self._committer.poke()
