"""What single scripts write, answer and refuse, where the contract cannot see it: their mutants are caught here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from scrapy_plus.frontier.script import load
from tests.frontier.conftest import FUTURE, SITE, Clock, OwnRedis, Worker, record, redis_frontier


@pytest.fixture
def frontier(redis_client):
    return redis_frontier(redis_client)


# -- a server that takes no writes ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def read_only() -> Iterator[redis.Redis]:
    """A replica whose server is gone: it refuses every write."""
    with tempfile.TemporaryDirectory(prefix="sp-replica-") as folder:
        server = OwnRedis(Path(folder), "--appendonly", "no")
        with server.client() as client:
            frontier = redis_frontier(client, prefix="{idle}")
            frontier.offer([record("a")])
            frontier.hold_seeding("other", 10_000)
            client.execute_command("REPLICAOF", "127.0.0.1", "1")
            yield client
        server.stop()


IDLE = {
    "commit": ["", 0, 0, 0, 0, "0"],
    "drop": [],
    "forget": [0],
    "hold": ["seeder", "w", 1000],
    "lease": ["w", 0, 0, 0, 0, 0.5],
    "mend": [0],
    "mend_items": [0],
    "mend_seen": ["-"],
    "mend_sites": [1, 0],
    "offer": ["", 0],
    "reap": [10, "-", 0],
    "renew": ["w", "-", 0],
    "revive": [0],
    "seed": ["0", "0", "0"],
}


@pytest.mark.parametrize("verb", IDLE)
def test_a_server_that_takes_no_writes_refuses_a_verb_even_if_it_has_nothing_to_do(read_only, verb):
    with pytest.raises(redis.exceptions.ReadOnlyError):
        read_only.eval(load(verb).text, 2, "{idle}", "{idle}:dead", *IDLE[verb])


# -- a server whose memory is full ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full() -> Iterator[redis.Redis]:
    with tempfile.TemporaryDirectory(prefix="sp-full-") as folder:
        server = OwnRedis(Path(folder), "--appendonly", "no")
        with server.client() as client:
            yield client
        server.stop()


PASSES = {
    **{verb: IDLE[verb] for verb in IDLE if verb not in ("offer", "seed")},
    "beat": ["w", "{}"],
    "begin_again": [],
    "clear_finished": ["0"],
    "finish": [],
    "flush": ["1"],
    "leave": ["w"],
    "mended": ["run"],
    "set_site": [SITE, "delay", 5],
    "set_state": ["paused"],
}
STATES = {"begin_again": "finished", "clear_finished": "finished"}


@pytest.mark.parametrize("verb", [*PASSES, "offer", "seed"])
def test_only_what_takes_in_more_is_refused_when_memory_is_full(full, verb):
    prefix = f"{{{verb}}}"
    frontier = redis_frontier(full, prefix=prefix)
    full.hset(frontier.keys.meta, mapping={"seeded": 1, "state": STATES.get(verb, "running")})
    full.config_set("maxmemory", 1)
    try:
        if verb in PASSES:
            full.eval(load(verb).text, 2, prefix, f"{prefix}:dead", *PASSES[verb])
        else:
            with pytest.raises(redis.exceptions.OutOfMemoryError):
                full.eval(load(verb).text, 1, prefix, *IDLE[verb])
    finally:
        full.config_set("maxmemory", 0)


# -- what is left behind, and what is said ----------------------------------------------------------------------------


def test_a_node_that_is_forgotten_leaves_nothing_behind(redis_client):
    clock = Clock()
    frontier = redis_frontier(redis_client, clock)
    frontier.beat("old", {"n": "1"})
    clock.advance(3601)
    frontier.beat("new", {"n": "2"})
    assert redis_client.zrange(frontier.keys.nodes, 0, -1) == [b"new"]
    assert redis_client.hkeys(frontier.keys.facts) == [b"new"]


def test_after_a_flush_the_buckets_of_what_is_seen_are_as_at_the_beginning(redis_client, frontier):
    redis_client.hset(frontier.keys.meta, mapping={"size": 8192, "split": 5})
    frontier.flush()
    assert redis_client.hmget(frontier.keys.meta, ["size", "split", "state"]) == [b"4096", b"0", b"running"]


def test_the_audit_names_the_site_and_counts_its_slots_and_leases(redis_client, frontier):
    frontier.offer([record("a"), record("b")])
    redis_client.hset(frontier.keys.site(1), "busy", 2)
    assert f"{SITE} has 2 slots in use, but 0 leases" in "\n".join(frontier.audit())


def test_a_site_whose_pause_ends_this_very_moment_is_open(redis_client):
    clock = Clock()
    frontier = redis_frontier(redis_client, clock)
    frontier.offer([record("a")])
    frontier.set_site(SITE, paused_until=FUTURE + clock.time)
    assert redis_client.zrange(frontier.keys.open, 0, -1) == [b"1"]
    assert frontier.audit() == []


def test_the_audit_finds_nothing_wrong_with_a_site_wherever_it_stands(redis_client):
    clock = Clock()
    frontier = redis_frontier(redis_client, clock)
    frontier.offer([record("a"), record("b"), record("c", site="http://other:80")])
    for stands, change in (
        (frontier.keys.open, {}),
        (frontier.keys.paced, {"delay_seconds": 5.0}),
        (frontier.keys.paced, {"delay_seconds": 0.0, "limit": 1}),
        (frontier.keys.waiting, {"paused_until": FUTURE + clock.time + 5}),
    ):
        frontier.set_site(SITE, **change)
        assert redis_client.zscore(stands, 1) is not None
        assert frontier.audit() == []
    clock.advance(5)
    assert frontier.audit() == [], "it wakes when somebody asks"
    clock.advance(1)
    assert frontier.audit() == []
    redis_client.zadd(frontier.keys.waiting, {"1": 1, "2": 1})
    assert len(frontier.audit()) == 2


def test_what_a_torn_split_had_copied_is_not_seen_once_it_was_forgotten(redis_client):
    from tests.frontier.test_torn import Died, crowded, cut_after

    frontier = redis_frontier(redis_client, seen_cache=0)
    records = [crowded(0, number) for number in range(60)]
    frontier.offer(records)
    worker = Worker(frontier)
    worker.ack(*worker.lease(60))
    redis_client.hset(frontier.keys.meta, "fill", 0)
    cut_after(frontier, 25)
    with pytest.raises(Died):
        frontier.offer([record("y")])
    again = redis_frontier(redis_client, prefix=frontier.keys.prefix, seen_cache=0)
    again.repair()
    assert redis_client.scard(again.keys.bucket(int(redis_client.hget(again.keys.meta, "epoch")), 4096)) > 0
    assert again.forget([one.id for one in records]) == 60
    redis_client.hset(frontier.keys.meta, "fill", 0)
    again.offer([record("z")])
    assert again.offer(records) == [True] * 60


# -- handing out ------------------------------------------------------------------------------------------------------


def test_what_has_left_its_lease_is_not_given_again_with_the_answer_that_got_lost(frontier):
    frontier.offer([record(name) for name in "abc"])
    leases = frontier.lease("w", 0, 3).leases
    frontier.retry(leases[0].id, leases[0].token, 60)
    frontier.release([(leases[1].id, leases[1].token)])
    assert frontier.lease("w", 0, 3).leases == leases[2:]


@pytest.mark.parametrize("queue", ["queue", "alone"])
def test_an_entry_of_a_queue_without_a_request_is_dropped_when_it_is_met(redis_client, frontier, queue):
    frontier.offer([record("a")])
    key = frontier.keys.queue(1) if queue == "queue" else frontier.keys.alone
    redis_client.zadd(key, {b"x" * 20: -1})
    assert [lease.id for lease in frontier.lease("w", 0, 1).leases] == [record("a").id]
    assert redis_client.zcard(key) == 0
    assert redis_client.zrange(frontier.keys.leases, 0, -1) == [record("a").id]
