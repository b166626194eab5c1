"""A feed: a key that other programs fill, and beside it the batch that a node is taking in. Moved, never popped."""

from __future__ import annotations

import logging
from typing import Any

import redis

from scrapy_plus.errors import UsageError
from scrapy_plus.frontier.feed import MOST_ENTRIES, Batch
from scrapy_plus.frontier.server import is_passing

log = logging.getLogger("scrapy_plus.feed")

# Its keys may stand in another slot than the crawl's, so nothing here touches the frontier. The batch begins with the
# token of who moved it: the same ids come of it whoever takes it in, and a late node removes no other's batch.
# KEYS feed, batch   ARGV token, count   -> the batch. A batch that is there is answered again.
# Written before it is removed: a log that is torn in between repeats entries, and loses none.
_MOVE = """
if redis.call('EXISTS', KEYS[2]) == 1 then return redis.call('LRANGE', KEYS[2], 0, -1) end
local kind, last = redis.call('TYPE', KEYS[1]).ok, ARGV[2] - 1
local raw
if kind == 'none' then return {} end
if kind == 'list' then raw = redis.call('LRANGE', KEYS[1], 0, last)
elseif kind == 'set' then raw = redis.call('SRANDMEMBER', KEYS[1], ARGV[2])
elseif kind == 'zset' then raw = redis.call('ZREVRANGE', KEYS[1], 0, last)
else return redis.error_reply('FEEDTYPE ' .. kind) end
redis.call('RPUSH', KEYS[2], ARGV[1], unpack(raw))
if kind == 'list' then redis.call('LTRIM', KEYS[1], #raw, -1)
else redis.call(kind == 'set' and 'SREM' or 'ZREM', KEYS[1], unpack(raw)) end
return redis.call('LRANGE', KEYS[2], 0, -1)
"""
_REMOVE = "return redis.call('LINDEX', KEYS[1], 0) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


class RedisFeed:
    """The feed at `key`: a list, a set or a sorted set; `client` is a redis client that answers bytes."""

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self.key = key
        # The same slot in a cluster: a key without a tag becomes the tag of its batch.
        self.batch_key = f"{key}:processing" if "{" in key else "{" + key + "}:processing"

    def move(self, token: bytes, count: int) -> Batch | None:
        """Up to `count` entries, moved; or the batch that an earlier node left. None: there is nothing, or no answer.

        Raises UsageError for a key of another kind, or without the right to it.
        """
        found = self._call(_MOVE, 2, self.key, self.batch_key, token, min(count, MOST_ENTRIES))
        return Batch(found[0], found[1:]) if found else None

    def remove(self, batch: Batch) -> bool:
        """The batch has been taken in. False if another node was faster, or nobody answers: then it comes again."""
        return bool(self._call(_REMOVE, 1, self.batch_key, batch.token))

    def close(self) -> None:
        self._client.close()

    def _call(self, *command: Any) -> Any:
        """The answer, or None while the server is away: the crawl itself, which is in it too, waits or gives up."""
        try:
            return self._client.eval(*command)
        except redis.RedisError as error:
            if not is_passing(error):
                text = " ".join(str(error).split())
                _, is_kind, kind = text.partition("FEEDTYPE ")
                told = f"is a {kind}; a feed is a list, a set or a sorted set" if is_kind else f"cannot be read: {text}"
                raise UsageError(f"the feed {self.key!r} {told}") from None
            log.debug("the feed %s waits: %s", self.key, error)
            return None
