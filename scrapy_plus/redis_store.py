"""A crawl in a Redis, for one process or many: its keys, and what each of its processes does beside the pages."""

from __future__ import annotations

import logging
import os
import re
from itertools import islice
from pathlib import Path

from scrapy_plus.conf.redis_address import RedisAddress, parse_redis_url, redis_address
from scrapy_plus.conf.redis_keys import before_tag, items_key, project_name
from scrapy_plus.conf.settings import Settings
from scrapy_plus.core.attendants import Attendant, Keeper, Renewal
from scrapy_plus.core.committer import Committer
from scrapy_plus.core.seeder import FeedOptions
from scrapy_plus.core.spider import Spider
from scrapy_plus.core.started import StartedFile
from scrapy_plus.embedded import EmbeddedRedis, open_embedded
from scrapy_plus.errors import SettingsError, UsageError
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.frontier.keys import crawl_prefix
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.frontier.redis_feed import RedisFeed
from scrapy_plus.frontier.stored_items import StoredItems
from scrapy_plus.redis_client import check_server, clients_of_all, make_client, redis_errors
from scrapy_plus.redis_finding import Finder, in_one_slot
from scrapy_plus.stores import NODE, STARTED, concurrency_of, feed_key, pace_of

log = logging.getLogger("scrapy_plus.store")

PREFETCH = 2
"""Leases kept ready, in pages worked on at a time: less leaves workers waiting, more breaks the order of the crawl."""
RENEWALS_A_LEASE = 3
WATCH_SECONDS = 10.0
"""How long somebody at a terminal waits for a Redis that is away."""
CRAWLS_FOUND = 1000


