"""A crawl that is dumped and restored is the same crawl: in every state, cut anywhere, once and again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import pytest

from scrapy_plus.errors import NodesAlive, UsageError
from scrapy_plus.frontier import dumping
from scrapy_plus.frontier.base import Page
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.rules.lifecycle import State
from tests.frontier.conftest import Worker, name_of, record, redis_frontier
from tests.frontier.test_torn import NEVER, Died, cut_after

SLOW = "http://slow.test:80"


def crawl_in_every_state(client, **options) -> RedisFrontier:
    frontier = redis_frontier(client, **options)
    worker = Worker(frontier)
    frontier.set_site(SLOW, limit=3, facts={"robots": "User-agent: *"})
    frontier.seed(0, 4, [record(name) for name in ("a", "b", "c", "d")])
    done, dead, delayed, held = worker.lease(4)
    counters = {"pages": 1}
    children = [record("c3", priority=2), record("f"), record("slow", site=SLOW, priority=-1)]
    frontier.ack([Page(done.id, done.token, children, [b"tea", b"\x00\xff"], counters=counters)])
    frontier.ack([Page(dead.id, dead.token, reason="HTTP 500 ü", status=500)])
    frontier.retry(delayed.id, delayed.token, 9_000.0)
    frontier.offer([record(f"n{number}") for number in range(900)])
    frontier.forget([record(f"n{number}").id for number in range(900)])
    for number in range(900):
        frontier.discard(record(f"n{number}").id)
    frontier.offer([record("e", priority=1)])
    frontier.set_pace(delay_seconds=0.0, limit=5)
    assert held.id == record("d").id
    return frontier


def entries_of(frontier: RedisFrontier) -> list[list]:
    """As a file has them: JSON."""
    return [json.loads(json.dumps(entry)) for entry in dumping.dump(frontier, with_items=True)]


def essence(entries: list[list]) -> list[str]:
    """What must be the same of two dumps: all but the order, and which crawl it is."""
    seen = [["seen", top, sorted(members)] for kind, top, *rest in entries if kind == "seen" for members in rest]
    return sorted(json.dumps(entry) for entry in [*seen, *(one for one in entries[1:] if one[0] != "seen")])


def opened_to_load(client, **options) -> RedisFrontier:
    return redis_frontier(client, loads=True, **options)


@pytest.fixture(params=["stream", "list"])
def items_as(request) -> str:
    return request.param


def test_a_restored_crawl_is_the_one_that_was_dumped(redis_client, items_as):
    source = crawl_in_every_state(redis_client, items_as=items_as)
    entries = entries_of(source)
    assert dumping.check(entries)["items_as"] == items_as
    target = opened_to_load(redis_client)
    dumping.restore(target, entries)
    assert essence(entries_of(target)) == essence(entries)
    assert target.audit() == []
    before, after = source.counts(), target.counts()
    assert (after.ready, after.leased) == (before.ready + before.leased, 0)
    assert (after.delayed, after.dead, after.seen, after.done) == (1, 1, before.seen, before.done)
    [letter], _ = target.dead_letters()
    assert (name_of(letter.id), letter.reason, letter.status) == ("b", "HTTP 500 ü", 500)
    assert target.locate(record("c").id).attempt == 1
    assert (redis_client.hlen(target.keys.retry), redis_client.hlen(target.keys.lost)) == (1, 0)
    assert target.site_facts(SLOW).facts == {"robots": "User-agent: *"} and target.site_facts(SLOW).pace.limit == 3
    assert target.stats() == {"pages": 1} and target.seed_cursor() == (4, False)
    assert target.overridden_pace() == (0.0, 5)
    assert target.items()[0] == [b"tea", b"\x00\xff"]


def test_a_restored_crawl_goes_on_in_its_order_and_takes_nothing_again(redis_client):
    source = crawl_in_every_state(redis_client)
    Worker(source).frontier.release([(record("d").id, ("w", 3))])
    target = opened_to_load(redis_client)
    dumping.restore(target, entries_of(source))
    assert target.offer([record("a"), record("b"), record("f")]) == [False, False, False]
    for frontier in (source, target):
        worker = Worker(frontier, "v")
        got = [name_of(lease.id) for _ in range(5) for lease in worker.lease(1)]
        assert got == ["c3", "e", "d", "f", "slow"]


def test_what_its_worker_held_twice_and_lost_is_still_suspect(redis_client):
    source = redis_frontier(redis_client, max_lost=5)
    source.offer([record("unlucky")])
    for name in ("t", "u", "v"):
        Worker(source, name).lease(1)
        source.reap(worker=name, started=[record("poison").id, record("unlucky").id])
        source.offer([record("poison", priority=9)])
    target = opened_to_load(redis_client)
    dumping.restore(target, entries_of(source))
    assert target.locate(record("poison").id).lost == 2
    assert target.locate(record("unlucky").id).lost == 1
    assert redis_client.hgetall(target.keys.req) == redis_client.hgetall(source.keys.req), "to the byte"
    assert redis_client.zcard(target.keys.alone) == 1


# -- cut short ---------------------------------------------------------------------------------------------------------


def test_loading_that_was_killed_at_any_write_ends_as_if_it_had_not_been(redis_client):
    entries = entries_of(crawl_in_every_state(redis_client))
    few = [one for one in entries if one[0] != "seen"] + [one for one in entries if one[0] == "seen"][:3]
    few = [one for one in few if one[0] != "end"] + [entries[-1]]
    whole = opened_to_load(redis_client)
    counter = cut_after(whole, NEVER)
    dumping.restore(whole, few)
    writes = int(redis_client.get(counter))
    assert writes > 40
    for cut in range(0, writes, 3):
        prefix = f"{{cut:{cut}:{whole.keys.prefix[1:-1]}}}"
        dying = opened_to_load(redis_client, prefix=prefix)
        cut_after(dying, cut)
        with pytest.raises(Died):
            dumping.restore(dying, few)
        second = opened_to_load(redis_client, prefix=prefix)
        dumping.restore(second, few)
        assert essence(entries_of(second)) == essence(entries_of(whole))
        assert second.audit() == [], cut


def test_nobody_opens_a_crawl_that_is_half_loaded_but_who_loads_the_same(redis_client):
    entries = entries_of(crawl_in_every_state(redis_client))
    target = opened_to_load(redis_client)
    prefix = target.keys.prefix

    def killed() -> Iterator[list]:
        yield from islice(entries, 4)
        raise Died

    with pytest.raises(Died):
        dumping.restore(target, killed())
    with pytest.raises(UsageError, match="is being loaded from a file; wait, or"):
        redis_frontier(redis_client, prefix=prefix)
    other = [["dump", *entries[0][1:3], {**entries[0][3], "id": "other"}], *entries[1:]]
    with pytest.raises(UsageError, match="is half loaded from another file; --replace forgets it first"):
        dumping.restore(opened_to_load(redis_client, prefix=prefix), other)
    dumping.restore(opened_to_load(redis_client, prefix=prefix), other, replaces=True)
    assert redis_frontier(redis_client, prefix=prefix).audit() == []


# -- refused -----------------------------------------------------------------------------------------------------------


def test_a_crawl_that_is_not_empty_is_replaced_only_by_who_says_so(redis_client):
    entries = entries_of(crawl_in_every_state(redis_client))
    target = opened_to_load(redis_client)
    target.offer([record("mine")])
    with pytest.raises(UsageError, match="is not empty; --replace forgets it first"):
        dumping.restore(target, entries)
    assert target.locate(record("mine").id).state is State.READY
    target.beat("w", {})
    with pytest.raises(NodesAlive):
        dumping.restore(target, entries, replaces=True)
    target.server.client.delete(target.keys.nodes)
    dumping.restore(target, entries, replaces=True)
    assert essence(entries_of(target)) == essence(entries)


FULL = {
    "a request": lambda client, keys: client.hset(keys.req, b"x" * 20, b"y" * 20),
    "the cursor": lambda client, keys: client.hset(keys.meta, "cursor", 3),
    "what was seen": lambda client, keys: client.hset(keys.meta, "seen", 3),
    "an item": lambda client, keys: client.xadd(keys.items, {"item": "x"}),
}


@pytest.mark.parametrize("what", FULL)
def test_each_part_of_a_crawl_makes_it_full(redis_client, what):
    target = opened_to_load(redis_client)
    FULL[what](redis_client, target.keys)
    with pytest.raises(UsageError, match="is not empty"):
        dumping.restore(target, entries_of(redis_frontier(redis_client)))


def test_a_process_that_waits_for_work_keeps_a_load_away_until_it_is_gone(redis_client):
    entries = entries_of(crawl_in_every_state(redis_client))
    target = opened_to_load(redis_client)
    target.beat("w", {})
    with pytest.raises(NodesAlive, match="processes work on the crawl"):
        dumping.restore(target, entries)
    redis_client.zadd(target.keys.nodes, {"w": 1})  # long ago
    dumping.restore(target, entries)


def test_a_crawl_that_is_worked_on_is_not_dumped(redis_client):
    source = crawl_in_every_state(redis_client)
    moving = dumping.dump(source, with_items=False)
    next(moving)
    source.offer([record("late")])
    with pytest.raises(UsageError, match="somebody worked on the crawl while it was dumped"):
        list(moving)
    source.beat("w", {})
    with pytest.raises(NodesAlive, match=r"1 processes work on the crawl \(w\)"):
        list(dumping.dump(source, with_items=False))


def test_what_is_no_whole_dump_is_refused(redis_client):
    entries = entries_of(crawl_in_every_state(redis_client))
    for wrong, words in (
        ([["tea", "x", 1]], "no dump of a crawl"),
        ([["dump", dumping.FORMAT, 2, {}]], "made by a newer release"),
        (entries[:-1], "has no end"),
        ([one for one in entries if one[0] != "request"], "has no end"),
        ([], "has no end"),
    ):
        with pytest.raises(UsageError, match=words):
            dumping.check(wrong)
