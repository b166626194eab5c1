"""The settings that name a Redis and say how it is used; default_settings takes them into the one list."""

from __future__ import annotations

from functools import partial

from scrapy_plus.conf.options import Option, boolean, choice, encoding, number, optional, text
from scrapy_plus.conf.redis_address import host, key_prefix, redis_params, redis_url, secret
from scrapy_plus.conf.redis_keys import key_pattern

redis = partial(Option, group="Redis", one_spider=False)
port = optional(number(1, 65_535, whole=True))
database = optional(number(0, whole=True))

REDIS_URL = redis(
    None,
    "The Redis that keeps the crawl, as redis://:password@host:6379/0, rediss:// for TLS, unix:///path, "
    "redis+sentinel://host:26379/master or redis+cluster://host:6379. Without it "
    "and the settings below, a crawl that needs a Redis starts one of its own in the project's folder.",
    optional(redis_url()),
)
REDIS_HOST = redis(
    None,
    "The same in parts, for who prefers them: the host; localhost if only others of the parts are set.",
    optional(host()),
)
REDIS_PORT = redis(None, "Its port; 6379 if not set.", port)
REDIS_DB = redis(None, "The number of the database there; 0 if not set.", database)
REDIS_PASSWORD = redis(None, "The password, also for a REDIS_URL without one.", optional(secret()))
REDIS_PARAMS = redis(
    {},
    "Further keywords of redis-py: username, socket_timeout, ssl_ca_certs, sentinel_password and the like.",
    redis_params(),
)
REDIS_RETRY_SECONDS = redis(
    60,
    "How long a process waits for a Redis that is away before it gives up; 0 is for ever.",
    number(0),
    unit="s",
)
SCHEDULER_FLUSH_ON_START = redis(
    False,
    "Whether the crawl starts anew, forgetting what is queued and seen; refused while other processes work on it.",
    boolean(),
)
SCHEDULER_SEED_AGAIN = redis(
    False,
    "Whether a finished crawl is seeded once more, as by --again: its start requests are asked again, and of what they "
    "lead to only what is new.",
    boolean(),
)
ITEMS_AS = redis(
    "stream",
    "How items are stored in Redis: a stream keeps them for any number of readers, a list is for BLPOP.",
    choice("stream", "list"),
)
REDIS_START_URLS_KEY = redis(
    None,
    "The key that other programs put URLs or requests into while the crawl runs: a list, a set or a sorted set. "
    "%(name)s is the spider's name; a spider's own redis_key wins.",
    optional(text()),
)
REDIS_START_URLS_BATCH_SIZE = redis(
    100, "How many entries of the feed are taken in at a time.", number(1, 1000, whole=True)
)
REDIS_START_URLS_ENCODING = redis("utf-8", "How the entries of the feed are encoded.", encoding())
MAX_IDLE_TIME_BEFORE_CLOSE = redis(
    0, "How long a crawl with a feed waits for entries before it ends; 0 is for ever.", number(0), unit="s"
)
REDIS_ITEMS_KEY = redis(
    None,
    "The key of the stored items, with %(spider)s for the spider's name and %(job)s for JOB; None is "
    "{project:spider}:items.",
    optional(key_pattern()),
)

# What the framework had before there was one address for everything. They must name the same place.

REDIS_BACKUP_NAME = redis("", "Stands before all keys of a crawl.", key_prefix())
REDIS_BACKUP_HOST = redis(None, "Like REDIS_HOST; must not name another.", optional(host()))
REDIS_BACKUP_PORT = redis(None, "Like REDIS_PORT; must not name another.", port)
REDIS_BACKUP_DB = redis(None, "Like REDIS_DB; must not name another.", database)
REDIS_BACKUP_PASSWORD = redis(None, "Like REDIS_PASSWORD; must not be another.", optional(secret()))
REDIS_QUEUE_NAME = redis("", "Like REDIS_BACKUP_NAME, which wins.", key_prefix())
REDIS_QUEUE_HOST = redis(None, "Like REDIS_HOST; must not name another.", optional(host()))
REDIS_QUEUE_PORT = redis(None, "Like REDIS_PORT; must not name another.", port)
REDIS_QUEUE_DB = redis(None, "Like REDIS_DB; must not name another.", database)
REDIS_QUEUE_PASSWORD = redis(None, "Like REDIS_PASSWORD; must not be another.", optional(secret()))
REDIS_SET_NAME = redis("", "Like REDIS_BACKUP_NAME, which wins.", key_prefix())
REDIS_SET_HOST = redis(None, "Like REDIS_HOST; must not name another.", optional(host()))
REDIS_SET_PORT = redis(None, "Like REDIS_PORT; must not name another.", port)
REDIS_SET_DB = redis(None, "Like REDIS_DB; must not name another.", database)
REDIS_SET_PASSWORD = redis(None, "Like REDIS_PASSWORD; must not be another.", optional(secret()))

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Option)]
