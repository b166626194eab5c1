"""The stored items of a crawl for those who only read: nothing is written, no crawl is made or joined."""

from __future__ import annotations

from functools import partial
from typing import Any

import redis

from scrapy_plus.frontier import wire
from scrapy_plus.frontier.keys import Keys
from scrapy_plus.frontier.server import Server


class StoredItems:
    """The items of the crawl below `prefix`, which may be under way, finished, or never have been."""

    def __init__(self, client: redis.Redis, prefix: str, *, retry_seconds: float = 60.0) -> None:
        self.prefix = prefix
        self._keys = Keys(prefix)
        self._server = Server(client, retry_seconds=retry_seconds)
        self._default_key = self._keys.items

    @property
    def where(self) -> str:
        """The Redis that was asked, without a password."""
        return self._server.where

    def state(self) -> str | None:
        """The state of the crawl: running, paused, stopped or finished; None if nothing of it is there."""
        state, key = self._server.call(self._look)
        self._keys.items = wire.text(key) if key else self._default_key
        if state is None and not self._server.call(lambda: self._server.client.exists(self._keys.items)):
            return None
        return wire.text(state or "finished")

    def _look(self) -> Any:
        return self._server.client.hmget(self._keys.meta, ["state", "items_key"])

    def is_list(self) -> bool:
        """Whether consumers take the items away, so that a position in them means nothing later."""
        return bool(self._server.call(lambda: self._server.client.type(self._keys.items)) == b"list")

    def count(self) -> int:
        client = self._server.client
        answer: Any = self._server.call(partial(client.llen if self.is_list() else client.xlen, self._keys.items))
        return int(answer)

    def items(self, cursor: str = "", count: int = 500) -> tuple[list[bytes], str]:
        """Some items in their order, and the cursor that goes on after them, as `Frontier.items` does."""
        return self._server.call(lambda: read_items(self._keys.items, cursor, count, self._server.client))

    def close(self) -> None:
        self._server.close()


def read_items(key: str, cursor: str, count: int, client: redis.Redis) -> tuple[list[bytes], str]:
    """Up to `count` items behind `cursor` of the stream or list `key`, and the cursor behind them."""
    if client.type(key) == b"list":
        start = int(cursor or 0)
        found: Any = client.lrange(key, start, start + count - 1)
        return found, str(start + len(found))
    entries: Any = client.xrange(key, min=f"({cursor}" if cursor else "-", count=count)
    return [fields[b"item"] for _, fields in entries], wire.text(entries[-1][0]) if entries else cursor
