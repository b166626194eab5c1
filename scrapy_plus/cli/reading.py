"""items: the stored items of a crawl, while it goes on or afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from scrapy_plus.cli.base import Command, load_project, settings_option
from scrapy_plus.cli.crawling import Pairs, feeds_of
from scrapy_plus.conf.settings import Settings
from scrapy_plus.errors import UsageError
from scrapy_plus.frontier.stored_items import StoredItems
from scrapy_plus.item_places import make_feeds, notes_folder
from scrapy_plus.pipelines.export import Export
from scrapy_plus.redis_store import RedisStore
from scrapy_plus.wiring import spider_classes

LOOK_SECONDS = 0.5


@click.command("items", cls=Command, short_help="Print the stored items of a crawl.")
@click.argument("spider", required=False)
@click.option("-o", "appended", metavar="FILE", help="Add those to FILE that are not in it yet.")
@click.option("-O", "overwritten", metavar="FILE", help="Write all of them to FILE, anew.")
@click.option("--follow", is_flag=True, help="Go on until the crawl is finished.")
@click.option("--count", "is_counted", is_flag=True, help="Only say how many there are.")
@settings_option
def items_command(
    spider: str | None,
    appended: str | None,
    overwritten: str | None,
    follow: bool,
    is_counted: bool,
    assignments: Pairs,
) -> None:
    """Print the items that a crawl has stored in Redis, one JSON object a line, or write them to a file.

    The crawl is that of SPIDER in the project at hand, or elsewhere with -s REDIS_URL=... -s PROJECT_NAME=... Items are
    stored with scrapy_plus.pipelines.RedisPipeline among the PIPELINES, or if the crawl writes files (FEEDS, -o).
    """
    settings = load_project(assignments)
    name = spider or _only_spider(settings)
    store = RedisStore(settings)
    try:
        stored = store.stored_items(name, settings)
        _check(stored, is_awaited=follow)
        if is_counted:
            click.echo(stored.count())
        elif appended or overwritten:
            _write(settings, stored, str(appended or overwritten), overwrite=not appended, follow=follow)
        else:
            _print(stored, follow=follow)
    finally:
        store.close()


def _only_spider(settings: Settings) -> str:
    names = list(spider_classes(settings))
    if len(names) == 1:
        return names[0]
    known = f"; there are {', '.join(names)} (SPIDERS)" if names else ""
    raise UsageError(f"which spider's items? Name it: scrapy-plus items SPIDER{known}")


def _check(stored: StoredItems, *, is_awaited: bool) -> None:
    state = stored.state()
    if state is None and not is_awaited:
        raise UsageError(
            f"Redis at {stored.where} has no crawl {stored.prefix}; name the spider, and with -s REDIS_URL, "
            "PROJECT_NAME or JOB if they are others"
        )
    if state is not None and is_awaited and stored.is_list():
        raise UsageError("--follow needs a stream: from a list (ITEMS_AS) consumers take items away")


def _pages(stored: StoredItems, cursor: str, *, follow: bool) -> Iterator[tuple[list[bytes], str]]:
    """The items behind the cursor, some at a time, and where each lot ends."""
    while True:
        has_ended = not follow or stored.state() == "finished"
        found, cursor = stored.items(cursor)
        if found:
            yield found, cursor
        elif has_ended:
            return
        else:
            time.sleep(LOOK_SECONDS)


def _print(stored: StoredItems, *, follow: bool) -> None:
    for found, _ in _pages(stored, "", follow=follow):
        sys.stdout.buffer.write(b"".join(item + b"\n" for item in found))
        sys.stdout.buffer.flush()


def _write(settings: Settings, stored: StoredItems, word: str, *, overwrite: bool, follow: bool) -> None:
    [(path, said)] = feeds_of([word], overwrite=overwrite)
    options: dict[str, Any] = {**settings.FEEDS.get(path, {}), **said}
    [feed] = make_feeds(settings, {path: options})
    export = Export(feed, notes_folder(settings))
    if not export.claim(stored.prefix):
        raise UsageError(f"the crawl itself is writing {path!r}; give another file")
    try:
        before = export.progress(stored.prefix)
        for found, cursor in _pages(stored, before.cursor, follow=follow):
            export.write(stored.prefix, found, cursor)
        written = export.progress(stored.prefix).written
    finally:
        export.release()
    click.echo(f"{written:,} items in {path}, {written - before.written:,} of them new", err=True)
