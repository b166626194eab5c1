"""Pages fetched and nothing else: by a transport of scrapy_plus, or by pycurl on gevent's hub and no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from io import BytesIO
from typing import Any

import gevent
from gevent.event import Event
from tally import Tally

from scrapy_plus.conf.settings import load_settings
from scrapy_plus.http.request import Request
from scrapy_plus.wiring import build_transport

tally = Tally("requests", "gevent", "pycurl")
job = tally.job
urls = deque(f"{job['origin']}/{job['site']}/{number}.html" for number in range(job["pages"]))


def by_transport() -> None:
    overrides = {"CONCURRENT_REQUESTS": job["concurrency"], **job.get("settings", {})}
    transport = build_transport(load_settings(None, overrides=overrides, environ={}))

    def work() -> None:
        while urls:
            url = urls.popleft()
            assert transport.fetch(Request(url), timeout_seconds=60.0, max_bytes=64 << 20).body
            tally.page()
            tally.item(url)

    gevent.joinall([gevent.spawn(work) for _ in range(job["concurrency"])], raise_error=True)


class Raw:
    """libcurl's multi interface with gevent's watchers: handles that are used again, one greenlet, callbacks."""

    def __init__(self) -> None:
        import pycurl

        self.pycurl = pycurl
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.on_socket)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.on_timer)
        self.loop = gevent.get_hub().loop
        self.watchers: dict[int, Any] = {}
        self.timer = self.loop.timer(0)
        self.done = Event()
        self.open = 0

    def crawl(self) -> None:
        for _ in range(min(job["concurrency"], len(urls))):
            self.ask(self.pycurl.Curl())
        self.done.wait()

    def ask(self, curl: Any) -> None:
        curl.url, curl.body = urls.popleft(), BytesIO()
        curl.setopt(self.pycurl.URL, curl.url)
        curl.setopt(self.pycurl.WRITEDATA, curl.body)
        self.open += 1
        self.multi.add_handle(curl)

    def on_socket(self, what: int, fd: int, multi: Any, data: Any) -> None:
        if watcher := self.watchers.pop(fd, None):
            watcher.stop()
            watcher.close()
        if what != self.pycurl.POLL_REMOVE:
            watcher = self.watchers[fd] = self.loop.io(fd, what)  # libcurl's 1 in, 2 out, 3 both are libev's
            watcher.start(self.act, fd, what)

    def on_timer(self, milliseconds: int) -> None:
        self.timer.stop()
        if milliseconds >= 0:
            self.timer = self.loop.timer(milliseconds / 1000)
            self.timer.start(self.act, self.pycurl.SOCKET_TIMEOUT, 0)

    def act(self, fd: int, what: int) -> None:
        self.multi.socket_action(fd, what)
        _, good, bad = self.multi.info_read()
        assert not bad, bad
        for curl in good:
            assert curl.body.getvalue()
            self.multi.remove_handle(curl)
            self.open -= 1
            tally.page()
            tally.item(curl.url)
            if urls:
                self.ask(curl)
        if not self.open:
            self.done.set()


crawl: Callable[[], None] = Raw().crawl if job.get("raw") else by_transport
crawl()
tally.tell()
