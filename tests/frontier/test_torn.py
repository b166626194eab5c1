"""Scripts cut after each of their writes, as a torn log or a crash leaves them: after repair, nothing is lost.

A crawl that uses every verb is run once for each write that it makes, and dies there.
"""

from __future__ import annotations

from hashlib import sha1

import pytest
import redis

from scrapy_plus.frontier.base import Ask, Lease, Page
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.rules.lifecycle import State
from tests.frontier.conftest import Clock, name_of, record, redis_frontier

WRITES = [
    "HSET",
    "HDEL",
    "HSETNX",
    "HINCRBY",
    "ZADD",
    "ZREM",
    "ZREMRANGEBYRANK",
    "SADD",
    "SREM",
    "XADD",
    "XDEL",
    "RPUSH",
]
WRITES += ["DEL", "UNLINK"]
CUTTER = """
local real, writes = redis, {%s}
local limit = tonumber(redis.call('GET', KEYS[1] .. 'limit'))
local function counted(call)
  return function(...)
    if writes[(...)] and real.call('INCR', KEYS[1] .. 'writes') > limit then error('CUT') end
    return call(...)
  end
end
local redis = { call = counted(real.call), pcall = counted(real.pcall) }
redis.error_reply, redis.sha1hex = real.error_reply, real.sha1hex
"""
NEVER = 1_000_000
SITES = {"a": "http://one:80", "b": "http://two:80", "slow": "http://slow:80"}
GRAPH = {
    "start": ["a", "b", "c"],
    "a": ["b", "d", "retried"],
    "b": ["dead", "poison", "start"],
    "c": ["a", "slow", "released"],
    "d": ["c"],
}
ALL = {"start", "a", "b", "c", "d", "retried", "dead", "poison", "slow", "released"}


class Died(Exception):
    """The process is gone in the middle of a script."""


def cut_after(frontier: RedisFrontier, writes: int) -> str:
    """From now on the scripts of this frontier make so many writes; the name of the key that counts them."""
    client, counter = frontier.server.client, frontier.keys.prefix + "writes"
    head = CUTTER % ", ".join(f"{name} = true" for name in WRITES)

    def evaluate(script, keys, arguments):
        try:
            return client.eval(head + script.text, len(keys), *keys, *arguments)
        except redis.exceptions.ResponseError as error:
            if "CUT" in str(error):
                raise Died from None
            raise

    client.mset({counter: 0, frontier.keys.prefix + "limit": writes})
    frontier.server._evaluate = evaluate
    return counter


class Process:
    """A worker process that crawls GRAPH; what it does with a page depends on nothing but the store."""

    def __init__(self, frontier: RedisFrontier, name: str, clock: Clock) -> None:
        self.frontier, self.name, self.clock = frontier, name, clock
        self.base = 0

    def run(self) -> None:
        if self.frontier.seed_cursor() == (0, False):
            self.frontier.seed(0, 1, [page_record("start")], finished=True)
        self.frontier.hold_seeding(self.name, 60)
        self.frontier.set_site(SITES["slow"], delay_seconds=5, limit=1)
        for _ in range(60):
            self.frontier.beat(self.name, {"pid": "1"})
            answer = self.frontier.commit(ask=Ask(self.name, self.base, 2)).lease
            self.base += len(answer.leases)
            self.work(answer.leases)
            self.clock.advance(2)
            self.frontier.reap()
            if self.frontier.finish():
                break
        self.look_back()

    def work(self, leases: list[Lease]) -> None:
        held = [(lease.id, lease.token) for lease in leases]
        self.frontier.renew(held, started=[lease.id for lease in leases])
        self.frontier.fetched(held[:1])
        for lease in leases:
            self.settle(lease, name_of(lease.id))

    def settle(self, lease: Lease, name: str) -> None:
        children = [page_record(child) for child in GRAPH.get(name, ())]
        if name == "poison":
            self.clock.advance(11)
            self.frontier.reap()
        elif name == "retried" and lease.attempt == 0:
            self.frontier.retry(lease.id, lease.token, 3)
        elif name == "released" and not self.frontier.stats().get("released"):
            self.frontier.offer([page_record("released")])
            self.frontier.release([(lease.id, lease.token)])
            self.frontier.server.client.hset(self.frontier.keys.stats, "released", 1)
        else:
            reason = "no" if name == "dead" else None
            items = [] if reason else [f"item of {name}".encode()]
            self.frontier.ack([Page(lease.id, lease.token, children, items, reason, counters={"pages": 1})])

    def look_back(self) -> None:
        """The dead come to life and die again; a page is forgotten and comes again."""
        self.frontier.set_state("paused")
        self.frontier.revive([page_record("dead").id])
        self.frontier.set_state("running")
        again = self.frontier.lease(self.name, self.base, 1).leases
        self.base += len(again)
        for lease in again:
            self.frontier.bury(lease.id, lease.token, "no")


