"""What stands in the queue of another framework, read some at a time and left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

from scrapy_plus.errors import UsageError

ENTRIES_A_CALL = 200


def entries(client: redis.Redis, key: str, *, newest_left: bool) -> Iterator[bytes]:
    """The entries of a list, sorted set or hash, those first that its framework would take first.

    `newest_left`: lists are pushed to on the left. Nothing may be added or taken meanwhile. Raises UsageError for a key
    that is not there, or is of another kind.
    """
    answer: Any = client.type(key)
    kind = answer.decode()
    if kind == "list":
        yield from _of_list(client, key, newest_left=newest_left)
    elif kind == "zset":
        yield from _of_zset(client, key)
    elif kind == "hash":
        for _, value in client.hscan_iter(key, count=ENTRIES_A_CALL):
            yield value
    elif kind == "none":
        raise UsageError(f"there is no key {key!r}; say which one the queue is, as in `migrate shop:requests`")
    else:
        raise UsageError(f"{key!r} is a {kind}; a queue is a list, a sorted set or a hash")


def _of_list(client: redis.Redis, key: str, *, newest_left: bool) -> Iterator[bytes]:
    length: Any = client.llen(key)
    for start in range(0, length, ENTRIES_A_CALL):
        if newest_left:
            end = length - 1 - start
            found: Any = client.lrange(key, max(0, end - ENTRIES_A_CALL + 1), end)
            yield from reversed(found)
        else:
            found = client.lrange(key, start, start + ENTRIES_A_CALL - 1)
            yield from found


def _of_zset(client: redis.Redis, key: str) -> Iterator[bytes]:
    """By score: the lowest is the first that is taken."""
    length: Any = client.zcard(key)
    for start in range(0, length, ENTRIES_A_CALL):
        found: Any = client.zrange(key, start, start + ENTRIES_A_CALL - 1)
        yield from found
