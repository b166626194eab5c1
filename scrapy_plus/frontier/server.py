"""One Redis server, and the one place where its errors are understood.

redis-py's own retries are off: it would send a command again, silently, not knowing whether it was carried out. Here,
too, an unknown outcome means the same call again, but every call is one script that changes nothing the second time.
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_plus.errors import FrontierError, FrontierUnavailable, ScrapyPlusError
from scrapy_plus.frontier.script import Script

log = logging.getLogger("scrapy_plus.frontier")

Argument = bytes | str | int | float
Answer = TypeVar("Answer")
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.01, 2.0
# Refused before anything was written, and it will pass: the server starts, fails over, is full or waits for its disk.
_PASSING = re.compile(
    r"(?:^|[\s:-])(LOADING|BUSY|READONLY|OOM|MISCONF|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|UNBLOCKED|UNKILLABLE)\b"
)
_PASSING_CLASSES = (
    redis.exceptions.BusyLoadingError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.TryAgainError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.MasterDownError,
    redis.exceptions.AskError,  # and MOVED: the slot is, or comes, elsewhere
)
_ELSEWHERE = (redis.exceptions.ReadOnlyError, redis.exceptions.AskError, redis.exceptions.ClusterDownError)
_READONLY = re.compile(r"(?:^|[\s:-])READONLY\b")  # Redis 6.2 wraps what a script met into an error of the script
_FORBIDDEN_IN_A_SCRIPT = re.compile("The user executing the script can't|ACL failure in script")  # releases differ
_UNKNOWN_OUTCOME = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)


class NoCrawl(FrontierError):
    """The server knows nothing of this crawl: it was never opened, or all was taken away."""


class Forbidden(FrontierError):
    """The user of this connection may not do that."""


class _NotMet(redis.exceptions.RedisError):
    """The server that answers is another than before."""


_troubles: dict[str, Server] = {}
"""Who has told of the trouble with a server: the others of this process, all waiting for the same, need not."""


class Server:
    """Calls to the Redis that `client` leads to, each repeated until it is answered, for at most `retry_seconds`, and
    with at most `longest_wait_seconds` from one to the next.

    `met_in` is the hash whose field `server` holds the run id under which the crawl was opened last; it is read only
    for a user to whom the server does not tell its own.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        met_in: str = "",
        retry_seconds: float = 60.0,
        longest_wait_seconds: float = _LONGEST_WAIT_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sleep = sleep
        self.client = redis.Redis(connection_pool=self._pool_like(client.connection_pool))
        self.run_id = ""
        self.round_trips = 0
        self.repeats = 0
        """How many calls were sent again, the outcome of the first being unknown."""
        self.on_new_server: Callable[[], None] | None = None
        self.on_away: Callable[[], None] | None = None
        self._met_in = met_in
        self._is_closed = False
        self._retry_seconds = retry_seconds
        self._longest_wait = min(_LONGEST_WAIT_SECONDS, longest_wait_seconds)
        self._clock = clock
        self._met = ""
        self._meeting = threading.RLock()
        self._meeter: int | None = None

    def _pool_like(self, pool: redis.ConnectionPool) -> redis.ConnectionPool:
        """A pool of our own to the same server: without redis-py's retries, and asking each connection who answers."""
        options = {
            **pool.connection_kwargs,
            "retry": Retry(NoBackoff(), 0),
            "retry_on_timeout": False,
            "redis_connect_func": self._on_connect,
        }
        return redis.ConnectionPool(pool.connection_class, **options)

    @property
    def where(self) -> str:
        """The address, without a password."""
        options = self.client.connection_pool.connection_kwargs
        if finder := options.get("finder"):
            return str(finder.address)
        return str(options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}")

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """The answer of a script: by its name, and by its text where the server does not know it."""
        return self.call(lambda: self._evaluate(script, keys, arguments))

    def _evaluate(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        try:
            self.round_trips += 1
            return self.client.evalsha(script.sha, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            self.round_trips += 1
            return self.client.eval(script.text, len(keys), *keys, *arguments)

    def call(self, command: Callable[[], Answer]) -> Answer:
        """The answer of `command`, sent again while its outcome is unknown or the server cannot take it yet.

        Raises FrontierUnavailable when that has lasted for `retry_seconds`, FrontierError for what will not pass.
        """
        since, wait = None, _FIRST_WAIT_SECONDS
        while True:
            try:
                self._meet_new_server()
                answer = command()
            except _NotMet:
                continue
            except (redis.exceptions.RedisError, OSError) as error:
                since = self._judge(error, since)
            else:
                self._end_trouble(since)
                if self._is_closed:
                    self._hang_up()
                return answer
            self._bring_back()
            self.repeats += 1
            self.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(self._longest_wait, wait * 2)

    def _bring_back(self) -> None:
        """Whoever started the server may start it again. Raises FrontierUnavailable if he cannot."""
        if self.on_away is not None:
            try:
                self.on_away()
            except ScrapyPlusError as error:
                raise FrontierUnavailable(str(error)) from error

    def _judge(self, error: Exception, since: float | None) -> float:
        """When the trouble began; raises what waiting will not mend."""
        if not is_passing(error):
            raise self._final(error) from error
        now = self._clock()
        if isinstance(error, _ELSEWHERE) or _READONLY.search(str(error)):
            self._hang_up()  # the name, the sentinels or the cluster may lead elsewhere now
        if since is None:
            if _troubles.setdefault(self.where, self) is self:
                log.warning("Redis at %s: %s; trying again for %.0f s", self.where, _text(error), self._retry_seconds)
            return now
        if now - since >= self._retry_seconds:
            _troubles.pop(self.where, None)
            raise FrontierUnavailable(
                f"no usable Redis at {self.where} for {now - since:.0f} s ({_text(error)}); is it running?"
                " Nothing is lost: start again when it is (REDIS_URL, REDIS_RETRY_SECONDS)"
            ) from error
        return since

    def _end_trouble(self, since: float | None) -> None:
        if since is not None and _troubles.pop(self.where, None) is not None:
            log.info("Redis at %s answers again after %.1f s", self.where, self._clock() - since)

    def _final(self, error: Exception) -> FrontierError:
        text = _text(error)
        if "NOCRAWL" in text:
            return NoCrawl(text)
        if isinstance(error, redis.exceptions.NoPermissionError) or _FORBIDDEN_IN_A_SCRIPT.search(text):
            return Forbidden(
                f"Redis at {self.where} refuses: {text}; its user must be allowed more: see Rights in docs/protocol.md"
            )
        if "WRONGTYPE" in text:
            return FrontierError(f"a key of this crawl at {self.where} holds what another program wrote: {text}")
        return FrontierError(f"Redis at {self.where} refuses: {text}")

    # -- which server is it -------------------------------------------------------------------------------------------

    def _on_connect(self, connection: Any) -> None:
        """Each new connection finds out which server it leads to: a restarted one may have lost its last second.

        Nothing is sent to a server that is not met yet, but by who meets it: the log may have been torn, and an ack on
        top of a half script would stay.
        """
        connection.on_connect()
        if self.on_new_server is None:
            return
        self.run_id = self._run_id_of(connection)
        if self._is_new() and self._meeter != threading.get_ident():
            raise _NotMet

    def _run_id_of(self, connection: Any) -> str:
        try:
            told = _text_of(_ask(connection, "INFO", "server"))
        except redis.exceptions.ResponseError:
            told = ""  # this user may not ask
        found = re.search(r"run_id:(\w+)", told)
        return found[1] if found else self._marked(connection)

    def _marked(self, connection: Any) -> str:
        """A run id of our own for a server that does not tell its: the name of a script that does nothing.

        A server forgets its scripts when it ends, so while it knows the one that the crawl was opened under it is the
        same. A server that forgot it for another reason is mended once more, which does no harm.
        """
        known = _text_of(_ask(connection, "HGET", self._met_in, "server") or "none")
        if _ask(connection, "SCRIPT", "EXISTS", known) == [1]:
            return known
        marker = f"return '{uuid.uuid4().hex}'"
        _ask(connection, "EVAL", marker, 0)
        return sha1(marker.encode(), usedforsecurity=False).hexdigest()

    def _meet_new_server(self) -> None:
        """Before a call to a server that was not met yet: `on_new_server`, once; other callers wait for it.

        Again if meanwhile there is another one: the connection leads to that already, and would not ask once more.
        """
        while self._is_new() and self._meeter != threading.get_ident():
            with self._meeting:
                if self._is_new() and self.on_new_server is not None:
                    self._meeter = threading.get_ident()
                    try:
                        self.on_new_server()
                    finally:
                        self._meeter = None

    def _is_new(self) -> bool:
        return self.run_id != self._met and self.on_new_server is not None

    def connect(self) -> None:
        """Finds out which server answers, and meets it."""
        self.call(self.client.ping)

    def close(self) -> None:
        """Ends the connections, each after the call that is under way on it; a later call ends its own."""
        self._is_closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        # A client that was given its pool would leave them open. One cut under a call would end its greenlet with
        # nonsense; that call hears for itself that it is in the wrong place.
        self.client.connection_pool.disconnect(inuse_connections=False)

    def met(self, run_id: str) -> None:
        """The server with this run id is known, and what had to be done on it is done."""
        self._met = run_id


def is_passing(error: Exception) -> bool:
    """Whether the same call may be answered later: its outcome is unknown, or the server could not take it yet."""
    if isinstance(error, redis.exceptions.AuthenticationError):
        return False
    if isinstance(error, (*_UNKNOWN_OUTCOME, *_PASSING_CLASSES)):
        return True
    return isinstance(error, redis.exceptions.ResponseError) and _PASSING.search(str(error)) is not None


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _text_of(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _ask(connection: Any, *command: Argument) -> Any:
    connection.send_command(*command)
    return connection.read_response()