def page_record(name: str):
    return record(name, site=SITES.get(name, "http://one:80"))


def check_whole(frontier: RedisFrontier) -> None:
    assert frontier.finish()
    assert frontier.audit() == []
    states = {name: frontier.locate(page_record(name).id).state for name in ALL}
    expected = {name: State.DEAD if name in ("dead", "poison") else State.DONE for name in ALL}
    assert states == expected
    items = sorted(frontier.items(count=1000)[0])
    assert items == sorted(f"item of {name}".encode() for name in ALL - {"poison", "dead"}), "each once"


def crawl_cut_after(client: redis.Redis, writes: int) -> int:
    """Crawls, dies after so many writes, comes again as another process, and crawls to the end; the writes it took."""
    clock = Clock()
    frontier = redis_frontier(client, clock, grace_seconds=float("inf"), max_lost=2)
    counter = cut_after(frontier, writes)
    try:
        Process(frontier, "first", clock).run()
        del frontier.server._evaluate
    except Died:
        again = redis_frontier(client, clock, prefix=frontier.keys.prefix, grace_seconds=float("inf"), max_lost=2)
        again.repair()
        assert again.audit() == [], "a repaired store is sound"
        again.reap(worker="first", started=[])
        Process(again, "second", clock).run()
        frontier = again
    check_whole(frontier)
    return int(client.get(counter) or 0)


SHARES = [0, *(pytest.param(share, marks=pytest.mark.long) for share in range(1, 5))]


@pytest.mark.parametrize("share", SHARES)
def test_a_crawl_that_dies_after_any_of_its_writes_is_repaired_and_loses_nothing(redis_client, share):
    total = crawl_cut_after(redis_client, NEVER)
    assert total > 250
    for writes in range(share, total + 1, len(SHARES)):
        crawl_cut_after(redis_client, writes)


def crowded(bucket: int, number: int):
    """A record whose id falls into one of the first buckets, as of millions only some hundred would."""
    rest = int.from_bytes(sha1(b"%d" % number).digest()[:10], "big") >> 12
    id = (bucket << 68 | rest).to_bytes(10, "big").ljust(20, b".")
    return record("x")._replace(id=id)


def test_buckets_split_and_find_again_what_was_seen(redis_client):
    frontier = redis_frontier(redis_client, seen_cache=0)
    records = [crowded(bucket, bucket * 1000 + number) for bucket in range(3) for number in range(100)]
    frontier.offer(records)
    redis_client.hset(frontier.keys.meta, "fill", 0)
    frontier.offer([record("y")])
    meta = redis_client.hmget(frontier.keys.meta, ["size", "split", "epoch"])
    assert meta[:2] == [b"4096", b"8"]
    epoch = int(meta[2])
    for bucket in range(3):
        halves = [redis_client.scard(frontier.keys.bucket(epoch, number)) for number in (bucket, bucket + 4096)]
        assert sum(halves) == 100 and min(halves) > 20
    assert frontier.offer(records) == [False] * 300
    assert frontier.audit() == []
    frontier.flush()
    assert [*redis_client.scan_iter(f"{frontier.keys.prefix}:*", count=9999)] == [frontier.keys.meta.encode()]


def test_a_round_of_splits_begins_the_next(redis_client):
    frontier = redis_frontier(redis_client, seen_cache=0)
    records = [crowded(bucket, bucket * 1000 + number) for bucket in range(3) for number in range(50)]
    frontier.offer(records)
    redis_client.hset(frontier.keys.meta, mapping={"fill": 0, "split": 4095})
    for number in range(3):  # as if 4,095 had split: what the first buckets held is moved to where it would be
        move_as_if_split(redis_client, frontier, number)
    frontier.offer([record("y")])
    assert redis_client.hmget(frontier.keys.meta, ["size", "split"]) == [b"8192", b"7"]
    assert frontier.offer(records) == [False] * 150
    assert frontier.audit() == []


