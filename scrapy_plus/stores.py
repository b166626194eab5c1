"""Which store a crawl lives in, and how its sites are asked at first."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy_plus.conf.settings import Settings
from scrapy_plus.core.attendants import Attendant
from scrapy_plus.core.committer import Committer
from scrapy_plus.core.seeder import FeedOptions
from scrapy_plus.core.spider import Spider
from scrapy_plus.errors import NodesAlive, SettingsError, UsageError
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.http.url import host_of
from scrapy_plus.rules.pace import Pace

if TYPE_CHECKING:
    from scrapy_plus.redis_store import RedisStore

log = logging.getLogger("scrapy_plus.store")

JITTER = 0.5
USUAL_FEED = "%(name)s:start_urls"
NODE = "SCRAPY_PLUS_NODE"
STARTED = "SCRAPY_PLUS_STARTED"
"""The environment variables in which a supervisor gives a worker process its name, and where to tell what it does."""


def open_store(settings: Settings) -> MemoryStore | RedisStore:
    """The store that ROLE and SCHEDULER_PERSIST ask for: any role, or persistence, needs a Redis."""
    if settings.ROLE or settings.SCHEDULER_PERSIST:
        from scrapy_plus.redis_store import RedisStore  # a crawl in memory need not load a client for Redis

        return RedisStore(settings)
    if settings.SCHEDULER_SEED_AGAIN:
        raise UsageError("--again needs a crawl that was kept: set SCHEDULER_PERSIST = True")
    if settings.WORKERS:
        raise UsageError(
            "--workers needs a store that processes can share: say master or slave, or SCHEDULER_PERSIST = True"
        )
    return MemoryStore()


def feed_key(spider: Spider, settings: Settings) -> str:
    """The key that other programs fill for this spider; "" if there is none."""
    own = getattr(spider, "redis_key", None)
    pattern = own or settings.REDIS_START_URLS_KEY or (USUAL_FEED if hasattr(spider, "redis_key") else "")
    if not isinstance(pattern, str):
        raise SettingsError(f"redis_key of {spider.name}: {pattern!r} is no text; one feed is read, name its key")
    return pattern.replace("%(name)s", str(spider.name)).replace("%(spider)s", str(spider.name))


def begin(frontier: Frontier, settings: Settings, *, has_feed: bool = False) -> None:
    """What comes before the first seed: a crawl that starts anew or once more, or what a finished one left.

    A slave only joins, a supervisor's worker what its master began. Raises UsageError for a flush while others work.
    """
    if NODE in os.environ:
        return
    if settings.ROLE and not settings.SCHEDULER_PERSIST and frontier.clear_finished(reopens=True):
        frontier.open()
    if settings.ROLE == "slave":
        return
    if settings.SCHEDULER_FLUSH_ON_START:
        try:
            frontier.flush()
        except NodesAlive as error:
            raise UsageError(f"not started anew: {error}") from None
    if frontier.state() == "stopped":
        frontier.set_state("running")  # somebody stopped it, and now somebody starts it
    if has_feed and frontier.begin_again():
        log.info("the crawl was finished; it goes on with what comes in its feed")
    elif settings.SCHEDULER_SEED_AGAIN and not frontier.begin_again():
        log.info("the crawl is not finished: it goes on, and is not seeded once more")


def pace_of(settings: Settings) -> Pace:
    """How every site is asked at first: one by one while its robots.txt is unknown, if that is obeyed, and slowly while
    its latency is unknown, if that matters."""
    if is_offline(settings):
        return Pace()
    slow_seconds = settings.AUTOTHROTTLE_START_DELAY if settings.AUTOTHROTTLE_ENABLED else 0.0
    return replace(usual_pace(settings), is_gated=settings.ROBOTSTXT_OBEY, slow_seconds=slow_seconds)


def is_offline(settings: Settings) -> bool:
    """Whether no site is asked at all."""
    return bool(settings.HTTPCACHE_ENABLED and settings.HTTPCACHE_IGNORE_MISSING)


def own_pace(settings: Settings, place: str) -> Pace:
    """How this site is asked: as DOWNLOAD_SLOTS says, by site or host, else as every other."""
    usual = usual_pace(settings)
    slots = settings.DOWNLOAD_SLOTS
    slot = slots.get(place) or slots.get(host_of(place)) if slots else None
    if slot is None:
        return usual
    return Pace(
        float(slot.get("delay", usual.delay_seconds)), int(slot.get("concurrency", usual.limit)), jitter=usual.jitter
    )


def usual_pace(settings: Settings) -> Pace:
    """How every site is asked that has no pace of its own; one that is not asked at all (offline) needs none."""
    if is_offline(settings):
        return Pace()
    jitter = JITTER if settings.RANDOMIZE_DOWNLOAD_DELAY else 0.0
    return Pace(settings.DOWNLOAD_DELAY, settings.CONCURRENT_REQUESTS_PER_DOMAIN, jitter=jitter)


def concurrency_of(settings: Settings) -> int:
    """How many requests this process works on at a time: none, if it only seeds or watches."""
    is_watching = settings.ROLE == "master" or settings.WORKERS
    return 0 if is_watching else settings.CONCURRENT_REQUESTS


class MemoryStore:
    """Everything in this process, gone with it."""

    def frontier(self, spider_name: str, settings: Settings) -> Frontier:
        return MemoryFrontier(order=settings.SCHEDULER_QUEUE_CLASS, pace=pace_of(settings), max_lost=settings.MAX_LOST)

    def committer(self, frontier: Frontier, settings: Settings) -> Committer:
        return Committer(frontier)

    def attendants(
        self, spider_name: str, frontier: Frontier, committer: Committer, settings: Settings
    ) -> list[Attendant]:
        return []

    def feed(self, spider: Spider, settings: Settings) -> FeedOptions | None:
        """None: other programs cannot reach into this one. Raises SettingsError if that was wanted."""
        if key := feed_key(spider, settings):
            raise SettingsError(
                f"the feed {key!r} of {spider.name} needs a crawl that is kept in Redis; set SCHEDULER_PERSIST = True "
                "or a ROLE"
            )
        return None

    def close(self) -> None:
        return None
