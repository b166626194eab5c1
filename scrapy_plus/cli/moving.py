"""dump, load: a crawl in a file, and back in any Redis."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

import click

from scrapy_plus.cli.base import Command, load_project
from scrapy_plus.cli.crawling import Pairs
from scrapy_plus.cli.operating import crawl_option, opened
from scrapy_plus.errors import NodesAlive, UsageError
from scrapy_plus.frontier import dumping
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.redis_store import RedisStore


@click.command("dump", cls=Command, short_help="Write a crawl into a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--items", "with_items", is_flag=True, help="The stored items as well.")
@click.option("--force", is_flag=True, help="Over a file that is there.")
@crawl_option
def dump_command(file: Path, with_items: bool, force: bool, spider: str | None, assignments: Pairs) -> None:
    """Write all of a crawl that stands still into FILE: requests in every state, seen URLs, dead letters, counts.

    Compressed if its name ends in .gz. `scrapy-plus load FILE` makes the crawl of it again, in another Redis say. What
    a process held when it was killed is ready in the file. The crawl here stays as it is.
    """
    if file.exists() and not force:
        raise UsageError(f"{file} is there already; name another file, or say --force")
    with opened(spider, assignments) as (frontier, crawl, _):
        try:
            _write(file, dumping.dump(frontier, with_items=with_items))
        except NodesAlive as error:
            raise UsageError(f"not dumped: {error} (scrapy-plus stop)") from None
        click.echo(f"{crawl}: {_counted(frontier)} in {file}", err=True)


@click.command("load", cls=Command, short_help="Make the crawl of a file in a Redis.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", "replaces", is_flag=True, help="Forget the crawl that is there before.")
@crawl_option
def load_command(file: Path, replaces: bool, spider: str | None, assignments: Pairs) -> None:
    """Make the crawl that `scrapy-plus dump` wrote into FILE, in the Redis of the settings, under this project's name.

    Refused if there is a crawl that is not empty. Nobody can open the crawl until all is in; what was cut short is
    done again with the same file, and nothing is there twice.
    """
    try:
        header = dumping.check(_read(file))
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
    settings = load_project(assignments)
    store = RedisStore(settings)
    name = spider or header["crawl"].partition("{")[2].rstrip("}").split(":")[1]
    try:
        frontier = store.load(name, settings)
        try:
            dumping.restore(frontier, _read(file), replaces=replaces)
            click.echo(f"{name}: {_counted(frontier)} from {file}", err=True)
        except NodesAlive as error:
            raise UsageError(f"not loaded: {error} (scrapy-plus stop)") from None
        finally:
            frontier.close()
    finally:
        store.close()


def _counted(frontier: RedisFrontier) -> str:
    counts = frontier.counts()
    places = ("ready", "leased", "delayed", "dead", "seen", "done")
    return ", ".join(f"{getattr(counts, place):,} {place}" for place in places)


def _write(file: Path, entries: Iterable[dumping.Entry]) -> None:
    """Under another name first: what has the file's name is whole."""
    part = file.with_name(f"{file.name}.part")
    try:
        with _disk(file), _opened(part, "wt", is_gz=file.suffix == ".gz") as output:
            for entry in entries:
                output.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
        with _disk(file):
            os.replace(part, file)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _read(file: Path) -> Iterator[dumping.Entry]:
    """Raises UsageError for what is no dump, or was cut or damaged."""
    try:
        with _opened(file, "rt", is_gz=_is_gz(file)) as lines:
            for line in lines:
                entry: Any = json.loads(line)
                if not isinstance(entry, list) or len(entry) < 3:
                    raise UsageError("it is no dump of a crawl")
                yield entry
    except (EOFError, ValueError, gzip.BadGzipFile, OSError) as error:
        raise UsageError(f"it cannot be read to its end ({error}); make the dump again") from error


def _is_gz(file: Path) -> bool:
    with file.open("rb") as start:
        return start.read(2) == b"\x1f\x8b"


def _opened(file: Path, mode: str, *, is_gz: bool) -> TextIO:
    if is_gz:
        return cast("TextIO", gzip.open(file, mode, compresslevel=6, encoding="utf-8"))
    return cast("TextIO", file.open(mode, encoding="utf-8"))


@contextmanager
def _disk(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from error