def move_as_if_split(client: redis.Redis, frontier: RedisFrontier, bucket: int) -> None:
    epoch = int(client.hget(frontier.keys.meta, "epoch"))
    key = frontier.keys.bucket(epoch, bucket)
    odd = [member for member in client.smembers(key) if int(member) % 2]
    client.smove(key, frontier.keys.bucket(epoch, bucket + 4096), odd[0])
    for member in odd[1:]:
        client.smove(key, frontier.keys.bucket(epoch, bucket + 4096), member)


@pytest.mark.parametrize("first", [0, 4093])
def test_a_bucket_torn_while_it_splits_forgets_nothing(redis_client, first):
    total = split_cut_after(redis_client, NEVER, first)
    assert total > 150
    for writes in range(0, total, 7):
        split_cut_after(redis_client, writes, first)


def split_cut_after(client: redis.Redis, writes: int, first: int) -> int:
    """Splits three full buckets from `first` on, and cuts it; 4,095 is the last of its round."""
    frontier = redis_frontier(client, seen_cache=0)
    records = [crowded(bucket, bucket * 1000 + number) for bucket in range(first, first + 3) for number in range(60)]
    frontier.offer(records)
    client.hset(frontier.keys.meta, mapping={"fill": 0 if first == 0 else 181 / (4096 + first + 2.5), "split": first})
    counter = cut_after(frontier, writes)
    try:
        frontier.offer([record("y")])
    except Died:
        pass
    again = redis_frontier(client, prefix=frontier.keys.prefix, seen_cache=0)
    again.repair()
    assert again.audit() == []
    assert again.offer(records) == [False] * 180
    again.offer([record("y")])
    assert again.counts().seen == 181
    assert again.audit() == []
    return int(client.get(counter))


def flush(store: RedisFrontier) -> None:
    store.flush(force=True)


def forget(store: RedisFrontier) -> None:
    store.forget([record("a").id])


@pytest.mark.parametrize("verb", [flush, forget])
def test_flush_and_forget_cut_anywhere_can_be_sent_again(redis_client, verb):
    for writes in [*range(40), 1000, 4000]:  # a flush sweeps 4,096 buckets
        frontier = redis_frontier(redis_client)
        frontier.offer([record("a"), record("b")])
        [lease] = frontier.lease("w", 0, 1).leases
        frontier.bury(lease.id, lease.token, "no")
        cut_after(frontier, writes)
        try:
            verb(frontier)
        except Died:
            again = redis_frontier(redis_client, prefix=frontier.keys.prefix)
            again.repair()
            assert again.audit() == []
            verb(again)
            assert again.audit() == []
            assert again.offer([record("a")]) == [True]
        else:
            assert verb is forget and writes > 3
            return
    assert verb is flush


def begin_again(store: RedisFrontier) -> None:
    store.begin_again()
    store.seed(0, 2, [record("a"), record("b")])


def clear_finished(store: RedisFrontier) -> None:
    store.clear_finished(reopens=True)
    store.seed(0, 2, [record("a"), record("b")])


@pytest.mark.parametrize("verb", [begin_again, clear_finished])
def test_a_next_crawl_that_is_cut_anywhere_as_it_begins_can_be_begun_again(redis_client, verb):
    """`a` was done and `b` given up by the crawl before; whatever the cut, the next takes in both, once."""
    for writes in [*range(60), 1000, 4000]:
        frontier = redis_frontier(redis_client)
        frontier.seed(0, 2, [record("a"), record("b")], finished=True)
        a, b = frontier.lease("w", 0, 2).leases
        frontier.ack([Page(a.id, a.token)])
        frontier.bury(b.id, b.token, "no")
        assert frontier.finish()
        cut_after(frontier, writes)
        try:
            verb(frontier)
            del frontier.server._evaluate
        except Died:
            frontier = redis_frontier(redis_client, prefix=frontier.keys.prefix)
            frontier.repair()
            assert frontier.audit() == []
            if frontier.seed_cursor() != (2, False):
                verb(frontier)
        assert sorted(name_of(lease.id) for lease in frontier.lease("w", 9, 5).leases) == ["a", "b"]
        assert frontier.counts().dead == 0
        assert frontier.audit() == []
