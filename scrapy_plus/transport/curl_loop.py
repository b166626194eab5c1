"""libcurl's transfers on gevent's hub: it says which sockets and how long to wait, the hub waits, no thread does.

One loop belongs to the hub in which it was made. Greenlets are woken from the hub, never from within libcurl, which
must not be called while it calls us.
"""

from __future__ import annotations

import select
import sys
from time import monotonic
from typing import Any

import gevent
import pycurl
from gevent import getcurrent, monkey

# The patched ones enter the hub, from which these are called.
_poll: Any = monkey.get_original("select", "poll")
_Socket: Any = monkey.get_original("socket", "socket")
_WELL = (0, "")


class CurlLoop:
    """Performs transfers, any number at a time, over connections that they share.

    `max_connections` is how many may be open and kept; the oldest idle one is closed when there is one more.
    """

    def __init__(self, *, max_connections: int) -> None:
        self._hub: Any = gevent.get_hub()
        self._waiting: dict[Any, Any] = {}
        self._watchers: dict[tuple[int, int], Any] = {}
        self._active: dict[int, Any] = {}
        self._timer = self._hub.loop.timer(0.0)
        self._timer_at = float("inf")
        self._deadline = float("inf")
        self._is_due = False
        self._is_waking = False
        self.is_closed = False
        self._multi = pycurl.CurlMulti()
        self._socket_action = self._multi.socket_action
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_connections)
        # One process asks a site for at most a few hundred pages at a time; all may share one HTTP/2 connection.
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)

    def perform(self, curl: Any) -> tuple[int, str]:
        """Waits for the end of the transfer: libcurl's code (0: well) and what it says of it.

        Whatever is thrown into the waiting greenlet (a timeout, a kill) takes the transfer out and closes its
        connection, or its stream of one.
        """
        self._waiting[curl] = getcurrent()
        self._multi.add_handle(curl)
        try:
            return self._hub.switch()
        finally:
            if curl in self._waiting:
                del self._waiting[curl]
                self._multi.remove_handle(curl)

    def is_dead(self, own_port: int) -> bool:
        """Whether the idle connection from this port is readable: by its end, or by what nobody asked for."""
        for fd in {fd for fd, _ in self._watchers}.difference(self._active):
            if _port_of(fd) == own_port:
                poll = _poll()
                poll.register(fd, select.POLLIN)
                return bool(poll.poll(0))
        return False

    # -- what libcurl calls --------------------------------------------------------------------------------------------

    def _watch(self, what: int, fd: int, multi: Any, data: Any) -> None:
        active = self._active
        if fd in active:
            active.pop(fd).stop()
        if what != pycurl.POLL_REMOVE:
            watcher = self._watchers.get((fd, what))
            if watcher is None:
                watcher = self._watchers[fd, what] = self._hub.loop.io(fd, what)
            # To libev a descriptor is what it was while its watcher rests; but it may have been closed, and be another.
            watcher.events = what
            # libcurl tries what it is told of and takes no harm from what is not so: one bit stands for an error too.
            watcher.start(self._on_socket, fd, what)
            active[fd] = watcher

    def _set_timer(self, milliseconds: int) -> None:
        """Most timers are moved on long before they end, so the watcher is left alone unless it would be too late."""
        if milliseconds == 0:
            if not self._is_due:
                self._is_due = True
                self._hub.loop.run_callback(self._on_due)
        elif milliseconds < 0:
            self._deadline = float("inf")
        else:
            self._deadline = deadline = monotonic() + milliseconds / 1000
            if deadline < self._timer_at:
                self._arm(deadline, milliseconds / 1000)

    def _arm(self, deadline: float, seconds: float) -> None:
        self._timer.stop()
        self._timer.close()
        self._timer = self._hub.loop.timer(seconds)
        self._timer_at = deadline
        self._timer.start(self._on_timer)

    # -- what the hub calls --------------------------------------------------------------------------------------------

    def _on_socket(self, fd: int, events: int) -> None:
        running = self._socket_action(fd, events)[1]
        if running < len(self._waiting) and not self._is_waking:
            # First all that came in is read, then all of it is worked on: taking turns, libcurl and the callbacks push
            # each other out of the processor's caches, and both take half as long again.
            self._is_waking = True
            self._hub.loop.run_callback(self._wake)

    def _on_due(self) -> None:
        self._is_due = False
        running = self._socket_action(pycurl.SOCKET_TIMEOUT, 0)[1]
        if running < len(self._waiting) and not self._is_waking:
            self._wake()

    def _on_timer(self) -> None:
        self._timer_at = float("inf")
        seconds = self._deadline - monotonic()
        if seconds <= 0:
            self._deadline = float("inf")
            self._on_due()
        elif self._deadline < float("inf"):
            self._arm(self._deadline, seconds)

    def _wake(self) -> None:
        """Each transfer that has ended gives its end to the greenlet that waits for it."""
        self._is_waking = False
        is_more = not self.is_closed
        while is_more:
            is_more, done, failed = self._multi.info_read()
            for curl in done:
                self._finish(curl, _WELL)
            for curl, code, said in failed:
                self._finish(curl, (code, said))

    def _finish(self, curl: Any, end: tuple[int, str]) -> None:
        greenlet = self._waiting.pop(curl, None)
        if greenlet is None:  # killed by one that was woken before it
            return
        self._multi.remove_handle(curl)
        try:
            greenlet.switch(end)
        except BaseException:
            # A bare greenlet's failure ends here; it must not keep the others from being woken.
            self._hub.handle_error(greenlet, *sys.exc_info())

    def close(self) -> None:
        """Closes all connections. Transfers that still run end as if aborted."""
        self.is_closed = True
        for curl in list(self._waiting):
            greenlet = self._waiting.pop(curl)
            self._multi.remove_handle(curl)
            self._hub.loop.run_callback(greenlet.switch, (pycurl.E_ABORTED_BY_CALLBACK, "the transport was closed"))
        self._multi.close()
        for watcher in (*self._watchers.values(), self._timer):
            watcher.stop()
            watcher.close()
        self._watchers.clear()
        self._active.clear()


def _port_of(fd: int) -> int:
    try:
        looked_at = _Socket(fileno=fd)
    except OSError:  # closed, or no socket any more
        return -1
    try:
        return int(looked_at.getsockname()[1])
    except (OSError, IndexError):
        return -1
    finally:
        looked_at.detach()
