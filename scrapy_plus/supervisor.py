"""Worker processes: started, watched, started again when they die, and stopped with the process that watches.

Each is an interpreter of its own, never a fork: gevent's hub, sockets and threads do not survive one. When one dies,
what it held is given back at once, and only what it was working on is blamed.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import gevent

from scrapy_plus.core.crawl import FINISHED
from scrapy_plus.core.engine import EXIT_DEAD_LETTERS, EXIT_OK, EXIT_USAGE, Engine
from scrapy_plus.core.started import read_started
from scrapy_plus.errors import ScrapyPlusError
from scrapy_plus.stores import NODE, STARTED

log = logging.getLogger("scrapy_plus.supervisor")

LOOK_SECONDS = 0.1
GRACE_SECONDS = 15.0
SHORT_LIFE_SECONDS = 2.0
SHORT_LIVES = 5
"""So many short lives in a row, and a worker is not started again: it cannot work at all."""
FINISHED_CODES = (EXIT_OK, EXIT_DEAD_LETTERS)


@dataclass(slots=True)
class Worker:
    """One place for a worker process, whoever fills it now."""

    number: int
    node: str = ""
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    short_lives: int = 0
    is_done: bool = False
    started_file: Path = field(default_factory=Path)


class Supervisor:
    """Watches `count` worker processes, each made by `command`, while an engine runs; an observer of that engine.

    `environment` is added to that of the workers.
    """

    def __init__(self, command: Sequence[str], count: int, *, environment: Mapping[str, str]) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._workers = [Worker(number) for number in range(1, count + 1)]
        self._folder = Path(tempfile.mkdtemp(prefix="scrapy_plus-"))
        self._greenlet: gevent.Greenlet | None = None

    def opened(self, engine: Engine) -> None:
        for worker in self._workers:
            self._start(worker)
        self._greenlet = gevent.spawn(self._watch, engine)

    def closed(self, engine: Engine, exit_code: int) -> None:
        """Waits until all workers have gone: by themselves at the end of the crawl, else by a signal."""
        if self._greenlet is not None:
            self._greenlet.kill()
        deadline = time.monotonic() + GRACE_SECONDS
        if engine.signals or any(crawl.finish_reason != FINISHED for crawl in engine.crawls):
            self._signal(signal.Signals(engine.signals[0]) if engine.signals else signal.SIGTERM)
            deadline += engine.shutdown_seconds
        while self._alive() and time.monotonic() < deadline and len(engine.signals) < 2:
            gevent.sleep(LOOK_SECONDS)
        self._signal(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- workers ------------------------------------------------------------------------------------------------------

    def _start(self, worker: Worker) -> None:
        worker.node = uuid.uuid4().hex
        worker.started_file = self._folder / worker.node
        worker.started_at = time.monotonic()
        environment = {**os.environ, **self._environment, NODE: worker.node, STARTED: str(worker.started_file)}
        # A session of its own: Ctrl-C reaches the supervisor, which passes it on once.
        worker.process = subprocess.Popen(
            self._command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        log.info("worker %d is process %d", worker.number, worker.process.pid)

    def _watch(self, engine: Engine) -> None:
        while True:
            gevent.sleep(LOOK_SECONDS)
            for worker in self._workers:
                code = None if worker.process is None else worker.process.poll()
                if code is not None and not worker.is_done:
                    self._bury(engine, worker, code)

    def _bury(self, engine: Engine, worker: Worker, code: int) -> None:
        """A worker has gone: what it held is given back at once; it is replaced unless it was right to go."""
        worker.process = None
        if code in FINISHED_CODES:
            worker.is_done = True
            return
        self._give_back(engine, worker)
        is_short = time.monotonic() - worker.started_at < SHORT_LIFE_SECONDS
        worker.short_lives = worker.short_lives + 1 if is_short else 0
        if code == EXIT_USAGE or worker.short_lives >= SHORT_LIVES:
            worker.is_done = True
            log.error("worker %d ended with code %d and is not started again", worker.number, code)
            if all(one.is_done for one in self._workers):
                engine.crash("no worker can work")
            return
        log.warning("worker %d ended with %s; starting it again", worker.number, _how(code))
        self._start(worker)

    def _give_back(self, engine: Engine, worker: Worker) -> None:
        started = read_started(worker.started_file)
        worker.started_file.unlink(missing_ok=True)
        for crawl in engine.crawls:
            try:
                crawl.scheduler.frontier.reap(worker=worker.node, started=started)
            except ScrapyPlusError as error:
                log.warning("what worker %d held is given back when its leases are over: %s", worker.number, error)

    def _alive(self) -> list[subprocess.Popen[bytes]]:
        return [one.process for one in self._workers if one.process is not None and one.process.poll() is None]

    def _signal(self, number: signal.Signals) -> None:
        for process in self._alive():
            process.send_signal(number)


def _how(code: int) -> str:
    return f"code {code}" if code >= 0 else signal.Signals(-code).name


def worker_command(argv: Sequence[str] | None = None) -> list[str]:
    """This program's own command line as a worker's: a slave, without workers of its own.

    Options and their values stay as they were given; `--workers` goes, in both of its forms.
    """
    words = list(sys.orig_argv if argv is None else argv)
    kept = [sys.executable]
    is_value = False
    for word in words[1:]:
        if is_value or word == "--workers" or word.startswith("--workers="):
            is_value = word == "--workers" and not is_value
            continue
        kept.append("slave" if word == "master" else word)
    return kept
