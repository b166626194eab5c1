"""The backup of a crawl as the historical framework showed it: requests by their fingerprints."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from scrapy_plus.conf.project import find_project
from scrapy_plus.conf.settings import Settings, load_settings
from scrapy_plus.core.committer import Committer
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import Undecodable, UsageError
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.request import Request
from scrapy_plus.redis_store import RedisStore
from scrapy_plus.rules.fingerprint import FINGERPRINT_BYTES
from scrapy_plus.wiring import build_scheduler, identify_by, make_spider, spider_classes

log = logging.getLogger("scrapy_plus.backup")

REQUESTS_A_CALL = 200


class RedisBackupRequest:
    """The requests of one crawl in Redis that wait or are worked on, for a program that puts in, changes or takes out.

    The crawl is that of `spider` in the project at hand (needless if it has one spider); settings may be given by name,
    as in `RedisBackupRequest("quotes", REDIS_URL=..., PROJECT_NAME=...)`, where there is no project. Nodes may work on
    it meanwhile. A request is named by itself, or by its fingerprint: 20 bytes as in `request.fp`, or their hex digits.
    Close it, or use it in a `with`. Raises SettingsError or UsageError in one line if Redis cannot be used.
    """

    def __init__(self, spider: str | None = None, **settings: Any) -> None:
        loaded = load_settings(find_project(parents=True), overrides=settings)
        self._store = RedisStore(loaded)
        try:
            name = spider or _only_spider(loaded)
            self._settings = _settings_of(name, loaded)
            self._frontier = self._store.join(name, self._settings)
            committer = Committer(self._frontier)
            self._scheduler = build_scheduler(name, self._settings, committer, Stats())
        except BaseException:
            self._store.close()
            raise
        self._identify = identify_by(self._settings)

    def save_request(self, fp: Request | bytes | str, request: Request | None = None) -> bool:
        """Queues the request unless the crawl has met it, as a link to it would; whether it was taken in.

        Its fingerprint follows from it, so that of the older form `save_request(fp, request)` need not be right.
        """
        return self._scheduler.add_request(_request_of(fp, request))

    def update_request(self, fp: Request | bytes | str, request: Request | None = None) -> bool:
        """Replaces what is stored of a request, whose place and counts stay; False if it is not there.

        A node that works on it now goes on with what it was given.
        """
        return self._frontier.replace(self._id(fp), encode(_request_of(fp, request)))

    def delete_request(self, fp: Request | bytes | str) -> bool:
        """Takes a request out of the crawl, that waits or is dead; it stays seen. False if it is not there.

        Raises IllegalMove while a node works on it.
        """
        return self._frontier.discard(self._id(fp))

    def get_requests(self) -> Iterator[Request]:
        """All requests that wait, with their `fp` and `retry_time`; read some at a time, so that any number will do.

        What comes or goes meanwhile may be left out, or come twice.
        """
        cursor = 0
        while True:
            found, cursor = self._frontier.waiting(cursor, REQUESTS_A_CALL)
            for id, payload, retries in found:
                try:
                    request = decode(payload)
                except Undecodable as error:
                    log.warning("a stored request cannot be read: %s", error)
                    continue
                request.fp, request.retry_time = id, retries
                request.spider_name = self._scheduler.spider_name
                yield request
            if not cursor:
                return

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._scheduler)

    get_backup_request_length = __len__

    def exist_request_backup(self) -> bool:
        """Whether any request waits."""
        return len(self) > 0

    def _id(self, fp: Request | bytes | str) -> bytes:
        if isinstance(fp, Request):
            return fp.fp or self._identify(fp)
        if isinstance(fp, bytes) and len(fp) == FINGERPRINT_BYTES:
            return fp
        try:
            id = bytes.fromhex(fp if isinstance(fp, str) else fp.decode("ascii"))
        except (ValueError, AttributeError, UnicodeDecodeError):
            id = b""
        if len(id) != FINGERPRINT_BYTES:
            digits = 2 * FINGERPRINT_BYTES
            raise ValueError(f"no fingerprint: {fp!r}; it is {FINGERPRINT_BYTES} bytes, or {digits} hexadecimal digits")
        return id

    def close(self) -> None:
        """Lets go of the connection; what is stored stays."""
        self._frontier.close()
        self._store.close()

    def __enter__(self) -> RedisBackupRequest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _request_of(fp: Request | bytes | str, request: Request | None) -> Request:
    found = fp if request is None else request
    if not isinstance(found, Request):
        raise TypeError(f"a Request is wanted, not {type(found).__name__}: {found!r}")
    return found


def _only_spider(settings: Settings) -> str:
    names = list(spider_classes(settings))
    if len(names) != 1:
        known = ", ".join(names) or "none"
        raise UsageError(f"which spider's crawl? RedisBackupRequest(NAME); there are {known} (SPIDERS)")
    return names[0]


def _settings_of(name: str, settings: Settings) -> Settings:
    """As the spider sees them, if it is one of the project at hand."""
    spider = spider_classes(settings).get(name)
    return settings if spider is None else settings.for_spider(make_spider(spider, {}))
