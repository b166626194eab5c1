"""What people see while a crawl runs: a live panel on a terminal, a line of figures now and then elsewhere, a summary.

Everything goes to standard error: standard output belongs to the items of `-o -`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

import gevent
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from scrapy_plus.core.stats import Stats
from scrapy_plus.figures import Rates, figures, show_bytes, show_counts, show_duration, show_rate
from scrapy_plus.log import count_into, is_terminal, printable, stop_counting
from scrapy_plus.summary import log_summary, summary

if TYPE_CHECKING:
    from scrapy_plus.core.engine import Engine, EngineSnapshot
    from scrapy_plus.frontier.base import SiteFacts

log = logging.getLogger("scrapy_plus.figures")

REFRESH_SECONDS = 0.25
SHARE_OF_A_CORE = 0.008
SHOWN_SPIDERS = 8
SHOWN_SITES = 5


class Terminal:
    """An observer of the engine that shows it to people.

    `panel=False` never shows the live panel; `stats_seconds` is the time between lines of figures, 0 for none.
    """

    def __init__(self, *, panel: bool = True, stats_seconds: float = 10.0, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_live = panel and is_terminal(self._stream)
        self._stats_seconds = stats_seconds
        width = None if is_terminal(self._stream) else 120
        screen: Any = _Screen(self._stream)
        self._console = Console(file=screen, width=width, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._greenlet: gevent.Greenlet | None = None
        self._rates = Rates()
        self._shared_log = Stats()

    # -- as the engine sees it ----------------------------------------------------------------------------------------

    def opened(self, engine: Engine) -> None:
        """Before the first request: from now on figures are shown."""
        self._rates = Rates()
        self._start_counting(engine)
        if self._is_live:
            self._live = self._start_live()
            self._greenlet = gevent.spawn(self._refresh, engine, self._live)
        elif self._stats_seconds > 0:
            self._greenlet = gevent.spawn(self._log_figures, engine)

    def closed(self, engine: Engine, exit_code: int) -> None:
        """After the last request: the panel goes, the summary comes."""
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None
        if self._live is not None:
            self._live.stop()
            self._live = None
        snapshot = engine.snapshot()
        for stats in (self._shared_log, *(crawl.stats for crawl in engine.crawls)):
            stop_counting(stats)
        for one in snapshot.crawls:
            self._console.print()
            self._console.print(summary(one, snapshot.elapsed_seconds))
        self._console.print()
        if shared := log_summary(self._shared_log.as_dict()):
            self._console.print(shared)
            self._console.print()

    def _start_counting(self, engine: Engine) -> None:
        """With several spiders a line of the framework's own log is counted once, since it does not say for whom."""
        self._shared_log = Stats()
        if len(engine.crawls) == 1:
            count_into(engine.crawls[0].stats)
            return
        count_into(self._shared_log)
        for crawl in engine.crawls:
            count_into(crawl.stats, str(crawl.spider.name))

    # -- the live panel -----------------------------------------------------------------------------------------------

    def _start_live(self) -> Live:
        # print() in a spider scrolls above the panel too, unless it goes to a pipe, which it must reach unchanged.
        live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=is_terminal(sys.stdout),
            redirect_stderr=self._stream is sys.stderr,
        )
        live.start()
        # Live hides the cursor; a process that is killed would leave it hidden.
        self._console.show_cursor(True)
        return live

    def _refresh(self, engine: Engine, live: Live) -> None:
        while True:
            started = time.perf_counter()
            live.update(self.panel(engine.snapshot()), refresh=True)
            # The panel is for the crawl, not the other way round: what it costs decides how often it is drawn.
            gevent.sleep(max(REFRESH_SECONDS, (time.perf_counter() - started) / SHARE_OF_A_CORE))

    def panel(self, snapshot: EngineSnapshot) -> Panel:
        """The panel of this moment."""
        now = figures(snapshot.crawls)
        self._rates.add(snapshot.elapsed_seconds, now)
        names = [crawl.spider for crawl in snapshot.crawls]
        title = names[0] if len(names) == 1 else f"{len(names)} spiders"
        heading = f"{printable(title)}  {snapshot.state}  {show_duration(snapshot.elapsed_seconds)}"
        lines = [*self._lines(snapshot), *_spider_lines(snapshot), *_site_lines(snapshot)]
        texts = [_labelled(label, value) for label, value in lines]
        return Panel(Group(*texts), title=Text(heading, style="bold"), title_align="left", border_style="dim")

    def _lines(self, snapshot: EngineSnapshot) -> Iterator[tuple[str, str]]:
        now, rates = figures(snapshot.crawls), self._rates
        page_rates = f"{show_rate(rates.now('pages'))} now   {show_rate(rates.average('pages'))} average"
        yield "pages", f"{now.pages:,}   {page_rates}"
        yield (
            "requests",
            f"{now.done:,} done   {now.queued:,} queued   {now.in_flight:,} in flight   "
            f"{now.delayed:,} delayed   {now.dead:,} dead",
        )
        yield "items", f"{now.items:,}   {show_rate(rates.now('items'))} now"
        yield "bytes", f"{show_bytes(now.bytes)}   {show_bytes(rates.now('bytes'))}/s now"
        yield "answers", show_counts(now.classes | ({"errors": now.errors} if now.errors else {})) or "none yet"
        yield "workers", f"{snapshot.active} of {snapshot.concurrency} busy"

    # -- lines of figures ---------------------------------------------------------------------------------------------

    def _log_figures(self, engine: Engine) -> None:
        while True:
            gevent.sleep(self._stats_seconds)
            log.info("%s", self.figures_line(engine.snapshot()))

    def figures_line(self, snapshot: EngineSnapshot) -> str:
        """The figures of this moment as key=value, for machines and for those who read logs."""
        now = figures(snapshot.crawls)
        self._rates.add(snapshot.elapsed_seconds, now)
        fields = {
            "spiders": ",".join(crawl.spider for crawl in snapshot.crawls).replace(" ", "_"),
            "state": snapshot.state,
            "elapsed_seconds": round(snapshot.elapsed_seconds, 1),
            "pages": now.pages,
            "pages_per_second": round(self._rates.now("pages"), 1),
            "pages_per_second_average": round(self._rates.average("pages"), 1),
            **{name: getattr(now, name) for name in ("done", "queued", "in_flight", "delayed", "dead")},
            **{name: getattr(now, name) for name in ("items", "bytes", "errors")},
            **{f"status_{name}": count for name, count in now.classes.items()},
        }
        return " ".join(f"{name}={value}" for name, value in fields.items())


