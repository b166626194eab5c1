"""What only a whole process shows: signals, exit codes, its end, and what must be imported first."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import gevent
import pytest
from gevent.pywsgi import WSGIServer

SPIDER = """
from scrapy_plus import Spider, Request

class SlowSpider(Spider):
    name = "slow"
    start_urls = ["{base}/0"]

    def parse(self, response):
        yield {{"url": response.url}}
        number = int(response.url.rpartition("/")[2])
        yield Request(f"{base}/{{number + 1}}")
"""


class Shop:
    """A server whose every page is there, after `seconds`; it counts what was asked."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[str] = []
        self.answered: list[str] = []
        self._server = WSGIServer(("127.0.0.1", 0), self._answer, log=None)

    def _answer(self, environ, start_response):
        self.asked.append(environ["PATH_INFO"])
        gevent.sleep(self.seconds)
        self.answered.append(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<title>page</title>"]

    def __enter__(self) -> Shop:
        self._server.start()
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)

    def wait_until_asked(self, count: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.asked) < count:
            assert time.monotonic() < deadline, "the crawl asked for nothing"
            gevent.sleep(0.02)


@pytest.fixture
def start(tmp_path):
    """Starts a spider in a process of its own; it is ended when the test is over."""
    processes = []

    def begin(spider: str, *words: str) -> subprocess.Popen[str]:
        (tmp_path / "spider.py").write_text(textwrap.dedent(spider))
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy_plus", "runspider", "spider.py", "-O", "items.jsonl", *words],
            cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def items(folder: Path) -> list[str]:
    return [json.loads(line)["url"] for line in (folder / "items.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_one_signal_finishes_the_pages_in_flight_and_says_what_is_left(hears_signals, start, tmp_path, number, code):
    with Shop(0.3) as shop:
        process = start(SPIDER.format(base=shop.base))
        shop.wait_until_asked(2)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert len(shop.asked) == len(shop.answered) == len(items(tmp_path)), "what was in flight was finished and stored"
    assert "1 requests are left" in errors
    assert "shutdown" in errors


def test_a_second_signal_ends_it_at_once(start, tmp_path):
    with Shop(60) as shop:
        process = start(SPIDER.format(base=shop.base))
        shop.wait_until_asked(1)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        gevent.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert time.monotonic() - began < 15, "it waited for a page of 60 s"
    assert "1 requests are left" in errors, "what was in flight was given back"


def test_pages_in_flight_get_no_more_than_the_time_for_the_shutdown(start):
    with Shop(60) as shop:
        process = start(SPIDER.format(base=shop.base), "-s", "SHUTDOWN_SECONDS=0.5")
        shop.wait_until_asked(1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert time.monotonic() - began < 15


def test_a_callback_that_computes_forever_does_not_withstand_two_signals(start):
    busy = SPIDER.replace('yield {{"url"', 'while True: pass\n        yield {{"url"')
    with Shop(0) as shop:
        process = start(busy.format(base=shop.base))
        shop.wait_until_asked(1)
        gevent.sleep(0.5)
        process.send_signal(signal.SIGINT)
        gevent.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130


def test_kill_9_leaves_whole_lines(start, tmp_path):
    with Shop(0) as shop:
        process = start(SPIDER.format(base=shop.base))
        shop.wait_until_asked(50)
        process.kill()
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert len(items(tmp_path)) > 10, "every line parses"


def run_python(code: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(code)], cwd=folder, capture_output=True, text=True, timeout=60
    )


CRAWL_FIRST = """
import {first}
from scrapy_plus import Engine, FakeTransport, Response, Spider, crawl
from scrapy_plus.transport.requests_session import RequestsTransport

class One(Spider):
    name = "one"
    start_urls = ["http://127.0.0.1:9/"]
    def parse(self, response):
        return {{"url": response.url}}

print(len(crawl(One, FakeTransport({{"http://127.0.0.1:9/": Response("http://127.0.0.1:9/")}})).items))
crawl(One, RequestsTransport(), MAX_RETRY_TIMES=0)
"""


@pytest.mark.parametrize("first", ["requests", "ssl"])
def test_what_was_imported_too_early_warns_and_then_refuses_the_network_only(tmp_path, first):
    done = run_python(CRAWL_FIRST.format(first=first), tmp_path)
    assert "RuntimeWarning" in done.stderr
    assert "was imported before scrapy_plus" in done.stderr
    assert done.stdout == "1\n", "a transport without a network is not concerned"
    assert done.stderr.count("UsageError: ") == 1
    assert "must be the first import" in done.stderr


def test_scrapy_plus_first_is_no_warning(tmp_path):
    done = run_python("import scrapy_plus, requests, ssl", tmp_path, "-W", "error")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_engine_of_the_historical_main_py_runs_the_project(tmp_path):
    with Shop(0) as shop:
        (tmp_path / "spiders.py").write_text(SPIDER.format(base=shop.base))
        (tmp_path / "settings.py").write_text(
            'SPIDERS = ["spiders.SlowSpider"]\nCLOSESPIDER_PAGECOUNT = 5\n'
            'FEEDS = {"items.jsonl": {}}\nMYSQL_HOST = "db"\n'
        )
        (tmp_path / "main.py").write_text(
            "from scrapy_plus.core.engine import Engine\nfrom scrapy_plus.conf import settings\n"
            "if __name__ == '__main__':\n    engine = Engine()\n"
            "    print(engine.start(), engine.start(), settings.MYSQL_HOST)\n"
        )
        done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 0 db\n", done.stderr
    assert len(items(tmp_path)) >= 5


def test_a_wrong_setting_is_told_in_a_line_by_the_historical_main_py_too(tmp_path):
    (tmp_path / "settings.py").write_text("CONCURENT_REQUESTS = 3\nSPIDERS = []\n")
    (tmp_path / "main.py").write_text("from scrapy_plus.core.engine import Engine\nEngine().start()\n")
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "did you mean CONCURRENT_REQUESTS?" in done.stderr
    assert "Traceback" not in done.stderr
