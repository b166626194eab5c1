"""What can be seen of a crawl in Redis. Nothing here writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import redis

from scrapy_plus.frontier import redis_mending, wire
from scrapy_plus.frontier.base import Counts, DeadLetter, Location, Node, SiteFacts
from scrapy_plus.frontier.keys import Keys
from scrapy_plus.frontier.server import Server
from scrapy_plus.frontier.stored_items import read_items
from scrapy_plus.rules.lifecycle import State

SITES_LOOKED_AT = 1000
_LETTERS = {State.READY: "r", State.LEASED: "l", State.DELAYED: "d", State.DEAD: "x"}


class RedisLooking:
    """The looking half of `RedisFrontier`."""

    keys: Keys
    server: Server
    _run: Callable[..., Any]

    def _read(self, command: Callable[[redis.Redis], Any]) -> Any:
        return self.server.call(lambda: command(self.server.client))

    def site_facts(self, site: str) -> SiteFacts:
        queued, flat, usual = self._run("site_facts", site)
        return wire.read_site(queued, dict(zip(flat[::2], flat[1::2], strict=True)), usual)

    def sites(self, limit: int = 20) -> list[tuple[str, SiteFacts]]:
        """Of at most about a thousand sites those with most requests waiting: a display must not stop the crawl."""
        _, names = self._read(lambda client: client.hscan(self.keys.names, count=SITES_LOOKED_AT))
        numbers = [int(number) for number in names]

        def lengths(client: redis.Redis) -> Any:
            pipe = client.pipeline(transaction=False)
            for number in numbers:
                pipe.zcard(self.keys.queue(number))
            return pipe.execute()

        ranked = sorted(zip(self._read(lengths), names.values(), strict=True), key=lambda pair: -pair[0])
        return [(wire.text(name), self.site_facts(wire.text(name))) for _, name in ranked[:limit]]

    def locate(self, id: bytes) -> Location:
        return wire.read_location(self._run("locate", id, wire.member(id)))

    def scan(self, state: State, cursor: int = 0, count: int = 100) -> tuple[list[tuple[bytes, bytes]], int]:
        found, cursor = self._look_through(cursor, count)
        wanted = _LETTERS.get(state)
        return [(id, payload) for letter, (id, payload, _) in found if letter == wanted], cursor

    def waiting(self, cursor: int = 0, count: int = 100) -> tuple[list[tuple[bytes, bytes, int]], int]:
        found, cursor = self._look_through(cursor, count)
        return [one for letter, one in found if letter in "rd"], cursor

    def _look_through(self, cursor: int, count: int) -> tuple[list[tuple[str, tuple[bytes, bytes, int]]], int]:
        """A page of the backup, each request with the letter of its state ("-": it has gone meanwhile)."""
        cursor, found = self._read(lambda client: client.hscan(self.keys.req, cursor, count=count))
        letters, attempts = self._run("places", *found) if found else (b"", [])
        return [
            (letter, (id, value[wire.HEADER_BYTES :], attempt))
            for (id, value), letter, attempt in zip(found.items(), wire.text(letters), attempts, strict=True)
        ], cursor

    def dead_letters(self, cursor: int = 0, count: int = 100) -> tuple[list[DeadLetter], int]:
        found = self._read(lambda client: client.zrange(self.keys.dead, cursor, cursor + count, withscores=True))
        page = found[:count]
        if not page:
            return [], 0
        ids = [id for id, _ in page]
        bodies = self._read(lambda client: client.hmget(self.keys.req, ids))
        whys = self._read(lambda client: client.hmget(self.keys.why, ids))
        letters = [
            wire.read_dead(id, at_ms, body, why) for (id, at_ms), body, why in zip(page, bodies, whys, strict=True)
        ]
        return letters, cursor + count if len(found) > count else 0

    def dead_letter(self, id: bytes) -> DeadLetter | None:
        """The dead letter with this id."""
        at_ms = self._read(lambda client: client.zscore(self.keys.dead, id))
        if at_ms is None:
            return None
        body, why = (self._read(partial(_field, key, id)) for key in (self.keys.req, self.keys.why))
        return wire.read_dead(id, at_ms, body, why)

    def stats(self) -> dict[str, int]:
        values: Any = self._read(lambda client: client.hgetall(self.keys.stats))
        return {wire.text(name): int(value) for name, value in sorted(values.items())}

    def items(self, cursor: str = "", count: int = 100) -> tuple[list[bytes], str]:
        return self._read(partial(read_items, self.keys.items, cursor, count))  # type: ignore[no-any-return]

    def keeps_items(self) -> bool:
        """Whether a process of this crawl said that it wants the items, a file for example."""
        return bool(self._read(lambda client: client.hget(self.keys.meta, "keeps_items")))

    def state(self) -> str:
        return wire.text(self._read(lambda client: client.hget(self.keys.meta, "state")) or "running")

    def nodes(self) -> list[Node]:
        now = self.now()
        beats = self._read(lambda client: client.zrevrange(self.keys.nodes, 0, -1, withscores=True))
        facts = self._read(lambda client: client.hgetall(self.keys.facts))
        return [
            Node(wire.text(worker), json.loads(facts.get(worker, b"{}")), now - at_ms / 1000)
            for worker, at_ms in beats
            if now - at_ms / 1000 < 3600
        ]

    def overridden_pace(self) -> tuple[float | None, int | None]:
        """Delay in seconds and limit that an operator set for all sites; None for what was not set."""
        delay, limit = self._read(lambda client: client.hmget(self.keys.meta, ["set_delay", "set_limit"]))
        return None if delay is None else int(delay) / 1000, None if limit is None else int(limit)

    def counts(self) -> Counts:
        bodies, leased, delayed, dead, seen, done = self._run("counts")
        return Counts(bodies - leased - delayed - dead, leased, delayed, dead, seen, done)

    def now(self) -> float:
        return int(self._run("now")) / 1000

    def audit(self) -> list[str]:
        return redis_mending.audit(self)

    def repair(self) -> int:
        return redis_mending.repair(self)


def _field(key: str, id: bytes, client: redis.Redis) -> Any:
    return client.hget(key, id)
