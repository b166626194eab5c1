"""Items into the crawl's own store in Redis, in the very step that ends their page: so each is there exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scrapy_plus.item import as_dict
from scrapy_plus.pipelines.plain import to_json


class RedisPipeline:
    """Keeps the items in Redis, as JSON, in the stream `{project:spider}:items` (ITEMS_AS, REDIS_ITEMS_KEY).

    It belongs among the PIPELINES; where it stands there is all the same, since an item is stored when it came through
    all of them. `place` is the key. Override `encode` to store something else than JSON; files (FEEDS, -o) need JSON.
    """

    def __init__(self, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self.place: str | None = None
        self._is_wanted = is_wanted

    def encode(self, item: Any) -> bytes:
        # A lone surrogate, which no encoding has, becomes its JSON escape this way.
        return to_json(as_dict(item)).encode("utf-8", "backslashreplace")

    def encode_items(self, items: list[Any], spider: Any) -> list[bytes]:
        return [self.encode(item) for item in items] if self._is_wanted() else []


class SoonKnown:
    """A question whose answer may become yes, and then stays so; it is asked at most every `every_seconds`."""

    def __init__(
        self, ask: Callable[[], bool], *, every_seconds: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._every_seconds = every_seconds
        self._clock = clock
        self._answer = False
        self._next_at = 0.0

    def __call__(self) -> bool:
        if not self._answer and self._clock() >= self._next_at:
            self._answer = self._ask()
            self._next_at = self._clock() + self._every_seconds
        return self._answer
