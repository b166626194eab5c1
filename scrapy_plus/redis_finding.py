"""The one server that a crawl is on where its address may change: the master that sentinels know, or the node of a
cluster that has the crawl's slot.

A crawl sits in one slot, so one plain connection is enough, as to any Redis. It asks again whenever it is made, hence
after a failover or a move of the slot nothing is left to do but to connect anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.retry import Retry

from scrapy_plus.conf.redis_address import RedisAddress

ASK_SECONDS = 2.0
"""How long one of several is waited for before the next one is asked."""
Node = tuple[str, int]
Answer = TypeVar("Answer")


class NotFound(redis.exceptions.ConnectionError):
    """Nobody who was asked knows the server; the text is a whole line. It may pass: a failover takes its time."""


class NotAllowed(AuthenticationError):
    """Those who know the server refuse the login; the text is a whole line."""


def in_one_slot(*keys: str) -> bool:
    """Whether a cluster keeps these keys on one node, whatever moves."""
    return len({key_slot(key.encode()) for key in keys}) < 2


class Finder:
    """Asks the sentinels or nodes of `address` for the server of the crawl whose keys begin with `prefix`.

    Without a prefix, the server of a cluster is any of its masters.
    """

    def __init__(self, address: RedisAddress, prefix: str = "") -> None:
        self.address = address
        self._slot = key_slot(prefix.encode()) if prefix else None
        self._prefix = prefix

    def find(self) -> Node:
        """Host and port. Raises NotFound or NotAllowed."""
        return self._first(self._master if self.address.found_by == "sentinel" else self._owner)

    def masters(self) -> list[Node]:
        """Each server that has a part of the data. Raises NotFound or NotAllowed."""
        if self.address.found_by == "sentinel":
            return [self.find()]
        return sorted({node for _, _, node in self._first(self._slots)})

    def _first(self, ask: Callable[[redis.Redis, Node], Answer]) -> Answer:
        """The answer of the first who has one, asked in the order of the address."""
        reasons: list[str] = []
        refused = False
        for node in self.address.nodes:
            try:
                with closing(self._client(node)) as client:
                    return ask(client, node)
            except AuthenticationError as error:
                refused = True
                reasons.append(f"{node[0]}:{node[1]}: {_words(error)}")
            except (RedisError, OSError) as error:
                reasons.append(str(error) if isinstance(error, NotFound) else f"{node[0]}:{node[1]}: {_words(error)}")
        line = "; ".join(dict.fromkeys(reasons))
        if refused:
            raise NotAllowed(f"{line}; {self._login()}")
        raise NotFound(line)

    def _login(self) -> str:
        if self.address.found_by == "cluster":
            return "is the login right? (REDIS_URL, REDIS_PASSWORD)"
        return "the sentinels have a login of their own: REDIS_PARAMS = {'sentinel_password': ...}"

    def _client(self, node: Node) -> redis.Redis:
        given = dict(self.address.options)
        options = {name: value for name, value in given.items() if name.startswith("ssl_")} if self.address.tls else {}
        login: tuple[Any, Any] = (self.address.username, self.address.password)
        if self.address.found_by == "sentinel":
            login = (given.get("sentinel_username"), given.get("sentinel_password"))
        return redis.Redis(
            host=node[0],
            port=node[1],
            username=login[0],
            password=None if login[1] is None else str(login[1]),
            ssl=self.address.tls,
            socket_timeout=ASK_SECONDS,
            socket_connect_timeout=ASK_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            **options,
        )

    # -- sentinels ----------------------------------------------------------------------------------------------------

    def _master(self, client: redis.Redis, node: Node) -> Node:
        name = self.address.master
        try:
            found: Any = client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", name)
            if found:
                return _text(found[0]), int(found[1])
            known: Any = client.sentinel_masters()  # by name
        except NoPermissionError:
            raise
        except ResponseError as error:
            if "unknown command" not in str(error).lower():
                raise
            raise NotFound(f"{node[0]}:{node[1]} is no sentinel; if it is the Redis itself, write redis://") from error
        names = ", ".join(repr(_text(name)) for name in known) or "none"
        raise NotFound(f"the sentinels know no master {name!r}; they know {names} (REDIS_URL)")

    # -- cluster ------------------------------------------------------------------------------------------------------

    def _owner(self, client: redis.Redis, node: Node) -> Node:
        slots = list(self._slots(client, node))
        if self._slot is None and slots:
            return slots[0][2]
        for first, last, owner in slots:
            if self._slot is not None and first <= self._slot <= last:
                return owner
        raise NotFound(
            f"nobody in the cluster has slot {self._slot}, where the keys {self._prefix}:* belong;"
            f" see: redis-cli --cluster check {node[0]}:{node[1]}"
        )

    def _slots(self, client: redis.Redis, node: Node) -> list[tuple[int, int, Node]]:
        try:
            answer: Any = client.execute_command("CLUSTER SLOTS")
        except ResponseError as error:
            if "cluster support disabled" not in str(error):
                raise
            raise NotFound(
                f"{node[0]}:{node[1]} is in no cluster; write redis:// instead of redis+cluster://"
            ) from error
        return list(_ranges(answer, node))


def _ranges(answer: Any, asked: Node) -> Iterator[tuple[int, int, Node]]:
    """First and last slot, and their master. A node that does not know its own name means the one that was asked."""
    if isinstance(answer, dict):  # how redis-py reads it: {(first, last): {"primary": (host, port), ...}}
        for (first, last), of in answer.items():
            host, port = of["primary"][:2]
            yield int(first), int(last), (_text(host) or asked[0], int(port))
        return
    for first, last, (host, port, *_), *_ in answer:
        yield int(first), int(last), (_text(host or b"") or asked[0], int(port))


def _text(word: Any) -> str:
    return word.decode() if isinstance(word, bytes) else str(word)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# -- connections -------------------------------------------------------------------------------------------------------


class _Found:
    """A connection to the server that `finder` finds at the time."""

    def __init__(self, *, finder: Finder, **options: Any) -> None:
        self._finder = finder
        super().__init__(**options)

    def _connect(self) -> Any:
        self.host, self.port = self._finder.find()
        return super()._connect()  # type: ignore[misc]


class FoundConnection(_Found, Connection):
    """In the clear."""


class FoundTLSConnection(_Found, SSLConnection):
    """Over TLS."""