class RedisStore:
    """The Redis that the settings name, else one of the project's own, started here if nobody has.

    Raises: SettingsError or UsageError in one line each for a server that is wrong, too old or not there.
    """

    def __init__(self, settings: Settings) -> None:
        address, notes = redis_address(settings.as_dict())
        self._embedded: EmbeddedRedis | None = None
        self._started: StartedFile | None = None
        folder = settings.project_dir or Path.cwd()
        if address is None:
            address = self._start_embedded(folder)
        self.address: RedisAddress = address
        self._before, more = before_tag(settings.as_dict())
        for note in (*notes, *more):
            log.warning("%s", note)
        self._project = project_name(settings.PROJECT_NAME, folder, is_embedded=self._embedded is not None)
        self._job: str = settings.JOB
        if NODE not in os.environ:
            self._look_at_server()

    def _look_at_server(self) -> None:
        """Not for a supervisor's worker: a Redis that is away as it starts was there before, and is waited for."""
        with redis_errors(self.address):
            clients = clients_of_all(self.address)
        for client in clients:
            for line in check_server(client, in_cluster=self.address.found_by == "cluster"):
                log.warning("%s", line)
            client.close()

    def _start_embedded(self, folder: Path) -> RedisAddress:
        self._embedded = open_embedded(folder)
        return parse_redis_url(self._embedded.url)

    def frontier(self, spider_name: str, settings: Settings) -> RedisFrontier:
        """The crawl of this spider, over a connection of its own; a Redis of the project's own is kept alive."""
        if self.address.found_by == "cluster" and NODE not in os.environ:
            self._check_slot(spider_name, settings)
        frontier = self._connect(spider_name, settings)
        if self._embedded is not None:
            frontier.server.on_away = self._embedded.ensure
        return frontier

    def _check_slot(self, spider_name: str, settings: Settings) -> None:
        """Raises in one line: UsageError if no node has the crawl's slot, SettingsError for items in another one."""
        prefix = self._prefix(spider_name)
        with redis_errors(self.address):
            Finder(self.address, prefix).find()
        key = items_key(settings.REDIS_ITEMS_KEY, prefix=prefix, spider=spider_name, job=self._job)
        if not in_one_slot(prefix, key):
            raise SettingsError(
                f"REDIS_ITEMS_KEY: in a cluster {key!r} belongs to another slot than the crawl; "
                f"give it the same braces, as in {prefix + ':my-items'!r}"
            )

    def join(self, spider_name: str, settings: Settings) -> RedisFrontier:
        """The crawl of this spider for a program that puts requests in beside its nodes, or before there are any."""
        return self._connect(spider_name, settings, joins=True)

    def _connect(
        self, spider_name: str, settings: Settings, *, joins: bool = False, loads: bool = False
    ) -> RedisFrontier:
        prefix = self._prefix(spider_name)
        client = make_client(self.address, prefix=prefix)
        return RedisFrontier(
            client,
            prefix,
            order=settings.SCHEDULER_QUEUE_CLASS,
            pace=pace_of(settings),
            lease_seconds=settings.LEASE_SECONDS,
            max_lost=settings.MAX_LOST,
            retry_seconds=settings.REDIS_RETRY_SECONDS or float("inf"),
            items_as=settings.ITEMS_AS,
            items_key=items_key(settings.REDIS_ITEMS_KEY, prefix=prefix, spider=spider_name, job=settings.JOB),
            keeps_items=bool(settings.FEEDS) and not joins,
            joins=joins,
            loads=loads,
        )

    def watch(self, spider_name: str, settings: Settings) -> RedisFrontier:
        """The crawl of this spider for somebody who looks at it or steers it. Raises UsageError if there is none."""
        retry_seconds = min(WATCH_SECONDS, settings.REDIS_RETRY_SECONDS or WATCH_SECONDS)
        prefix = self._prefix(spider_name)
        client = make_client(self.address, prefix=prefix)
        with redis_errors(self.address):
            is_there = client.exists(f"{prefix}:meta")
        if not is_there:
            others = "name the spider with --spider, and with -s REDIS_URL, PROJECT_NAME or JOB if they are others"
            raise UsageError(f"Redis at {self.address} has no crawl {prefix}; {others}")
        return RedisFrontier(client, prefix, joins=True, retry_seconds=retry_seconds)

    def load(self, spider_name: str, settings: Settings) -> RedisFrontier:
        """The crawl of this spider for who fills it from elsewhere."""
        return self._connect(spider_name, settings, joins=True, loads=True)

    def crawls(self) -> list[str]:
        """The spiders of this project and JOB that have a crawl here, found by the names of keys."""
        found = []
        end = f":{self._job}}}:meta" if self._job else "}:meta"
        start = f"{self._before}{{{self._project}:"
        pattern = re.sub(r"([*?\[\]^\\])", r"\\\1", start) + "*" + end
        with redis_errors(self.address):
            for client in clients_of_all(self.address):
                for key in islice(client.scan_iter(match=pattern, count=5000), CRAWLS_FOUND):
                    found.append(key.decode()[len(start) : -len(end)])
                client.close()
        return sorted(name for name in found if ":" not in name)

    def stored_items(self, spider_name: str, settings: Settings) -> StoredItems:
        """The items of this spider's crawl, for those who only read."""
        retry_seconds = settings.REDIS_RETRY_SECONDS or float("inf")
        prefix = self._prefix(spider_name)
        return StoredItems(make_client(self.address, prefix=prefix), prefix, retry_seconds=retry_seconds)

    def _prefix(self, spider_name: str) -> str:
        return crawl_prefix(self._project, spider_name, self._job, before=self._before)

    def committer(self, frontier: Frontier, settings: Settings) -> Committer:
        """One that makes the calls in a greenlet; a worker process bears the name that its supervisor gave it."""
        prefetch = PREFETCH * concurrency_of(settings)
        path = os.environ.get(STARTED)
        if path and self._started is None:
            self._started = StartedFile(Path(path), max(1, settings.CONCURRENT_REQUESTS))
        return Committer(
            frontier,
            worker=os.environ.get(NODE),
            is_remote=True,
            prefetch=prefetch,
            started=self._started,
            clears=not settings.SCHEDULER_PERSIST,
        )

    def attendants(
        self, spider_name: str, frontier: Frontier, committer: Committer, settings: Settings
    ) -> list[Attendant]:
        renewal = Renewal(
            committer,
            lambda: self._connect(spider_name, settings),  # another thread: only this one starts servers
            every_seconds=settings.LEASE_SECONDS / RENEWALS_A_LEASE,
            callback_seconds=settings.CALLBACK_SECONDS,
        )
        keeper = Keeper(
            self.frontier(spider_name, settings),
            committer,
            renewal,
            role=settings.ROLE or "master and slave",
            misses_slaves=settings.ROLE == "master" and not settings.WORKERS,
        )
        return [committer, keeper, renewal]

    def feed(self, spider: Spider, settings: Settings) -> FeedOptions | None:
        """What other programs bring for this spider, over a connection of its own; None if nobody was told to."""
        key = feed_key(spider, settings)
        if not key:
            return None
        return FeedOptions(
            RedisFeed(make_client(self.address, prefix=key), key),
            batch=settings.REDIS_START_URLS_BATCH_SIZE,
            encoding=settings.REDIS_START_URLS_ENCODING,
            idle_seconds=settings.MAX_IDLE_TIME_BEFORE_CLOSE or float("inf"),
        )

    def close(self) -> None:
        if self._embedded is not None:
            self._embedded.close()
