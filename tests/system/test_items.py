"""Items of a crawl with many processes: each once in the store and in the file, whoever is killed."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest
import redis

from tests.frontier.conftest import OwnRedis, own_redis, redis_client  # noqa: F401  fixtures
from tests.system.test_process import Shop

SPIDER = """
from scrapy_plus import Spider, Request

class ShopSpider(Spider):
    name = "shop"
    start_urls = ["{base}/1"]

    def parse(self, response):
        number = int(response.url.rpartition("/")[2])
        yield {{"n": number, "text": "té, \\"x\\"\\n"}}
        for child in (2 * number, 2 * number + 1):
            if child <= {pages}:
                yield Request(f"{base}/{{child}}")
"""
KILLS_OF_THE_WRITER = 15


class Project:
    """A project whose crawl is kept in the tests' Redis."""

    def __init__(self, folder: Path, redis_socket: str, base: str, pages: int, **settings: Any) -> None:
        self.folder = folder
        self.pages = pages
        self.name = f"items-{folder.name}"
        self.key = f"{{{self.name}:shop}}:items"
        self.processes: list[subprocess.Popen[str]] = []
        settings |= {"SPIDERS": ["spiders.ShopSpider"], "REDIS_URL": f"unix://{redis_socket}", "LEASE_SECONDS": 2}
        settings |= {"PROJECT_NAME": self.name}
        (folder / "spiders.py").write_text(SPIDER.format(base=base, pages=pages))
        (folder / "settings.py").write_text("\n".join(f"{name} = {value!r}" for name, value in settings.items()))
        (folder / "main.py").write_text("from scrapy_plus import run\nrun()\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "main.py", *words], cwd=self.folder, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
        self.processes.append(process)
        return process

    def tool(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "scrapy_plus", *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)

    def numbers(self, name: str = "out.jsonl") -> list[int]:
        path = self.folder / name
        if name.endswith(".csv"):
            with path.open(encoding="utf-8", newline="") as file:
                return sorted(int(row["n"]) for row in csv.DictReader(file))
        text = path.read_text("utf-8")
        found = json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
        return sorted(item["n"] for item in found)

    @property
    def expected(self) -> list[int]:
        return list(range(1, self.pages + 1))

    def stored(self, client: redis.Redis) -> list[int]:
        entries: Any = client.xrange(self.key)
        return sorted(json.loads(fields[b"item"])["n"] for _, fields in entries)

    def end(self, process: subprocess.Popen[str]) -> str:
        """Waits for a good end; what the process said."""
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        return errors


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop(0.02) as shop:
        yield shop


@pytest.fixture
def make_project(tmp_path: Path, own_redis: OwnRedis, shop: Shop):  # noqa: F811
    made: list[Project] = []

    def make(pages: int, **settings: Any) -> Project:
        made.append(Project(tmp_path, own_redis.socket, shop.base, pages, **settings))
        return made[-1]

    yield make
    for process in (process for project in made for process in project.processes):
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until(is_so, what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, what
        gevent.sleep(0.05)


def test_a_file_that_only_the_master_was_told_of_gets_the_items_of_all_slaves(make_project, redis_client):  # noqa: F811
    project = make_project(200)
    slaves = [project.start("slave"), project.start("slave")]
    errors = project.end(project.start("master", "-o", "out.jsonl", "-o", "out.csv", "-O", "out.json"))
    for slave in slaves:
        project.end(slave)
    for name in ("out.jsonl", "out.csv", "out.json"):
        assert project.numbers(name) == project.expected
    assert "200  in out.jsonl, out.csv, out.json" in errors or "200  in out." in errors
    assert project.stored(redis_client) == project.expected


def test_slaves_do_not_open_the_files(make_project):
    project = make_project(20, FEEDS={"out/out.jsonl": {}})
    slave = project.start("slave")
    master = project.start("master")
    wait_until((project.folder / "out" / "out.jsonl").exists, "the master writes no file")
    descriptors = Path(f"/proc/{slave.pid}/fd")
    opened = [os.readlink(entry) for entry in descriptors.iterdir() if entry.exists()] if descriptors.exists() else []
    assert not [path for path in opened if path.endswith("out.jsonl")]
    project.end(master)
    project.end(slave)
    assert project.numbers("out/out.jsonl") == project.expected


def test_a_writer_that_is_killed_many_times_and_slaves_too_leave_each_item_once(make_project, shop, redis_client):  # noqa: F811
    shop.seconds = 0.15  # so slow that no machine is done before the last kill
    project = make_project(2000, CONCURRENT_REQUESTS=4, FEEDS={"out.jsonl": {}, "out.json": {}, "out.csv": {}})
    seed = random.randrange(10**9)
    dice = random.Random(seed)
    slaves = [project.start("slave") for _ in range(2)]
    for kill in range(KILLS_OF_THE_WRITER):
        master = project.start("master")
        begun = redis_client.xlen(project.key)
        wait_until(
            lambda begun=begun, master=master: redis_client.xlen(project.key) > begun or master.poll() is not None,
            "nothing is crawled",
        )
        gevent.sleep(dice.uniform(0.0, 1.2))
        master.kill()
        master.communicate()
        if kill % 4 == 3:
            slaves[0].kill()
            slaves[0].communicate()
            slaves = [slaves[1], project.start("slave")]
    assert redis_client.xlen(project.key) < project.pages, f"seed {seed}: it was over before all kills were made"
    shop.seconds = 0.0
    project.end(project.start("master"))
    for slave in slaves:
        project.end(slave)
    assert project.stored(redis_client) == project.expected, f"seed {seed}"
    for name in ("out.jsonl", "out.json", "out.csv"):
        assert project.numbers(name) == project.expected, f"seed {seed}"


def test_without_a_master_the_next_process_goes_on_with_the_file(make_project):
    project = make_project(300, SCHEDULER_PERSIST=True, CONCURRENT_REQUESTS=4, FEEDS={"out.jsonl": {}})
    first = project.start()
    wait_until(lambda: (project.folder / "out.jsonl").exists() and project.numbers(), "nothing is written")
    second = project.start()
    gevent.sleep(1.5)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    project.end(second)
    assert project.numbers() == project.expected


def test_slaves_that_finish_alone_leave_the_file_to_the_next_master(make_project):
    project = make_project(150, CONCURRENT_REQUESTS=4, FEEDS={"out.jsonl": {}}, SCHEDULER_PERSIST=True)
    slave = project.start("slave")
    master = project.start("master")
    wait_until(lambda: (project.folder / "out.jsonl").exists() and project.numbers(), "nothing is written")
    master.kill()
    master.communicate()
    project.end(slave)
    project.end(project.start("master"))
    assert project.numbers() == project.expected


# -- scrapy-plus items -------------------------------------------------------------------------------------------------


def test_items_of_a_crawl_are_read_while_it_goes_on_and_afterwards(make_project, redis_client, tmp_path, own_redis):  # noqa: F811
    project = make_project(120, SCHEDULER_PERSIST=True, PIPELINES=["scrapy_plus.pipelines.RedisPipeline"])
    follower = subprocess.Popen(
        [sys.executable, "-m", "scrapy_plus", "items", "--follow"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    project.end(project.start())
    output, _ = follower.communicate(timeout=30)
    assert sorted(json.loads(line)["n"] for line in output.splitlines()) == project.expected
    assert follower.returncode == 0, "it ends with the crawl"
    before = redis_client.hgetall(f"{{{project.name}:shop}}:meta")

    assert project.tool("items", "--count").stdout == "120\n"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = ["-s", f"REDIS_URL=unix://{own_redis.socket}", "-s", f"PROJECT_NAME={project.name}"]
    plain = subprocess.run(
        [sys.executable, "-m", "scrapy_plus", "items", "shop", *where],
        cwd=elsewhere, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert plain.stdout == output, "no project is needed"
    for name in ("a.jsonl", "a.json", "a.csv"):
        done = project.tool("items", "shop", "-o", name)
        assert done.stderr == f"120 items in {name}, 120 of them new\n"
        assert project.tool("items", "shop", "-o", name).stderr == f"120 items in {name}, 0 of them new\n"
        assert project.numbers(name) == project.expected
    assert redis_client.hgetall(f"{{{project.name}:shop}}:meta") == before, "who only reads changes nothing"


def test_a_crawl_that_is_not_there_is_said_and_not_made(make_project, redis_client):  # noqa: F811
    project = make_project(3)
    done = project.tool("items", "shop")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"has no crawl {{{project.name}:shop}}" in done.stderr
    assert redis_client.exists(f"{{{project.name}:shop}}:meta") == 0
