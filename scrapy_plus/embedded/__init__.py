"""A Redis of the project's own, for crawls that need one where nobody runs any.

The data is in `<project>/.scrapy_plus/redis/`, the socket below /tmp, because the name of a socket has at most about
107 bytes. Three locks say who is there. The kernel lets go of them when a process ends, however it ends, so that there
is nothing to clean up after a kill:

- `start.lock`: who holds it starts, takes over or stops the server; one at a time.
- `users.lock`: shared by every process that uses the server; who gets it alone, when it closes, is the last one.
- `server.lock`: the server's own, inherited at its start. A process id would come again, and mean nothing in another
  container.

A server begins on a socket of another name and gets the real one when it has read its log and written it anew: a log
that was torn within a script is cut by the first start, but what is appended behind the cut brings the half script to
life at the second (valkey-io/valkey#4342). So nobody can write before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from scrapy_plus.conf.redis_address import RedisAddress
from scrapy_plus.embedded.places import Lock, data_folder
from scrapy_plus.embedded.server import STOP_SECONDS, Server
from scrapy_plus.errors import UsageError

__all__ = ["EmbeddedRedis", "open_embedded"]

_log = logging.getLogger("scrapy_plus.embedded")
_RESTARTS, _WITHIN_SECONDS = 5, 60.0


def open_embedded(project_dir: Path | str) -> EmbeddedRedis:
    """The project's Redis, started if it does not run; the caller is one of its users until `close`.

    To be called in the main thread, where child processes can be waited for.
    Raises: UsageError in one line if there is no redis-server, or no room for its data.
    """
    return EmbeddedRedis(Path(project_dir))


class EmbeddedRedis:
    """One user's hold on the project's Redis. `url` is where it is."""

    def __init__(self, project_dir: Path) -> None:
        self._server = Server(data_folder(project_dir))
        self._restarts: list[float] = []
        self._users: Lock | None = None
        with self._my_turn():
            users = Lock(self._server.data / "users.lock")
            try:
                users.take(shared=True)
                self._server.bring_up()
            except BaseException:
                users.close()
                raise
            self._users = users

    @property
    def address(self) -> RedisAddress:
        return RedisAddress(socket_path=str(self._server.socket))

    @property
    def url(self) -> str:
        return self.address.url

    def ensure(self) -> None:
        """Starts the server again if it is gone; for who was refused a connection. Once closed, nothing happens.

        Raises: UsageError if it ends again and again, or does not start.
        """
        if self._users is None:
            return
        with self._my_turn():
            if self._server.is_reachable():
                return
            now = time.monotonic()
            self._restarts = [at for at in self._restarts if now - at < _WITHIN_SECONDS]
            if len(self._restarts) >= _RESTARTS:
                raise UsageError(f"the crawl's Redis ended {_RESTARTS} times within a minute; see {self._server.log}")
            if self._server.bring_up():
                _log.warning("the Redis in %s was gone and was started again", self._server.data)
                self._restarts.append(now)

    def close(self) -> None:
        """Lets go of the server, and ends it if nobody else uses it. A second call does nothing."""
        users, self._users = self._users, None
        if users is None:
            return
        try:
            with self._server.turn(STOP_SECONDS) as is_mine:
                if is_mine and users.take():
                    self._server.stop()
        except UsageError as error:
            _log.warning("%s", error)
            if not self._server.data.exists():
                self._server.end_without_folder()
        finally:
            users.close()

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        with self._server.turn() as is_mine:
            if not is_mine:
                raise UsageError(f"another process has been starting the Redis in {self._server.data} for too long")
            yield

    def __enter__(self) -> EmbeddedRedis:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
