"""From settings to where items go: the user's pipelines, files, and the crawl's own store."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scrapy_plus.conf.settings import Settings
from scrapy_plus.core.spider import Spider
from scrapy_plus.errors import SettingsError
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.pipelines.export import Export, Exporter
from scrapy_plus.pipelines.feeds import Feed, build_feeds
from scrapy_plus.pipelines.redis_items import RedisPipeline, SoonKnown
from scrapy_plus.stores import MemoryStore

if TYPE_CHECKING:
    from scrapy_plus.frontier.redis import RedisFrontier
    from scrapy_plus.redis_store import RedisStore


@dataclass(slots=True)
class Files:
    """The files of a run by path: one writer a file, however many spiders write to it."""

    feeds: dict[str, Feed] = field(default_factory=dict)
    exports: dict[str, Export] = field(default_factory=dict)


def item_places(
    parts: list[Any],
    spider: Spider,
    settings: Settings,
    files: Files,
    store: MemoryStore | RedisStore,
    frontier: Frontier,
) -> tuple[list[Any], list[Exporter]]:
    """All pipelines, the user's `parts` among them, and who writes files beside them.

    Items of many processes are gathered in the crawl's store first, and it takes them in with the acks of their pages.
    A process that knows of no file does so too if another one of the crawl wants a file.
    """
    encoders = [part for part in parts if hasattr(part, "encode_items")]
    if isinstance(store, MemoryStore):
        if encoders:
            raise SettingsError(
                f"PIPELINES: {type(encoders[0]).__name__} needs a crawl that is kept in Redis; set SCHEDULER_PERSIST = "
                "True or a ROLE, or write the items to a file (FEEDS)"
            )
        return [*parts, *_feeds(settings, files)], []
    kept = cast("RedisFrontier", frontier)
    for part in encoders:
        part.place = kept.keys.items
    riders = [] if encoders else [RedisPipeline(is_wanted=SoonKnown(kept.keeps_items))]
    if settings.ROLE == "slave" or not settings.FEEDS:
        return [*parts, *riders], []
    own = store.frontier(str(spider.name), settings)
    return [*parts, *riders], [Exporter(own, kept.keys.prefix, _exports(settings, files), spider.stats)]


def _feeds(settings: Settings, files: Files) -> list[Feed]:
    for path, options in settings.FEEDS.items():
        if path not in files.feeds:
            [files.feeds[path]] = make_feeds(settings, {path: options})
    return [files.feeds[path] for path in settings.FEEDS]


def make_feeds(settings: Settings, feeds: dict[str, Any]) -> list[Feed]:
    return build_feeds(feeds, fields=settings.FEED_EXPORT_FIELDS, csv_safe=settings.CSV_SAFE)


def _exports(settings: Settings, files: Files) -> list[Export]:
    if settings.ITEMS_AS == "list":
        raise SettingsError(
            "ITEMS_AS = 'list' is for consumers that take the items away, so no file can be written from them; "
            "take out either that or FEEDS (-o)"
        )
    for feed in _feeds(settings, files):
        if feed.place not in files.exports:
            files.exports[feed.place] = Export(feed, notes_folder(settings))
    return [files.exports[feed.place] for feed in _feeds(settings, files)]


def notes_folder(settings: Settings) -> Path:
    """Where is noted how far files have come that are written from stored items."""
    return (settings.project_dir or Path.cwd()) / ".scrapy_plus" / "feeds"
