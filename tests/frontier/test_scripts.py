"""What single scripts write, answer and refuse, where the contract cannot see it: their mutants are caught here."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from scrapy_plus.frontier import wire
from scrapy_plus.frontier.base import LeaseAnswer, Page
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.frontier.script import load
from scrapy_plus.rules.lifecycle import State
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
    "discard": ["x"],
    "drop": [],
    "forget": [0],
    "hold": ["seeder", "w", 1000],
    "lease": ["w", 0, 0, 0, 0, 0.5],
    "load_begin": ["x", "fifo", "stream", 1],
    "load_end": ["running", 0, 0],
    "load_items": [0, 0],
    "load_requests": [0],
    "load_seen": [0],
    "mend": [0],
    "mend_items": [0],
    "mend_seen": ["-"],
    "mend_sites": [1, 0],
    "offer": ["", 0],
    "reap": [10, "-", 0],
    "renew": ["w", "-", 0],
    "replace": ["x", "payload"],
    "revive": [0],
    "seed": ["0", "0", "0"],
}


@pytest.mark.parametrize("verb", IDLE)
def test_a_server_that_takes_no_writes_refuses_a_verb_even_if_it_has_nothing_to_do(read_only, verb):
    with pytest.raises(redis.exceptions.ResponseError, match="read only replica"):
        read_only.eval(load(verb).text, 2, "{idle}", "{idle}:dead", *IDLE[verb])


# -- a server whose memory is full ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full() -> Iterator[redis.Redis]:
    with tempfile.TemporaryDirectory(prefix="sp-full-") as folder:
        server = OwnRedis(Path(folder), "--appendonly", "no")
        with server.client() as client:
            yield client
        server.stop()


LOADS = tuple(verb for verb in IDLE if verb.startswith("load_"))
TAKES_IN = ("offer", "seed", "replace", *LOADS)
PASSES = {
    **{verb: IDLE[verb] for verb in IDLE if verb not in TAKES_IN},
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


@pytest.mark.parametrize("verb", [*PASSES, *TAKES_IN])
def test_only_what_takes_in_more_is_refused_when_memory_is_full(full, verb):
    prefix = f"{{{verb}}}"
    frontier = redis_frontier(full, prefix=prefix)
    full.hset(frontier.keys.meta, mapping={"seeded": 1, "state": STATES.get(verb, "running"), "called": 1})
    full.config_set("maxmemory", 1)
    try:
        if verb in PASSES:
            full.eval(load(verb).text, 2, prefix, f"{prefix}:dead", *PASSES[verb])
            assert int(full.hget(frontier.keys.meta, "called")) > 1, "that somebody called is noted all the same"
        else:
            with pytest.raises(redis.exceptions.ResponseError, match="used memory"):
                full.eval(load(verb).text, 1, prefix, *IDLE[verb])
    finally:
        full.config_set("maxmemory", 0)


def test_when_memory_is_full_a_lease_is_asked_for_again_in_a_second(full):
    frontier = redis_frontier(full)
    full.config_set("maxmemory", 1)
    try:
        assert frontier.lease("w", 0, 1) == LeaseAnswer([], 1.0, "full")
    finally:
        full.config_set("maxmemory", 0)


# -- what is left behind, and what is said ----------------------------------------------------------------------------


def test_a_node_that_is_forgotten_leaves_nothing_behind(redis_client):
    clock = Clock()
    frontier = redis_frontier(redis_client, clock)
    frontier.beat("old", {"n": "1"})
    assert frontier.drain("old")
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
    assert frontier.lease("w", 0, 3) == LeaseAnswer(leases[2:], 0.0, "running")


@pytest.mark.parametrize("queue", ["queue", "alone"])
def test_an_entry_of_a_queue_without_a_request_is_dropped_when_it_is_met(redis_client, frontier, queue):
    frontier.offer([record("a")])
    key = frontier.keys.queue(1) if queue == "queue" else frontier.keys.alone
    redis_client.zadd(key, {b"x" * 20: -1})
    assert [lease.id for lease in frontier.lease("w", 0, 1).leases] == [record("a").id]
    assert redis_client.zcard(key) == 0
    assert redis_client.zrange(frontier.keys.leases, 0, -1) == [record("a").id]
    assert not redis_client.exists(frontier.keys.site(0)), "it takes no slot"


def test_a_delay_without_a_request_is_dropped_when_it_is_due(redis_client, frontier):
    redis_client.zadd(frontier.keys.delayed, {b"x" * 20: 1})
    assert frontier.lease("w", 0, 1).leases == []
    assert redis_client.zcard(frontier.keys.delayed) == 0


def test_what_is_stored_of_a_request_begins_with_its_format_its_score_and_its_site(redis_client, frontier):
    frontier.offer([record("a")])
    stored = redis_client.hget(frontier.keys.req, record("a").id)
    score = redis_client.zscore(frontier.keys.queue(1), record("a").id)
    assert stored == struct.pack(">BdI", 1, score, 1) + record("a").payload


def test_a_ghost_before_the_one_that_goes_alone_does_not_hold_it_up(redis_client, frontier):
    frontier.offer([record("a"), record("b")])
    redis_client.hset(frontier.keys.lost, record("a").id, 2)
    redis_client.zadd(frontier.keys.alone, {b"x" * 20: -2, record("a").id: -1})
    assert [lease.id for lease in frontier.lease("w", 0, 5).leases] == [record("a").id]


def test_a_site_that_stands_open_with_an_empty_queue_is_passed_over(redis_client, frontier):
    frontier.offer([record("a", site="http://empty:80"), record("b")])
    redis_client.delete(frontier.keys.queue(1))
    assert [lease.id for lease in frontier.lease("w", 0, 5).leases] == [record("b").id]


def test_the_jitter_of_each_site_of_a_call_stays_within_its_bounds(redis_client):
    frontier = redis_frontier(redis_client, dice=lambda: 0.9)
    sites = [f"http://site{number}:80" for number in range(8)]
    for site in sites:
        frontier.set_site(site, delay_seconds=10.0, jitter=0.5)
    frontier.offer([record(str(number), site=site) for number, site in enumerate(sites)])
    before = frontier.now()
    assert len(frontier.lease("w", 0, 8).leases) == 8
    after = frontier.now()
    starts = [int(redis_client.hget(frontier.keys.site(number), "next")) / 1000 for number in range(1, 9)]
    assert all(before + 5 <= start <= after + 15.001 for start in starts)
    assert max(starts) - min(starts) > 3, "they are spread"


def test_a_site_forgets_a_delay_that_is_over(redis_client):
    clock = Clock()
    frontier = redis_frontier(redis_client, clock)
    frontier.set_site(SITE, delay_seconds=5)
    frontier.offer([record("a")])
    worker = Worker(frontier)
    worker.ack(*worker.lease(1))
    assert redis_client.hexists(frontier.keys.site(1), "next")
    clock.advance(6)
    frontier.offer([record("b")])
    assert not redis_client.hexists(frontier.keys.site(1), "next")


# -- taking back ------------------------------------------------------------------------------------------------------


def test_a_lease_that_is_another_by_now_is_not_taken_back(frontier):
    frontier.offer([record("a")])
    frontier.lease("w", 5, 1)
    assert frontier._run("reap", 0, b"-", *wire.pack_leases([(record("a").id, ("w", 4))]))[1:] == [[], []]
    assert frontier.counts().leased == 1


@pytest.mark.parametrize("torn", ["owner", "req"])
def test_a_lease_that_is_half_there_is_dropped_when_its_time_is_over(redis_client, torn):
    clock = Clock()
    frontier = redis_frontier(redis_client, clock, grace_seconds=float("inf"))
    frontier.offer([record("a"), record("b")])
    frontier.lease("w", 0, 1)
    redis_client.hdel(getattr(frontier.keys, torn), record("a").id)
    clock.advance(11)
    assert frontier.reap() == ([], [])
    assert not redis_client.exists(frontier.keys.leases, frontier.keys.owner)
    assert frontier.repair() == (torn == "owner") and frontier.audit() == []


def test_what_stands_in_no_lease_is_not_renewed(redis_client, frontier):
    frontier.offer([record("a")])
    [lease] = frontier.lease("w", 0, 1).leases
    redis_client.zrem(frontier.keys.leases, lease.id)
    frontier.renew([(lease.id, lease.token)])
    assert not redis_client.exists(frontier.keys.leases)


def test_only_who_revives_something_opens_a_finished_crawl_and_raises_its_version(redis_client):
    frontier = finished(redis_client, with_dead=True)
    redis_client.hset(frontier.keys.meta, mapping={"size": 4096, "split": 0})
    before = redis_client.hmget(frontier.keys.meta, "state", "version")
    assert frontier.revive([record("x").id]) == 0
    assert redis_client.hmget(frontier.keys.meta, "state", "version") == before
    assert frontier.revive([record("a").id]) == 1
    assert redis_client.hmget(frontier.keys.meta, "state", "version") == [b"running", b"%d" % (int(before[1]) + 1)]


# -- time, keys and mending -------------------------------------------------------------------------------------------


def test_the_stores_time_is_the_servers(redis_client, frontier):
    for _ in range(20):
        before, now, after = server_ms(redis_client), round(frontier.now() * 1000), server_ms(redis_client)
        assert before <= now <= after


def server_ms(client: redis.Redis) -> int:
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000


def test_items_are_stored_where_their_readers_want_them(redis_client):
    frontier = redis_frontier(redis_client, items_key="elsewhere")
    frontier.offer([record("a")])
    [lease] = frontier.lease("w", 0, 1).leases
    frontier.ack([Page(lease.id, lease.token, [], [b"item"])])
    assert redis_client.xlen("elsewhere") == 1
    redis_client.delete("elsewhere")


def test_repair_tells_how_many_stood_nowhere(redis_client, frontier):
    frontier.offer([record(name) for name in "abcd"])
    redis_client.hset(frontier.keys.lost, record("d").id, 2)
    frontier.repair()
    assert redis_client.zrange(frontier.keys.alone, 0, -1) == [record("d").id]
    assert frontier.repair() == 0 and frontier.audit() == []
    redis_client.zrem(frontier.keys.queue(1), record("a").id, record("b").id)
    redis_client.zadd(frontier.keys.delayed, {record("c").id: 1})
    assert frontier.repair() == 2
    assert frontier.audit() == []


def test_repair_leaves_each_request_in_the_first_of_its_places(redis_client, frontier):
    frontier.offer([record(name) for name in "abcd"])
    dead, leased, late, _ = frontier.lease("w", 0, 4).leases
    frontier.bury(dead.id, dead.token, "no")
    frontier.retry(late.id, late.token, 600)
    redis_client.zadd(frontier.keys.delayed, {dead.id: 1, leased.id: 1})
    assert frontier.repair() == 0 and frontier.audit() == []
    assert [frontier.locate(lease.id).state for lease in (dead, leased, late)] == [
        State.DEAD,
        State.LEASED,
        State.DELAYED,
    ]
    assert redis_client.zrange(frontier.keys.delayed, 0, -1) == [late.id]


def test_what_is_mended_may_be_gone_meanwhile(frontier):
    frontier.offer([record("a")])
    assert frontier._run("mend", 2, b"x" * 20, "1", record("a").id, wire.member(record("a").id))[1] == 0
    assert frontier.audit() == []


def test_of_half_stored_pages_only_those_that_will_come_again_lose_their_items(redis_client, frontier):
    frontier.offer([record(name) for name in "abcde"])
    leases = {lease.id[:1]: lease for lease in frontier.lease("w", 7, 4).leases}
    for name, lease in leases.items():
        redis_client.xadd(frontier.keys.items, {"page": lease.id + b"%d" % lease.token[1], "item": name})
    redis_client.xadd(frontier.keys.items, {"page": record("e").id + b"3", "item": "e"})
    a, b, c, d = (record(name).id for name in "abcd")
    redis_client.hdel(frontier.keys.req, b)  # done, but for its lease
    redis_client.zadd(frontier.keys.dead, {c: 1})  # buried, but for its lease
    redis_client.hset(frontier.keys.owner, d, "11:w:99")  # another's by now
    frontier._run("mend_items", 100)
    assert frontier.items(count=100)[0] == [b"b", b"c", b"d", b"e"]
    assert a in leases[b"a"].id


# -- a finished crawl that is cleared ---------------------------------------------------------------------------------


def finished(client: redis.Redis, *, with_dead: bool) -> RedisFrontier:
    frontier = redis_frontier(client)
    frontier.seed(0, 2, [record("a"), record("b")], finished=True)
    for lease in frontier.lease("w", 0, 2).leases:
        reason = "no" if with_dead and lease.id == record("a").id else None
        frontier.ack([Page(lease.id, lease.token, [], [b"item"], reason, counters={"pages": 1})])
    client.hset(frontier.keys.meta, mapping={"size": 8192, "split": 3})
    assert frontier.finish()
    return frontier


@pytest.mark.parametrize("with_dead", [True, False])
def test_of_a_cleared_crawl_nothing_is_left_but_items_sums_and_what_dead_letters_need(redis_client, with_dead):
    frontier = finished(redis_client, with_dead=with_dead)
    epoch = int(redis_client.hget(frontier.keys.meta, "epoch"))
    assert frontier.clear_finished() is True
    left = {key.decode().removeprefix(f"{frontier.keys.prefix}:") for key in redis_client.scan_iter("{test:*", 9999)}
    left = {key for key in left if not key.startswith("{")}
    assert left == {"meta", "items", "stats"} | ({"req", "dead", "why", "sites", "names"} if with_dead else set())
    known = redis_client.hmget(frontier.keys.meta, "size", "split", "trash", "state", "seen")
    assert known == [b"4096", b"0", b"", b"finished", None]
    assert int(redis_client.hget(frontier.keys.meta, "epoch")) > epoch
    assert frontier.audit() == []


def test_what_is_left_to_the_sweep_is_named_before_it_is_forgotten(redis_client, monkeypatch):
    frontier = finished(redis_client, with_dead=False)
    epoch = redis_client.hget(frontier.keys.meta, "epoch")
    monkeypatch.setattr(frontier, "sweep", lambda: None)
    frontier.clear_finished()
    assert redis_client.hget(frontier.keys.meta, "trash") == epoch + b" 8195 1;"
