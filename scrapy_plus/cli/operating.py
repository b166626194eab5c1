"""status, pause, resume, stop, flush, doctor: the commands that steer a crawl kept in Redis, live or finished."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from scrapy_plus.cli.base import Command, Function, load_project, settings_option
from scrapy_plus.cli.crawling import Pairs
from scrapy_plus.cli.report import report, report_lines
from scrapy_plus.conf.settings import Settings
from scrapy_plus.errors import NodesAlive, UsageError
from scrapy_plus.frontier import redis_mending
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.redis_store import RedisStore
from scrapy_plus.wiring import spider_classes

LOOK_SECONDS = 2.0
NO_CRAWL = "no crawl of this project is in Redis (PROJECT_NAME, JOB, REDIS_URL; give them with -s)"


def crawl_option(function: Function) -> Function:
    """Adds --spider and -s: which crawl is meant, here or on another machine."""
    spider = click.option("--spider", metavar="NAME", help="Whose crawl; needless if there is only one.")
    return spider(settings_option(function))


@contextmanager
def opened(spider: str | None, assignments: Pairs) -> Iterator[tuple[RedisFrontier, str, Settings]]:
    """The crawl that is meant, its spider's name, and the settings. Raises UsageError if that is not one crawl."""
    settings = load_project(assignments)
    store = RedisStore(settings)
    try:
        name = spider or _only_one(store, settings)
        frontier = store.watch(name, settings)
        try:
            yield frontier, name, settings.for_spider(spider_classes(settings).get(name, object))
        finally:
            frontier.close()
    finally:
        store.close()


def names_of(store: RedisStore, settings: Settings) -> list[str]:
    """The spiders that may have a crawl: those of the project at hand, else those that Redis knows crawls of."""
    return list(spider_classes(settings)) or store.crawls()


def _only_one(store: RedisStore, settings: Settings) -> str:
    names = names_of(store, settings)
    if len(names) == 1:
        return names[0]
    if not names:
        raise UsageError(NO_CRAWL)
    raise UsageError(f"whose crawl? Name one with --spider: {', '.join(names)}")


# -- looking -----------------------------------------------------------------------------------------------------------


@click.command("status", cls=Command, short_help="Print where a crawl stands.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, an object for each crawl.")
@click.option("--watch", "is_watched", is_flag=True, help="Again every two seconds, until all are finished.")
@crawl_option
def status_command(as_json: bool, is_watched: bool, spider: str | None, assignments: Pairs) -> None:
    """Print what is queued, leased, delayed, dead and done of a crawl kept in Redis, by site and by node.

    All crawls of the project are shown, live or finished. On another machine: -s REDIS_URL=... -s PROJECT_NAME=...
    """
    settings = load_project(assignments)
    store = RedisStore(settings)
    try:
        frontiers = _watched(store, settings, spider)
        while True:
            reports = [report(name, frontier) for name, frontier in frontiers]
            _show(reports, as_json=as_json, clears=is_watched and not as_json)
            if not is_watched or all(one["state"] == "finished" for one in reports):
                return
            time.sleep(LOOK_SECONDS)
    finally:
        store.close()


def _watched(store: RedisStore, settings: Settings, spider: str | None) -> list[tuple[str, RedisFrontier]]:
    names = [spider] if spider else names_of(store, settings)
    found: list[tuple[str, RedisFrontier]] = []
    missing: list[str] = []
    for name in names:
        try:
            found.append((name, store.watch(name, settings)))
        except UsageError as error:
            missing.append(str(error))
    if not found:
        raise UsageError(missing[0] if missing else NO_CRAWL)
    return found


def _show(reports: list[dict[str, Any]], *, as_json: bool, clears: bool) -> None:
    if clears and sys.stdout.isatty():
        click.clear()
    for one in reports:
        if as_json:
            click.echo(json.dumps(one, ensure_ascii=False))
        else:
            for line in report_lines(one):
                click.echo(line)


# -- steering ----------------------------------------------------------------------------------------------------------


def _steer(name: str, state: str, allowed: tuple[str, ...], help_: str, said: str) -> click.Command:
    @crawl_option
    def command(spider: str | None, assignments: Pairs) -> None:
        with opened(spider, assignments) as (frontier, crawl, _):
            now = frontier.state()
            if now == state:
                click.echo(f"{crawl} is {state} already", err=True)
                return
            if now not in allowed:
                raise UsageError(f"the crawl of {crawl} is {now}: there is nothing to {name}")
            frontier.set_state(state)
            click.echo(f"{crawl}: {said}", err=True)

    command.__doc__ = help_
    return click.command(name, cls=Command, short_help=help_.partition(".")[0] + ".")(command)


pause_command = _steer(
    "pause",
    "paused",
    ("running",),
    "Pause a crawl: no process is handed out a request until it is resumed. The processes stay, pages in flight are "
    "finished.",
    "paused; go on with `scrapy-plus resume`",
)
resume_command = _steer(
    "resume", "running", ("paused", "stopped"), "Go on with a crawl that was paused or stopped.", "goes on"
)
stop_command = _steer(
    "stop",
    "stopped",
    ("running", "paused"),
    "Stop a crawl: all its processes finish the pages in flight and end. The next start of a master, or of a process "
    "without a role, goes on where it was.",
    "stops; every process ends when its pages in flight are finished",
)


@click.command("flush", cls=Command, short_help="Forget a whole crawl.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Also while processes work on it.")
@crawl_option
def flush_command(is_sure: bool, force: bool, spider: str | None, assignments: Pairs) -> None:
    """Forget all that a crawl kept: queue, seen URLs, dead letters, items and counts. Refused while processes live."""
    with opened(spider, assignments) as (frontier, crawl, _):
        counts = frontier.counts()
        places = ("ready", "leased", "delayed", "dead", "seen", "done")
        click.echo(f"{crawl}: {', '.join(f'{getattr(counts, place):,} {place}' for place in places)}", err=True)
        if not is_sure and not click.confirm("Forget all of this?", err=True):
            raise UsageError("nothing was done; --yes does not ask")
        try:
            frontier.flush(force=force)
        except NodesAlive as error:
            raise UsageError(f"not flushed: {error} (--force)") from None
        click.echo(f"{crawl}: all forgotten", err=True)


@click.command("doctor", cls=Command, short_help="Look whether a crawl's records agree.")
@click.option("--whole", is_flag=True, help="Look at every request, not only at the counts.")
@click.option("--repair", "repairs", is_flag=True, help="Rebuild every index from the backup; the crawl may go on.")
@crawl_option
def doctor_command(whole: bool, repairs: bool, spider: str | None, assignments: Pairs) -> None:
    """Look whether the counts of a crawl agree, and with --whole whether every request is in exactly one state.

    Exit code 1 if something is wrong. While a crawl runs, a request on its way may look wrong: pause it, or look again.
    """
    with opened(spider, assignments) as (frontier, crawl, _):
        if repairs:
            click.echo(f"{crawl}: repaired; {frontier.repair():,} requests stood nowhere and are queued", err=True)
        look: Callable[[], list[str]] = frontier.audit if whole else lambda: list(redis_mending.broken_sums(frontier))
        problems = look()
        for line in problems:
            click.echo(line)
        if problems:
            raise click.exceptions.Exit(1)
        click.echo(f"{crawl}: every request is in exactly one state" if whole else f"{crawl}: the counts agree")