def _spider_lines(snapshot: EngineSnapshot) -> Iterator[tuple[str, str]]:
    if len(snapshot.crawls) == 1:
        return
    for crawl in snapshot.crawls[:SHOWN_SPIDERS]:
        now = figures([crawl])
        value = f"{now.done:,} done   {now.queued:,} queued   {now.in_flight:,} in flight   {now.items:,} items"
        yield crawl.spider, f"{value}   {crawl.finish_reason or ''}"
    if len(snapshot.crawls) > SHOWN_SPIDERS:
        yield "...", f"and {len(snapshot.crawls) - SHOWN_SPIDERS} more spiders"


def _site_lines(snapshot: EngineSnapshot) -> Iterator[tuple[str, str]]:
    sites = [site for crawl in snapshot.crawls for site in crawl.sites]
    sites.sort(key=lambda one: -(one[1].ready + one[1].in_flight))
    for name, facts in sites[:SHOWN_SITES]:
        yield "site", f"{name}   {facts.ready:,} queued   {facts.in_flight:,} in flight{_pace(facts)}"


def _pace(facts: SiteFacts) -> str:
    delay = f"   one each {facts.pace.gap_seconds:.3g} s" if facts.pace.gap_seconds else ""
    return delay + (f"   at most {facts.pace.slots} at a time" if facts.pace.slots else "")


def _labelled(label: str, value: str) -> Text:
    # One line each, cut at the edge: a panel whose height changes flickers.
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{printable(label):<10}", style="dim")
    return text.append(printable(value))


class _Screen:
    """A stream whose reader may go away (`| head`, a full disk): neither the crawl nor its exit code hang on it.

    Left to itself, rich would point standard output, where items may go, to /dev/null and exit with 1.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text) if self._stream is not None else len(text)
        except OSError:
            self._let_go()
            return len(text)

    def flush(self) -> None:
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError:
            self._let_go()

    def _let_go(self) -> None:
        """What is still in its buffer goes to /dev/null: python would fail to flush it at exit, and end with 120."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
