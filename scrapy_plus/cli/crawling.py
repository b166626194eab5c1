"""run, crawl, runspider, list: the commands that load spiders."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from scrapy_plus import log
from scrapy_plus.cli.base import Assignment, Command, Function, load_project, need_project, settings_option
from scrapy_plus.conf.options import FORMATS
from scrapy_plus.conf.settings import Added, Settings
from scrapy_plus.core.spider import Spider
from scrapy_plus.errors import UsageError
from scrapy_plus.stores import NODE
from scrapy_plus.supervisor import Supervisor, worker_command
from scrapy_plus.wiring import build_engine, spider_classes

ROLES = ("master", "slave")
NEVER = logging.CRITICAL + 1
Pairs = Iterable[tuple[str, str]]


def crawl_options(function: Function) -> Function:
    """The options of every command that crawls."""
    options: list[Callable[[Any], Any]] = [
        click.option("-a", "arguments", type=Assignment(), multiple=True, help="Give the spider an argument."),
        click.option("-o", "appended", multiple=True, metavar="FILE", help="Add the items to FILE; - is stdout."),
        click.option("-O", "overwritten", multiple=True, metavar="FILE", help="Write the items to FILE, anew."),
        click.option("-L", "level", metavar="LEVEL", help="The least important level to log, as LOG_LEVEL."),
        click.option("--nolog", is_flag=True, help="Log nothing."),
    ]
    for option in reversed(options):
        function = option(function)
    return settings_option(function)


def overrides(appended: Sequence[str], overwritten: Sequence[str], level: str | None) -> dict[str, Any]:
    """What the options mean as settings; the files go to those that FEEDS has already."""
    found: dict[str, Any] = {} if level is None else {"LOG_LEVEL": level}
    feeds = {**dict(feeds_of(appended, overwrite=False)), **dict(feeds_of(overwritten, overwrite=True))}
    return {**found, "FEEDS": Added(feeds)} if feeds else found


def feeds_of(words: Iterable[str], *, overwrite: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files that -o and -O name, as FEEDS would; FILE:FORMAT says a format that the ending does not."""
    for word in words:
        path, colon, ending = word.rpartition(":")
        if colon and path and ending in FORMATS:
            yield path, {"format": ending, "overwrite": overwrite}
        else:
            yield word, {"overwrite": overwrite}


def start(settings: Settings, names: Sequence[str], arguments: Pairs, *, nolog: bool) -> None:
    """Crawls to the end and leaves with the engine's exit code."""
    is_stdout_taken = "-" in settings.FEEDS
    # Whatever a spider prints would stand between the items.
    with contextlib.redirect_stdout(sys.stderr) if is_stdout_taken else contextlib.nullcontext():
        level = NEVER if nolog else settings.LOG_LEVEL
        log.setup(level, settings.LOG_FILE, settings.LOG_FORMAT, settings.LOG_DATEFORMAT)
        # A panel would be drawn over items that go to the same screen.
        has_panel = settings.PANEL and not (is_stdout_taken and log.is_terminal(sys.__stdout__))
        observers = _terminal(has_panel, settings)
        if settings.WORKERS:
            observers.append(
                Supervisor(
                    worker_command(),
                    settings.WORKERS,
                    environment={"SCRAPY_PLUS_WORKERS": "0", "SCRAPY_PLUS_ROLE": "slave"},
                )
            )
        each = list(dict.fromkeys(names)) or None
        engine = build_engine(settings, names=each, arguments=dict(arguments), observers=observers)
        sys.exit(engine.start())


def _terminal(has_panel: bool, settings: Settings) -> list[Any]:
    """What shows the crawl to people; the processes of a supervisor have nobody who looks, and do not load it."""
    if NODE in os.environ:
        return []
    from scrapy_plus.terminal import Terminal

    return [Terminal(panel=has_panel, stats_seconds=settings.LOG_STATS_SECONDS)]


@click.command("run", cls=Command, short_help="Crawl with the spiders of the project.")
@click.argument("words", nargs=-1, metavar="[master|slave] [SPIDER]...")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Crawl with N processes, watched by this one.")
@click.option(
    "--fresh", is_flag=True, help="Start anew, forgetting what is queued and seen; refused while others work."
)
@click.option(
    "--again", is_flag=True, help="Seed a finished crawl once more, and crawl of what it leads to only what is new."
)
@crawl_options
def run_command(
    words: tuple[str, ...],
    arguments: Pairs,
    assignments: Pairs,
    nolog: bool,
    workers: int | None,
    fresh: bool,
    again: bool,
    **options: Any,
) -> None:
    """Crawl with all spiders of the project, or those that are named.

    `python main.py` is the same. Exit codes: 0 finished, 1 crashed, 2 wrong usage or settings, 3 finished with dead
    letters, 130, 143 or 129 stopped by a signal.
    """
    if fresh and again:
        raise UsageError("--fresh forgets what --again builds on; give one of them")
    role, names = (words[0], words[1:]) if words[:1] and words[0] in ROLES else (None, words)
    more = overrides(**options)
    more |= {"ROLE": role} if role else {}
    more |= {"WORKERS": workers} if workers else {}
    if role == "slave" and (fresh or again) and NODE not in os.environ:
        raise UsageError(f"{'--fresh' if fresh else '--again'} is for the master; a slave joins what there is")
    more |= {"SCHEDULER_FLUSH_ON_START": True} if fresh else {}
    more |= {"SCHEDULER_SEED_AGAIN": True} if again else {}
    settings = load_project(assignments, more=more)
    need_project(settings)
    start(settings, names, arguments, nolog=nolog)


@click.command("crawl", cls=Command, short_help="Crawl with one spider.")
@click.argument("name")
@crawl_options
def crawl_command(name: str, arguments: Pairs, assignments: Pairs, nolog: bool, **options: Any) -> None:
    """Crawl with one spider of the project: the same as `run NAME`."""
    settings = load_project(assignments, more=overrides(**options))
    need_project(settings)
    start(settings, [name], arguments, nolog=nolog)


@click.command("runspider", cls=Command, short_help="Crawl with the spiders of one file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@crawl_options
def runspider_command(file: Path, arguments: Pairs, assignments: Pairs, nolog: bool, **options: Any) -> None:
    """Crawl with the spiders of a single file; no project is needed."""
    settings = load_project(assignments, more={**overrides(**options), "SPIDERS": spiders_in(file)})
    start(settings, [], arguments, nolog=nolog)


def spiders_in(file: Path) -> list[type[Spider]]:
    """The spiders that a file defines itself. Raises UsageError if it has none."""
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    own = [found for found in vars(module).values() if isinstance(found, type) and found.__module__ == file.stem]
    spiders = [found for found in own if issubclass(found, Spider) and found.name]
    if not spiders:
        raise UsageError(f"{file} has no Spider class with a name")
    return spiders


@click.command("list", cls=Command)
@settings_option
def list_command(assignments: Pairs) -> None:
    """Print the names of the project's spiders."""
    settings = load_project(assignments)
    need_project(settings)
    for name in spider_classes(settings):
        click.echo(name)
