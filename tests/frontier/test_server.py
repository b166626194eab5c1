"""One Redis server and its troubles: away, restarted, a replica, refusing; and those who only look."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
import redis

from scrapy_plus.errors import FrontierError, FrontierUnavailable, UsageError
from scrapy_plus.frontier import redis_mending
from scrapy_plus.frontier.base import Page
from scrapy_plus.frontier.redis import IDS_A_CALL
from scrapy_plus.frontier.stored_items import StoredItems
from scrapy_plus.torture.proxy import Proxy
from tests.frontier.conftest import SITE, OwnRedis, Worker, record, redis_frontier
from tests.frontier.conftest import names as names_of
from tests.transport.servers import free_port


@pytest.fixture
def server(request) -> Iterator[OwnRedis]:
    with tempfile.TemporaryDirectory(prefix="sp-server-") as folder:
        made = OwnRedis(Path(folder), "--appendfsync", "always", *getattr(request, "param", ()))
        yield made
        made.stop()


def lines(caplog) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.INFO]


# -- away -------------------------------------------------------------------------------------------------------------


def test_whoever_started_the_server_may_bring_it_back(server):
    frontier = redis_frontier(server.client(), retry_seconds=20.0)
    frontier.offer([record("a")])
    frontier.server.on_away = lambda: server._process.poll() is None or server.start()
    server.stop(kill=True)
    assert frontier.offer([record("a"), record("b")]) == [False, True]


def test_who_cannot_bring_it_back_says_why(server):
    def fail() -> None:
        raise UsageError("the disk is full")

    frontier = redis_frontier(server.client(), retry_seconds=20.0)
    frontier.server.on_away = fail
    server.stop(kill=True)
    with pytest.raises(FrontierUnavailable, match="^the disk is full$"):
        frontier.counts()


def test_a_server_that_is_away_is_told_of_once_by_all_that_wait_for_it(server, caplog):
    frontiers = [redis_frontier(server.client(), prefix=f"{{x{n}}}", retry_seconds=20.0) for n in range(3)]
    server.stop(kill=True)
    with caplog.at_level(logging.INFO, "scrapy_plus.frontier"):
        calls = [gevent.spawn(frontier.counts) for frontier in frontiers]
        gevent.sleep(0.3)
        server.start()
        gevent.joinall(calls, timeout=20, raise_error=True)
    told = [line for line in lines(caplog) if line.startswith("Redis at")]
    assert len(told) == 2 and "trying again" in told[0] and "answers again" in told[1]


def test_a_server_that_became_a_replica_is_looked_for_anew(server):
    """Its name may lead to another machine by now; connections that stand do not notice."""
    frontier = redis_frontier(server.client(), retry_seconds=20.0)
    frontier.offer([record("a")])
    with server.client() as admin:
        own = frontier.server.client.client_id()
        admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        call = gevent.spawn(frontier.offer, [record("b")])
        gevent.sleep(0.1)
        assert not call.ready(), "it waits"
        admin.execute_command("REPLICAOF", "NO", "ONE")
    assert call.get(timeout=20) == [True]
    assert frontier.server.client.client_id() != own


def test_who_waits_for_the_server_asks_often_enough_to_renew_its_leases(redis_client):
    waits: list[float] = []
    server = redis_frontier(redis_client, lease_seconds=2.0, sleep=waits.append).server
    refusals = [redis.exceptions.ConnectionError("away") for _ in range(20)]

    def refused_often():
        if refusals:
            raise refusals.pop()
        return server.client.ping()

    assert server.call(refused_often) is True
    assert len(waits) == 20 and 0.25 <= max(waits) <= 0.5


def test_a_call_under_way_is_answered_though_another_is_sent_elsewhere(redis_client):
    server = redis_frontier(redis_client).server
    refusals = [redis.exceptions.MovedError("1 127.0.0.1:1")]

    def refused_once():
        if refusals:
            raise refusals.pop()
        return server.client.ping()

    waiting = gevent.spawn(server.call, lambda: server.client.blpop(["letters"], 20))
    gevent.sleep(0.1)
    assert server.call(refused_once) is True
    redis_client.rpush("letters", "a")
    assert waiting.get(timeout=20) == (b"letters", b"a")
    assert server.repeats == 1


def test_what_will_not_pass_is_one_line_that_names_the_server(redis_client):
    frontier = redis_frontier(redis_client)
    with pytest.raises(FrontierError, match=r"^Redis at .*redis.sock refuses: unknown command") as refusal:
        frontier.server.call(lambda: frontier.server.client.execute_command("NOTHING"))
    assert "\n" not in str(refusal.value)


def test_a_call_that_never_arrived_and_one_whose_answer_did_not_are_settled_alike():
    with tempfile.TemporaryDirectory(prefix="sp-cut-") as folder:
        port = free_port()
        server = OwnRedis(Path(folder), "--port", str(port))
        proxy = Proxy(port)
        client = redis.Redis(port=proxy.start(), socket_timeout=30)
        try:
            frontier = redis_frontier(client, retry_seconds=20.0)
            frontier.offer([record(name) for name in "abc"])
            for way, child in (("request", "d"), ("half", "e"), ("answer", "f")):
                [lease] = Worker(frontier, way).lease()
                repeats = frontier.server.repeats
                proxy.arm(way)
                taken = frontier.ack([Page(lease.id, lease.token, [record(child)], [way.encode()])])
                assert taken == [[way != "answer"]], "who was not answered does not know what was new"
                assert frontier.server.repeats == repeats + 1
            assert frontier.items()[0] == [b"request", b"half", b"answer"]
            assert (frontier.counts().done, frontier.counts().ready, frontier.audit()) == (3, 3, [])
        finally:
            proxy.stop()
            server.stop()


# -- restarted --------------------------------------------------------------------------------------------------------


def test_greenlets_that_meet_a_restarted_server_together_mend_it_once(server, monkeypatch):
    frontier = redis_frontier(server.client(), retry_seconds=20.0)
    frontier.offer([record(name) for name in "abc"])
    mended, repair = [], redis_mending.repair

    def slow_repair(one):
        mended.append(one)
        gevent.sleep(0.2)
        return repair(one)

    monkeypatch.setattr(redis_mending, "repair", slow_repair)
    server.stop(kill=True)
    server.start()
    calls = [gevent.spawn(frontier.lease, f"w{number}", 0, 1) for number in range(3)]
    gevent.joinall(calls, timeout=20, raise_error=True)
    assert sorted(names_of([lease for call in calls for lease in call.value.leases])) == ["a", "b", "c"]
    assert len(mended) == 1


@pytest.mark.parametrize("server", [("--appendonly", "no")], indirect=True)
def test_a_restarted_server_without_a_log_has_none_rewritten(server, caplog):
    redis_frontier(server.client(), prefix="{x}").offer([record("a")])
    with server.client() as admin:
        admin.save()
    server.stop(kill=True)
    server.start()
    again = redis_frontier(server.client(), prefix="{x}")
    assert (again.counts().ready, again.audit()) == (1, [])
    assert lines(caplog) == []


SLOW_REWRITE = ("--rdb-key-save-delay", "150000")
"""Microseconds a key, so that a rewriting takes seconds."""


@pytest.mark.parametrize("server", [SLOW_REWRITE], indirect=True)
def test_two_crawls_on_a_restarted_server_share_one_rewriting_of_its_log(server):
    prefixes = ["{x}", "{y}"]
    for prefix in prefixes:
        redis_frontier(server.client(), prefix=prefix).offer([record("a")])
    server.stop(kill=True)
    server.start()
    calls = [gevent.spawn(redis_frontier, server.client(), prefix=prefix) for prefix in prefixes]
    gevent.joinall(calls, timeout=60, raise_error=True)
    with server.client() as admin:
        info = admin.info("persistence")
    assert not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"], "both have waited for it"
    assert [call.value.counts().ready for call in calls] == [1, 1]


@pytest.mark.parametrize("server", [SLOW_REWRITE], indirect=True)
def test_a_log_that_takes_long_to_be_rewritten_does_not_hold_the_crawl_up(server, caplog, monkeypatch):
    monkeypatch.setattr(redis_mending, "REWRITE_SECONDS", 0.1)
    redis_frontier(server.client(), prefix="{x}").offer([record("a")])
    server.stop(kill=True)
    server.start()
    again = redis_frontier(server.client(), prefix="{x}")
    assert again.counts().ready == 1
    assert any("takes long to be rewritten; the crawl goes on" in line for line in lines(caplog))


# -- looking ----------------------------------------------------------------------------------------------------------


def test_an_audit_of_much_that_is_broken_stops_at_some(redis_client):
    frontier = redis_frontier(redis_client)
    frontier.offer([record(f"r{number}") for number in range(2 * redis_mending.PROBLEMS_SHOWN)])
    redis_client.delete(frontier.keys.queue(1))
    found = frontier.audit()
    assert len(found) == redis_mending.PROBLEMS_SHOWN + 1 and found[-1] == "... and perhaps more"


def test_that_somebody_wants_the_items_is_known_to_all(redis_client):
    frontier = redis_frontier(redis_client)
    assert not frontier.keeps_items()
    redis_frontier(redis_client, prefix=frontier.keys.prefix, keeps_items=True)
    redis_frontier(redis_client, prefix=frontier.keys.prefix)
    assert frontier.keeps_items()


def test_one_dead_letter_is_found_by_its_id(redis_client):
    frontier = redis_frontier(redis_client)
    frontier.offer([record("a"), record("b")])
    [lease] = Worker(frontier).lease()
    frontier.bury(lease.id, lease.token, "no", 500)
    assert frontier.dead_letter(record("b").id) is None
    assert [frontier.dead_letter(record("a").id)] == frontier.dead_letters()[0]


def test_too_many_seeds_in_one_call_are_refused(redis_client):
    frontier = redis_frontier(redis_client)
    with pytest.raises(ValueError, match=f"{IDS_A_CALL + 1} seeds in one call; {IDS_A_CALL} at most"):
        frontier.seed(0, IDS_A_CALL + 1, [record(f"s{number}") for number in range(IDS_A_CALL + 1)])
    assert frontier.counts().seen == 0


@pytest.mark.parametrize("items_as", ["stream", "list"])
def test_who_reads_the_items_of_a_crawl_makes_none(own_redis, redis_client, items_as):
    frontier = redis_frontier(redis_client, items_as=items_as)
    nothing = StoredItems(redis_client, "{test:nothing}")
    assert nothing.state() is None
    assert redis_client.keys("{test:nothing}*") == []
    stored = StoredItems(redis_client, frontier.keys.prefix)
    assert (stored.state(), stored.is_list(), stored.count()) == ("running", False, 0)
    frontier.offer([record("a")])
    [lease] = Worker(frontier).lease()
    frontier.ack([Page(lease.id, lease.token, items=[b"1", b"2", b"3"])])
    assert (stored.is_list(), stored.count()) == (items_as == "list", 3)
    first, cursor = stored.items(count=2)
    assert (first, stored.items(cursor)[0]) == ([b"1", b"2"], [b"3"])
    assert stored.where == own_redis.socket
    stored.close()


def test_items_that_outlived_their_crawl_are_those_of_a_finished_one(redis_client):
    frontier = redis_frontier(redis_client)
    frontier.set_site(SITE, limit=1)
    frontier.offer([record("a")])
    [lease] = Worker(frontier).lease()
    frontier.ack([Page(lease.id, lease.token, items=[b"1"])])
    redis_client.delete(frontier.keys.meta)
    assert StoredItems(redis_client, frontier.keys.prefix).state() == "finished"
