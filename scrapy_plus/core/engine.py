"""The engine: the workers that all spiders of a process share, and the beginning and end of the whole."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, Protocol

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from scrapy_plus.core.crawl import Crawl
from scrapy_plus.core.outcome import CrawlSnapshot
from scrapy_plus.errors import UsageError
from scrapy_plus.http.request import Request
from scrapy_plus.patching import refuse_if_too_late

log = logging.getLogger("scrapy_plus.engine")

EXIT_OK, EXIT_CRASHED, EXIT_USAGE, EXIT_DEAD_LETTERS, EXIT_SIGNAL = 0, 1, 2, 3, 128
LIMIT_CHECK_SECONDS = 0.5
KILL_SECONDS = 2.0
PAGES_BETWEEN_YIELDS = 16


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """The whole process at one moment, for displays."""

    elapsed_seconds: float
    state: str
    concurrency: int
    active: int
    crawls: list[CrawlSnapshot]


class Observer(Protocol):
    """Something that watches: told when the engine has opened, and when it has closed, with the exit code."""

    def opened(self, engine: Engine) -> None: ...

    def closed(self, engine: Engine, exit_code: int) -> None: ...


class Engine:
    """Crawls with all spiders of a project until nothing is left, a limit is reached or a signal comes.

    Without arguments it is built from the project's settings. `start` returns the exit code, which the program must
    pass on: `sys.exit(Engine().start())`, else a crawl with dead letters looks like a good one. `make_crawls` is
    called at each start, so that an engine can be started again. At most `concurrency` requests are worked on at a
    time, shared fairly by the spiders.
    """

    from_project: ClassVar[Callable[[], dict[str, Any]] | None] = None
    """Gives the arguments of an engine made without any; set by the package, which knows the settings."""

    def __init__(
        self,
        make_crawls: Callable[[], Sequence[Crawl]] | None = None,
        *,
        concurrency: int = 16,
        shutdown_seconds: float = 30.0,
        observers: Sequence[Observer] = (),
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        if make_crawls is None:
            if Engine.from_project is None:
                raise UsageError("Engine() needs a project; import it from scrapy_plus")
            self.__init__(**Engine.from_project())  # type: ignore[misc]
            return
        if isinstance(make_crawls, type) or not callable(make_crawls):
            raise TypeError(
                f"Engine() takes no spiders (got {make_crawls!r}): list them in SPIDERS of settings.py, "
                "or test one with scrapy_plus.crawl(spider, transport)"
            )
        self._make_crawls = make_crawls
        self._concurrency = concurrency
        self.shutdown_seconds = shutdown_seconds
        self.observers = list(observers)
        self._on_closed = on_closed
        self.crawls: Sequence[Crawl] = ()
        self._reset()

    def _reset(self) -> None:
        self._state = "running"
        self._turn = 0
        self._parked = 0
        self._active = 0
        self._wake = Semaphore(0)
        self._waking = False
        self._news = 0
        self._timer: gevent.Greenlet | None = None
        self._timer_at = float("inf")
        self._ended = Event()
        self.signals: list[int] = []
        self._started_at = time.monotonic()
        self._finished_at: float | None = None

    # -- begin and end ------------------------------------------------------------------------------------------------

    def start(self) -> int:
        """Crawls to the end and returns the exit code: 0, 1 (crashed) or 3 (dead letters).

        Raises SystemExit(130, 143 or 129) after SIGINT, SIGTERM or SIGHUP (the terminal was closed), when the pages in
        flight are finished or time is up.
        """
        self._reset()
        self.crawls = self._make_crawls()
        if any(crawl.downloader.transport.network for crawl in self.crawls):
            refuse_if_too_late()
        with _Signals(self._on_signal):
            exit_code = self._run()
        if self.signals:
            raise SystemExit(exit_code)
        return exit_code

    def _run(self) -> int:
        opened: list[Crawl] = []
        watching: list[Observer] = []
        greenlets: list[gevent.Greenlet] = []
        exit_code = EXIT_CRASHED
        try:
            for crawl in self.crawls:
                opened.append(crawl)
                crawl.on_ready = self.wake
                crawl.scheduler.committer.free_workers = self._free_workers
                crawl.open()
            for observer in self.observers:
                watching.append(observer)
                observer.opened(self)
            greenlets = self._spawn()
            self._ended.wait()
        finally:
            self._close(greenlets, opened)
            exit_code = self._exit_code()
            for observer in watching:
                observer.closed(self, exit_code)
        return exit_code

    def _close(self, greenlets: list[gevent.Greenlet], opened: list[Crawl]) -> None:
        self._state = "stopping"
        gevent.killall(greenlets, timeout=KILL_SECONDS)
        if self.signals:
            self._say_what_is_left()
        for crawl in opened:
            crawl.close()
        self._on_closed()
        self._finished_at = time.monotonic()
        self._state = "finished"

    def _free_workers(self) -> int:
        return self._parked

    def _spawn(self) -> list[gevent.Greenlet]:
        workers = [gevent.spawn(self._work) for _ in range(self._concurrency)]
        seeders = [gevent.spawn(crawl.seed) for crawl in self.crawls]
        keepers = [gevent.spawn(self._check_limits), gevent.spawn(self._end_when_all_have)]
        return [*workers, *seeders, *keepers]

    def _say_what_is_left(self) -> None:
        for crawl in self.crawls:
            counts = crawl.scheduler.frontier.counts()
            log.info("spider %s stopped: %d requests are left in the queue", crawl.spider.name, counts.pending)

    def _end_when_all_have(self) -> None:
        """Each crawl is closed when it ends: its files need not wait for the others."""
        closers = [gevent.spawn(self._close_at_its_end, crawl) for crawl in self.crawls]
        gevent.joinall(closers)
        self._ended.set()

    def _close_at_its_end(self, crawl: Crawl) -> None:
        crawl.ended.wait()
        crawl.close()

    def _check_limits(self) -> None:
        while True:
            gevent.sleep(LIMIT_CHECK_SECONDS)
            for crawl in self.crawls:
                crawl.check_limits()

    def stop(self, reason: str = "stopped") -> None:
        """No new requests; the pages in flight are finished, then `start` returns."""
        self._state = "stopping"
        for crawl in self.crawls:
            crawl.stop(reason)

    def crash(self, reason: str) -> None:
        """Nothing can go on; the exit code says so."""
        log.error("the crawl ends: %s", reason)
        for crawl in self.crawls:
            crawl.crash()

    def _exit_code(self) -> int:
        if self.signals:
            return EXIT_SIGNAL + self.signals[0]
        if any(crawl.has_crashed for crawl in self.crawls):
            return EXIT_CRASHED
        has_dead = any(crawl.snapshot().counts.dead for crawl in self.crawls)
        return EXIT_DEAD_LETTERS if has_dead else EXIT_OK

    # -- signals ------------------------------------------------------------------------------------------------------

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Once: stop gently. Twice: at once. It may come while a callback computes, so the hub is told from outside."""
        if number == signal.SIGHUP and self.signals:
            return  # who closes a terminal sends it once, and the shell in it once more
        self.signals.append(number)
        if len(self.signals) > 2:
            os._exit(EXIT_SIGNAL + number)
        if len(self.signals) == 2:
            signal.signal(signal.SIGALRM, lambda *_: os._exit(EXIT_SIGNAL + number))
            signal.alarm(2)  # a hub that does not turn would not hear of it
        gevent.get_hub().loop.run_callback_threadsafe(self._heed_signals)

    def _heed_signals(self) -> None:
        number = self.signals[0]
        if len(self.signals) == 1:
            name = signal.Signals(number).name
            log.info("%s: finishing the pages in flight (at most %g s); again: at once", name, self.shutdown_seconds)
            self.stop("shutdown")
            gevent.spawn_later(self.shutdown_seconds, self._ended.set)
        else:
            self._ended.set()

    # -- workers ------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        pages = 0
        while True:
            news = self._news
            crawl, request = self._next()
            if crawl is None or request is None:
                if news == self._news:
                    self._park()
                continue
            if self._parked:
                self.wake()  # there may be more where this came from
            self._crawl(crawl, request)
            pages += 1
            if pages % PAGES_BETWEEN_YIELDS == 0:
                gevent.sleep(0)  # a transport that never waits must not keep signals, limits and displays waiting

    def _crawl(self, crawl: Crawl, request: Request) -> None:
        self._active += 1
        crawl.active += 1
        try:
            crawl.crawl(request)
        except gevent.GreenletExit:
            raise
        except BaseException:  # not the page's fault, whose failures are verdicts: the store's, or our own
            log.exception("spider %s crashed on %r", crawl.spider.name, request)
            crawl.crash()
        finally:
            self._active -= 1
            crawl.worker_left()

    def _next(self) -> tuple[Crawl | None, Request | None]:
        """The next request of the next spider that has one."""
        count = len(self.crawls)
        for _ in range(count):
            crawl = self.crawls[self._turn % count]
            self._turn += 1
            request = crawl.next_request()
            if request is not None:
                return crawl, request
        return None, None

    def _park(self) -> None:
        self._set_timer()
        self._parked += 1
        self._wake.acquire()
        self._parked -= 1
        self._waking = False

    def wake(self) -> None:
        """There may be work: one parked worker looks, and wakes the next if it finds some."""
        self._news += 1
        if self._parked and not self._waking:
            self._waking = True
            self._wake.release()

    def _set_timer(self) -> None:
        """Wakes a worker when the next delayed request is due or the next site may be asked."""
        waits = [crawl.scheduler.wait_seconds for crawl in self.crawls if crawl.finish_reason is None]
        at = time.monotonic() + min((wait for wait in waits if wait is not None), default=float("inf"))
        if at < self._timer_at - 0.001:
            if self._timer is not None:
                self._timer.kill(block=False)
            self._timer_at = at
            self._timer = gevent.spawn_later(max(0.0, at - time.monotonic()), self._timer_rang)

    def _timer_rang(self) -> None:
        self._timer_at = float("inf")
        self._timer = None
        self.wake()

    # -- looking ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> EngineSnapshot:
        """The engine as it stands, for displays."""
        until = self._finished_at if self._finished_at is not None else time.monotonic()
        return EngineSnapshot(
            until - self._started_at,
            self._state,
            self._concurrency,
            self._active,
            [crawl.snapshot() for crawl in self.crawls],
        )


class _Signals:
    """SIGINT, SIGTERM and SIGHUP lead to `handler` while this is open; only the main thread can hear them.

    A SIGHUP that is ignored, as `nohup` does it, stays so.
    """

    def __init__(self, handler: Callable[[int, FrameType | None], None]) -> None:
        self._handler = handler
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            is_hardened = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            for number in (signal.SIGINT, signal.SIGTERM, *(() if is_hardened else (signal.SIGHUP,))):
                self._before[number] = signal.signal(number, self._handler)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.alarm(0)
