"""Masters and slaves as people run them: real processes, a real Redis, and what each of them does to the others."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.torture.actors import Node, RedisProcess, SiteProcess, wait_until
from scrapy_plus.torture.oracle import refetches, stored_pages
from scrapy_plus.torture.project import PREFIX, write_project
from scrapy_plus.torture.site import Site
from tests.frontier.conftest import need_redis

SECONDS = 60.0
LEASE_SECONDS = 2.0
SPIDER = """
import os, time
from scrapy_plus import Request
from scrapy_plus.torture.site import Site
from spiders import TortureSpider as Plain

class TortureSpider(Plain):
    name = "torture"

    def parse(self, response):
        page = response.url.rpartition("/")[2]
{body}
        yield from super().parse(response)
"""


class Crawl:
    """A project on a site of `pages` pages, a Redis, and the nodes that a test starts."""

    def __init__(self, folder: Path, binary: str) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.redis = RedisProcess(binary, folder)
        self.nodes: list[Node] = []
        self.site = Site(0)

    def open(self, pages: int, *, seeds: int = 5, unfiltered: int = 0, parse: str = "", **settings: Any) -> None:
        """Serves the site and writes the project; `parse` is code that stands before that of the callback."""
        self.site = Site(pages, seeds, unfiltered)
        self.server = SiteProcess(self.site, self.folder)
        self.redis.start()
        self.server.start()
        url = f"redis://127.0.0.1:{self.redis.port}/0"
        if parse:
            settings["SPIDERS"] = ["guilty.TortureSpider"]
        write_project(self.project, self.site, self.server.base, url, {"LEASE_SECONDS": LEASE_SECONDS, **settings})
        body = "".join(f"        {line}\n" for line in parse.splitlines())
        (self.project / "guilty.py").write_text(SPIDER.format(body=body), "utf-8")

    def node(self, name: str, *words: str) -> Node:
        node = Node(name, self.project, list(words or (name.rstrip("0123456789"),)), is_named=False)
        node.start()
        self.nodes.append(node)
        return node

    @property
    def store(self) -> RedisFrontier:
        return RedisFrontier(self.redis.client, PREFIX, joins=True)

    def fact(self, name: str) -> str:
        """A field of the crawl's own record."""
        value: Any = self.redis.client.hget(f"{PREFIX}:meta", name)
        return (value or b"").decode()

    @property
    def done(self) -> int:
        return int(self.fact("done") or 0)

    def wait(self, is_so: Callable[[], bool], seconds: float = SECONDS) -> None:
        assert wait_until(is_so, seconds), f"not within {seconds} s\n{self.logs()}"

    def wait_for_exits(self) -> list[int | None]:
        self.wait(lambda: all(node.exit_code is not None for node in self.nodes))
        return [node.exit_code for node in self.nodes]

    def logs(self) -> str:
        return "\n".join(f"== {node.name}\n{node.log.read_text('utf-8')[-3000:]}" for node in self.nodes)

    def check_nothing_lost(self, *, but: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        """Every page has its item once, and the store is in order."""
        stored = stored_pages(self.store)
        assert set(stored) == self.site.names() - but
        assert [name for name, count in stored.items() if count > 1] == []
        assert self.store.audit() == []

    def refetches(self) -> int:
        return refetches(self.site, self.server.fetches())

    def close(self) -> None:
        for node in self.nodes:
            if node.is_alive:
                node.thaw()
                node.signal(signal.SIGTERM)  # so that a supervisor ends its workers too
        wait_until(lambda: not any(node.is_alive for node in self.nodes), 10.0)
        for actor in (*self.nodes, self.server, self.redis):
            actor.kill()


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    crawl = Crawl(tmp_path, need_redis())
    try:
        yield crawl
    finally:
        crawl.close()


# -- who does what -----------------------------------------------------------------------------------------------------


def test_slaves_that_start_first_wait_for_a_master_and_all_end_with_0(crawl):
    crawl.open(300)
    crawl.node("slave1"), crawl.node("slave2")
    crawl.wait(lambda: crawl.fact("state") == "running")
    gevent.sleep(1.5)
    assert crawl.server.fetches() == [] and all(node.is_alive for node in crawl.nodes)
    crawl.node("master")
    assert crawl.wait_for_exits() == [0, 0, 0]
    crawl.check_nothing_lost()
    assert crawl.refetches() == 0


def test_a_second_process_without_a_role_joins_as_a_worker_and_says_so(crawl):
    crawl.open(1500, seeds=300)
    crawl.node("first", "-LINFO")
    crawl.wait(lambda: crawl.done > 0)
    second = crawl.node("second", "-LINFO")
    assert crawl.wait_for_exits() == [0, 0]
    crawl.check_nothing_lost()
    assert "another process seeds the crawl" in second.log.read_text("utf-8")
    assert crawl.refetches() == 0


def test_slaves_go_on_without_a_master_and_one_that_comes_back_finds_it_finished(crawl):
    crawl.open(600)
    master = crawl.node("master")
    crawl.wait(lambda: crawl.fact("seeded") == "1")
    master.kill()
    slaves = [crawl.node("slave1"), crawl.node("slave2")]
    crawl.wait(lambda: all(node.exit_code is not None for node in slaves))
    assert [node.exit_code for node in slaves] == [0, 0]
    crawl.check_nothing_lost()
    master.start()
    crawl.wait(lambda: master.exit_code is not None)
    assert master.exit_code == 0 and "finished already" in master.log.read_text("utf-8")
    crawl.check_nothing_lost()


def test_the_master_that_seeds_does_so_as_long_as_it_lives_and_the_next_one_after_it(crawl):
    crawl.open(500, seeds=500, START_REQUESTS_BUFFER=50)
    first = crawl.node("master1", "master")
    crawl.wait(lambda: crawl.fact("seeder") != "")
    seeder = crawl.fact("seeder")
    crawl.node("master2", "master")
    gevent.sleep(2.5 * LEASE_SECONDS)  # the first waits for room all the while: there is no slave
    assert crawl.fact("seeder") == seeder
    first.kill()
    crawl.wait(lambda: crawl.fact("seeder") not in ("", seeder))
    first.start()
    crawl.node("slave1")
    assert crawl.wait_for_exits() == [0, 0, 0]
    crawl.check_nothing_lost()


@pytest.mark.long
def test_a_master_that_is_killed_while_it_seeds_goes_on_where_it_was(crawl):
    crawl.open(900, seeds=900, unfiltered=300, START_REQUESTS_BUFFER=50)
    master = crawl.node("master")
    crawl.node("slave1")
    killed_at = []
    for _ in range(5):
        before = int(crawl.fact("cursor") or 0)
        crawl.wait(lambda before=before: int(crawl.fact("cursor") or 0) > before or crawl.fact("seeded") == "1")
        if crawl.fact("seeded") != "1":
            killed_at.append(int(crawl.fact("cursor")))
            master.kill()
            master.start()
    assert crawl.wait_for_exits() == [0, 0]
    assert len(killed_at) >= 2 and killed_at == sorted(killed_at)
    crawl.check_nothing_lost()
    assert crawl.refetches() == 0


def test_no_slave_starves_while_another_has_all_the_work(crawl):
    crawl.open(2500)
    slaves = [crawl.node(f"slave{number}") for number in (1, 2, 3)]
    crawl.wait(lambda: len(crawl.store.nodes()) == len(slaves))
    crawl.node("master")
    crawl.wait(lambda: crawl.done > 50)
    looks, held = 0, Counter()
    while crawl.fact("state") != "finished" and looks < 2000:
        owners: Any = crawl.redis.client.hvals(f"{PREFIX}:owner")
        held.update({owner.decode().split(":")[1] for owner in owners})
        looks += 1
        gevent.sleep(0.02)
    assert crawl.wait_for_exits() == [0] * 4
    assert len(held) == 3 and min(held.values()) > max(held.values()) / 3, (held, looks)


def node_of(crawl: Crawl, pid: int) -> str:
    """The name that a process has among the nodes, once it beats."""
    return next((one.worker for one in crawl.store.nodes() if one.facts.get("pid") == str(pid)), "")


@pytest.mark.parametrize("words", [["slave"], ["master", "--workers", "2"]], ids=["slave", "supervisor"])
def test_a_node_that_is_drained_finishes_its_pages_and_leaves_the_rest_to_the_others(crawl, words):
    crawl.open(500, DOWNLOAD_DELAY=0.01)
    crawl.node("master"), crawl.node("slave")
    leaving = crawl.node("leaving", *words)
    crawl.wait(lambda: node_of(crawl, leaving.process.pid) != "" and crawl.done > 20)
    assert crawl.store.drain(node_of(crawl, leaving.process.pid))
    crawl.wait(lambda: leaving.exit_code is not None, 20.0)
    assert leaving.exit_code == 0 and crawl.fact("state") == "running", crawl.logs()
    assert node_of(crawl, leaving.process.pid) == ""
    assert crawl.wait_for_exits() == [0, 0, 0]
    crawl.check_nothing_lost()
    assert crawl.refetches() == 0


# -- the end -----------------------------------------------------------------------------------------------------------


def test_every_node_ends_by_itself_soon_after_the_last_ack(crawl):
    crawl.open(400)
    for name in ("master", "slave1", "slave2"):
        crawl.node(name)
    crawl.wait(lambda: crawl.done == 400)
    acked_at = time.monotonic()
    assert crawl.wait_for_exits() == [0, 0, 0]
    assert time.monotonic() - acked_at < 5.0  # it is 1 s where nothing else runs
    crawl.check_nothing_lost()


@pytest.mark.long
def test_an_idle_node_sends_at_most_five_commands_a_second(crawl):
    crawl.open(1, seeds=1, parse="time.sleep(8)")
    for name in ("master", "slave1", "slave2", "slave3"):
        crawl.node(name)
    crawl.wait(lambda: "p0" in crawl.server.fetches() and len(crawl.store.nodes()) == 4)
    gevent.sleep(0.5)
    sent = _commands(crawl, seconds=4.0)
    assert crawl.wait_for_exits() == [0] * 4
    assert 0 < sent / 4.0 / len(crawl.nodes) <= 5.0
    crawl.check_nothing_lost()


def _commands(crawl: Crawl, seconds: float) -> int:
    """How many commands clients sent; what scripts do inside the server is not sent."""
    lines: list[dict[str, Any]] = []

    def listen() -> None:
        with crawl.redis.client.monitor() as monitor:
            for line in monitor.listen():
                lines.append(line)

    listener = gevent.spawn(listen)
    gevent.sleep(seconds)
    listener.kill()
    return sum(1 for line in lines if line["client_type"] != "lua")


def keys_of(crawl: Crawl) -> set[str]:
    keys: Any = crawl.redis.client.scan_iter(f"{PREFIX}:*", count=1000)
    return {key.decode().removeprefix(f"{PREFIX}:") for key in keys}


def test_without_persistence_the_last_node_of_a_finished_crawl_takes_all_but_items_and_dead_letters_away(crawl):
    crawl.open(60, SCHEDULER_PERSIST=False, parse="if page == 'p13': raise ValueError(page)")
    for name in ("slave1", "master", "slave2"):
        crawl.node(name)
    assert crawl.wait_for_exits() == [3, 3, 3]
    left = keys_of(crawl) - {"meta", "stats"}
    assert left == {"items", "req", "dead", "why", "sites", "names"}
    assert crawl.redis.client.hlen(f"{PREFIX}:req") == 1
    [letter] = crawl.store.dead_letters()[0]
    assert b"/p13" in letter.payload
    assert set(stored_pages(crawl.store)) == _reachable(crawl.site, without="p13")


def test_without_persistence_the_next_crawl_begins_anew_also_for_a_slave_that_comes_first(crawl):
    crawl.open(60, SCHEDULER_PERSIST=False)
    fetches = []
    for _ in range(2):
        crawl.node("slave1")
        gevent.sleep(0.5)
        crawl.node("master")
        assert set(crawl.wait_for_exits()) == {0}
        fetches.append(Counter(crawl.server.fetches()))
    assert set(fetches[0]) == set(fetches[1] - fetches[0]) == crawl.site.names()
    assert keys_of(crawl) == {"meta", "stats", "items"}


def test_without_persistence_a_crawl_whose_nodes_were_all_killed_is_gone_on_with(crawl):
    crawl.open(400, SCHEDULER_PERSIST=False)
    nodes = [crawl.node("slave1"), crawl.node("master")]
    crawl.wait(lambda: crawl.done > 50)
    for node in nodes:
        node.kill()
    for node in nodes:
        node.start()
    assert crawl.wait_for_exits() == [0, 0]
    assert set(stored_pages(crawl.store).values()) == {1}
    assert set(stored_pages(crawl.store)) == crawl.site.names()


def test_a_slave_that_wakes_up_after_the_end_of_a_crawl_that_was_cleared_goes_too(crawl):
    crawl.open(200, SCHEDULER_PERSIST=False, parse="time.sleep(0.01)")
    slaves = [crawl.node("slave1"), crawl.node("slave2")]
    master = crawl.node("master")
    crawl.wait(lambda: crawl.done > 20)
    slaves[0].freeze()
    crawl.wait(lambda: master.exit_code is not None and slaves[1].exit_code is not None)
    gevent.sleep(2 * LEASE_SECONDS)
    slaves[0].thaw()
    assert crawl.wait_for_exits() == [0, 0, 0]
    assert set(stored_pages(crawl.store)) == crawl.site.names()
    assert set(stored_pages(crawl.store).values()) == {1}


def test_a_crawl_that_is_over_before_all_workers_have_started_ends_at_once(crawl):
    crawl.open(2, seeds=2, SCHEDULER_PERSIST=False)
    crawl.node("master", "master", "--workers", "3")
    before = time.monotonic()
    assert crawl.wait_for_exits() == [0]
    assert time.monotonic() - before < 14.0  # a worker that waited for work would be killed after 15
    assert keys_of(crawl) == {"meta", "stats", "items"}


def test_a_master_without_a_slave_says_what_to_type(crawl):
    crawl.open(20)
    master = crawl.node("master", "master", "-LINFO")
    crawl.wait(lambda: "start one: python main.py slave" in master.log.read_text("utf-8"))
    crawl.node("slave1")
    assert crawl.wait_for_exits() == [0, 0]


# -- who dies, stands still or computes --------------------------------------------------------------------------------


@pytest.mark.long
def test_what_a_killed_slave_held_is_taken_over_within_a_lease_and_two_seconds(crawl):
    crawl.open(40, seeds=40, parse="time.sleep(1.0)")
    crawl.node("master")
    killed = crawl.node("slave1")
    crawl.wait(lambda: crawl.done > 0)
    crawl.wait(lambda: crawl.store.counts().leased > 0)
    killed.kill()
    before = time.monotonic()
    crawl.nodes.remove(killed)
    crawl.wait(lambda: crawl.store.counts().leased == 0)
    assert time.monotonic() - before < LEASE_SECONDS + 2.0 + 3.0  # the last is for a busy machine
    crawl.node("slave2"), crawl.node("slave3")
    assert set(crawl.wait_for_exits()) == {0}
    crawl.check_nothing_lost()


@pytest.mark.long
def test_what_a_frozen_slave_does_late_is_refused_whole(crawl):
    crawl.open(900, parse="time.sleep(0.03)", CONCURRENT_REQUESTS=2)  # it lasts until the frozen one is awake
    slaves = [crawl.node("slave1"), crawl.node("slave2")]
    crawl.node("master")
    crawl.wait(lambda: crawl.done > 100)
    slaves[0].freeze()
    gevent.sleep(2.5 * LEASE_SECONDS)
    slaves[0].thaw()
    assert crawl.wait_for_exits() == [0, 0, 0]
    crawl.check_nothing_lost()
    assert "was given to another worker meanwhile" in slaves[0].log.read_text("utf-8")
    assert "Traceback" not in crawl.logs()


@pytest.mark.long
def test_a_callback_that_computes_for_15_seconds_loses_nothing_with_a_lease_of_2(crawl):
    compute = (
        "until = time.monotonic() + (15 if page == 'p7' else 0)\nwhile time.monotonic() < until:\n    sum(range(9))"
    )
    crawl.open(60, parse=compute)
    for name in ("slave1", "slave2", "master"):
        crawl.node(name)
    assert crawl.wait_for_exits() == [0, 0, 0]
    crawl.check_nothing_lost()
    assert crawl.refetches() == 0


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("slave", "--workers", "2"), id="supervised"),
        pytest.param(("slave",), id="alone", marks=pytest.mark.long),
    ],
)
def test_a_page_that_kills_its_process_ends_alone_in_the_dead_letters(crawl, words):
    """A slave without a supervisor is started again by whoever runs it: here by the test."""
    crawl.open(60, parse="if page == 'p13': os._exit(9)", MAX_LOST=3, MAX_RETRY_TIMES=10)
    master = crawl.node("master")
    slaves = [crawl.node(f"slave{number}", *words) for number in (1, 2)]
    until = time.monotonic() + SECONDS
    while master.exit_code is None and time.monotonic() < until:
        for slave in slaves:
            if slave.exit_code == 9:
                slave.start()
        gevent.sleep(0.05)
    assert crawl.wait_for_exits() == [3, 3, 3], crawl.logs()
    [letter] = crawl.store.dead_letters()[0]
    assert b"/p13" in letter.payload and re.fullmatch(r"its worker died 4 times", letter.reason)
    reachable = _reachable(crawl.site, without="p13")
    assert set(stored_pages(crawl.store)) == reachable and crawl.store.audit() == []


def _reachable(site: Site, without: str) -> set[str]:
    found = {name for name, _ in site.start()}
    todo = list(found)
    while todo:
        name = todo.pop()
        new = set(site.links(name)) - found if name != without else set()
        found |= new
        todo += new
    return found - {without}


def test_the_items_are_json_lines_with_the_page_that_they_come_from(crawl):
    crawl.open(20)
    crawl.node("both", "-LINFO")
    assert crawl.wait_for_exits() == [0]
    items = crawl.store.items("", 1000)[0]
    assert sorted(json.loads(item)["page"] for item in items) == sorted(crawl.site.names())
