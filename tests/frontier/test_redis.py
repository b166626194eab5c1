"""What is Redis's own: lost answers, full memory, restarts, foreign values, caches, and what is left behind."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path

import gevent
import pytest
import redis

from scrapy_plus.errors import FrontierError, FrontierUnavailable, SettingsError
from scrapy_plus.frontier import redis_mending
from scrapy_plus.frontier.base import Ask, Known, Page
from scrapy_plus.frontier.cache import SeenCache
from scrapy_plus.frontier.keys import Keys, crawl_prefix
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.frontier.script import load, names
from scrapy_plus.frontier.server import is_passing
from scrapy_plus.rules.lifecycle import State
from tests.frontier.conftest import SITE, Clock, OwnRedis, Worker, record, redis_frontier
from tests.frontier.conftest import names as names_of
from tests.frontier.test_torn import Process, check_whole


@pytest.fixture
def frontier(redis_client):
    return redis_frontier(redis_client)


def every_key(client: redis.Redis, frontier: RedisFrontier) -> dict[str, object]:
    """All that is stored of a crawl, but for what time and chance decide."""
    dump: dict[str, object] = {}
    for key in client.scan_iter(f"{frontier.keys.prefix}:*", count=10_000):
        kind, name = client.type(key), key.decode().replace(str(epoch_of(frontier)), "")
        name = name.removeprefix(frontier.keys.prefix)
        if kind == b"hash":
            value = client.hgetall(key)
            for field in (b"epoch", b"now", b"called", b"seq", b"version", b"hold", b"items_key"):
                value.pop(field, None)
        elif kind == b"zset":
            value = client.zrange(key, 0, -1)
        elif kind == b"set":
            value = client.smembers(key)
        else:
            value = [fields for _, fields in client.xrange(key)]
        dump[name] = value
    return dump


# -- lost answers -----------------------------------------------------------------------------------------------------


def test_a_crawl_whose_every_call_is_carried_out_twice_is_the_same_crawl(redis_client):
    dumps = []
    for times in (1, 2):
        clock = Clock()
        frontier = redis_frontier(redis_client, clock, grace_seconds=float("inf"), max_lost=2, dice=lambda: 0.5)
        once = frontier.server._evaluate

        def evaluate(script, keys, arguments, times=times, once=once):
            return [once(script, keys, arguments) for _ in range(times)][-1]

        frontier.server._evaluate = evaluate
        Process(frontier, "w", clock).run()
        check_whole(frontier)
        dumps.append(every_key(redis_client, frontier))
    for name in {*dumps[0], *dumps[1]}:
        assert dumps[0].get(name) == dumps[1].get(name), name


def test_an_answer_that_got_lost_is_asked_for_again(redis_client, frontier, caplog):
    frontier.offer([record("a"), record("b")])
    once, losses = (
        frontier.server._evaluate,
        [redis.exceptions.ConnectionError("cut"), redis.exceptions.TimeoutError("late")],
    )

    def evaluate(script, keys, arguments):
        answer = once(script, keys, arguments)
        if losses:
            raise losses.pop()
        return answer

    frontier.server._evaluate = evaluate
    with caplog.at_level(logging.INFO, "scrapy_plus.frontier"):
        assert names_of(frontier.lease("w", 0, 1).leases) == ["a"]
    assert frontier.counts().leased == 1
    assert [entry.levelname for entry in caplog.records] == ["WARNING", "INFO"], (
        "one line when it begins, one when it ends"
    )


def test_pages_whose_answer_got_lost_are_ours_and_those_of_others_are_not(redis_client, frontier):
    frontier.offer([record(name) for name in "abc"])
    done, dead, late = Worker(frontier).lease(3)
    frontier.reap(worker="w")
    assert names_of(Worker(frontier, "v").lease(3)) == ["a", "b", "c"]
    mine = [(lease.id, ("v", number)) for number, lease in enumerate((done, dead))]
    once, losses = frontier.server._evaluate, [redis.exceptions.ConnectionError("cut")]

    def evaluate(script, keys, arguments):
        answer = once(script, keys, arguments)
        if losses:
            raise losses.pop()
        return answer

    frontier.server._evaluate = evaluate
    pages = [Page(*mine[0], [record("child")], [b"item"]), Page(*mine[1], reason="no"), Page(late.id, late.token)]
    assert frontier.ack(pages) == [[False], [], None]
    assert (frontier.counts().done, frontier.counts().dead, frontier.items()[0]) == (1, 1, [b"item"])
    assert frontier.offer([record("child")]) == [False]


def connections(client: redis.Redis) -> set[str]:
    return {one["id"] for one in client.client_list()}


def wait_until_gone(client: redis.Redis, own: set[str]) -> None:
    for _ in range(250):
        if not own & connections(client):
            return
        time.sleep(0.02)
    raise AssertionError(own & connections(client))


def test_a_frontier_that_is_closed_leaves_no_connection_behind(redis_client):
    before = connections(redis_client)
    frontier = redis_frontier(redis_client)
    frontier.offer([record("a")])
    own = connections(redis_client) - before
    assert own
    frontier.close()
    wait_until_gone(redis_client, own)


def test_a_frontier_that_is_closed_lets_the_call_end_that_is_under_way(redis_client):
    before = connections(redis_client)
    frontier = redis_frontier(redis_client)
    key = f"{frontier.keys.prefix}:asked"
    asking = gevent.spawn(frontier.server.call, lambda: frontier.server.client.blpop([key], timeout=20))
    gevent.sleep(0.05)
    frontier.close()
    redis_client.rpush(key, "answer")
    assert asking.get(timeout=20) == (key.encode(), b"answer")
    wait_until_gone(redis_client, connections(redis_client) - before)


def test_a_server_that_forgot_its_scripts_is_sent_them_again(redis_client, frontier):
    frontier.offer([record("a")])
    redis_client.script_flush()
    assert frontier.offer([record("b")]) == [True]


def test_nobody_waits_for_ever(tmp_path):
    client = redis.Redis(unix_socket_path=str(tmp_path / "nothing.sock"), password="s3cret")
    with pytest.raises(FrontierUnavailable, match=r"no usable Redis at .*nothing.sock for .*REDIS_URL") as refusal:
        RedisFrontier(client, "{x}", retry_seconds=0.3)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (redis.exceptions.ConnectionError("Connection refused"), True),
        (redis.exceptions.TimeoutError("Timeout reading"), True),
        (OSError("broken pipe"), True),
        (redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"), True),
        (redis.exceptions.ReadOnlyError("You can't write against a read only replica."), True),
        (redis.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), True),
        (redis.exceptions.ResponseError("MISCONF Redis is configured to save RDB snapshots"), True),
        (redis.exceptions.ResponseError("BUSY Redis is busy running a script."), True),
        (redis.exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."), True),
        (redis.exceptions.ResponseError("ERR Error running script: @user_script:1: -OOM command not allowed"), True),
        (redis.exceptions.ResponseError("ERR unknown command"), False),
        (redis.exceptions.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), False),
        (redis.exceptions.AuthenticationError("invalid password"), False),
        (redis.exceptions.NoPermissionError("this user has no permissions"), False),
    ],
)
def test_only_what_will_pass_is_waited_for(error, passes):
    assert is_passing(error) is passes


# -- a server that is restarted ---------------------------------------------------------------------------------------


@pytest.fixture
def restartable():
    with tempfile.TemporaryDirectory(prefix="sp-restart-") as folder:
        server = OwnRedis(Path(folder), "--appendfsync", "always")
        yield server
        server.stop()


def test_a_killed_server_is_waited_for_and_mended_before_the_next_call(restartable):
    client = restartable.client()
    frontier = redis_frontier(client, retry_seconds=20.0)
    frontier.offer([record(name) for name in "abcd"])
    [lease] = Worker(frontier).lease()
    before = client.hmget(frontier.keys.meta, "run", "version")
    client.zrem(frontier.keys.queue(1), record("c").id)  # as a torn log would leave it
    client.hdel(frontier.keys.owner, lease.id)
    restartable.stop(kill=True)
    restartable.start()
    assert frontier.offer([record("a"), record("e")]) == [False, True]
    assert frontier.audit() == []
    run, version = client.hmget(frontier.keys.meta, "run", "version")
    assert run != before[0] and int(version) > int(before[1])
    assert names_of(Worker(frontier, "v").lease(9)) == ["a", "b", "c", "d", "e"]


def test_whoever_opens_a_crawl_on_another_server_first_voids_what_the_others_believe_to_be_seen(redis_client, frontier):
    frontier.offer([record("a")])
    assert frontier.knows([record("a").id]) == [True]
    redis_client.hset(frontier.keys.meta, "server", "the one before")
    before = int(redis_client.hget(frontier.keys.meta, "version"))
    for _ in range(2):
        RedisFrontier(redis_client, frontier.keys.prefix, joins=True).open()
    assert int(redis_client.hget(frontier.keys.meta, "version")) == before + 1, "once, not with each that joins"
    frontier.offer([record("b")])
    assert frontier.knows([record("a").id]) == [False]


def test_a_replaced_request_is_stored_in_the_same_version_as_a_new_one(redis_client, frontier):
    frontier.offer([record("a"), record("b")])
    assert frontier.replace(record("a").id, b"new")
    bodies = [redis_client.hget(frontier.keys.req, record(name).id) for name in "ab"]
    assert bodies[0][:1] == bodies[1][:1] and bodies[0][13:] == b"new"


def test_after_a_restart_the_living_are_not_late(restartable):
    client = restartable.client()
    frontier = redis_frontier(client, retry_seconds=20.0, lease_seconds=30.0)
    frontier.offer([record("a")])
    [lease] = Worker(frontier).lease()
    client.zadd(frontier.keys.leases, {lease.id: 1})
    restartable.stop(kill=True)
    restartable.start()
    assert frontier.reap() == ([], [])
    assert frontier.renew([(lease.id, lease.token)]) == []


def test_the_log_is_rewritten_on_a_restarted_server(restartable):
    client = restartable.client()
    redis_frontier(client, prefix="{x}").offer([record("a")])
    restartable.stop(kill=True)
    restartable.start()
    redis_frontier(client, prefix="{x}")
    for _ in range(500):
        info = client.info("persistence")
        if not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]:
            break
        time.sleep(0.02)
    assert info["aof_last_rewrite_time_sec"] >= 0


def test_repair_counts_what_a_torn_ack_did_not_come_to_count(redis_client, frontier):
    frontier.offer([record(name) for name in "abc"])
    worker = Worker(frontier)
    for lease in worker.lease(2):
        frontier.ack([Page(lease.id, lease.token)])
    redis_client.hincrby(frontier.keys.meta, "done", -1)
    redis_client.hincrby(frontier.keys.meta, "seen", -1)
    frontier.repair()
    assert (frontier.counts().done, frontier.counts().seen, frontier.counts().ready) == (2, 3, 1)


def test_on_a_restarted_server_one_process_mends_and_the_others_wait_for_it(restartable, monkeypatch):
    frontiers = [redis_frontier(restartable.client(), prefix="{x}", retry_seconds=20.0) for _ in range(4)]
    frontiers[0].offer([record("a")])
    mended, repair = [], redis_mending.repair

    def slow_repair(frontier):
        gevent.sleep(0.3)
        mended.append(frontier)
        return repair(frontier)

    monkeypatch.setattr(redis_mending, "repair", slow_repair)
    restartable.stop(kill=True)
    restartable.start()
    calls = [gevent.spawn(frontier.lease, f"w{number}", 0, 1) for number, frontier in enumerate(frontiers)]
    gevent.joinall(calls, timeout=20)
    assert sum(len(call.value.leases) for call in calls) == 1
    assert len(mended) == 1
    assert frontiers[0].reap() == ([], []), "the living are not late"


def test_who_dies_while_it_mends_leaves_it_to_the_next(restartable, monkeypatch):
    monkeypatch.setattr(redis_mending, "MENDING_SECONDS", 0.2)
    first, second = (redis_frontier(restartable.client(), prefix="{x}", retry_seconds=20.0) for _ in range(2))
    first.offer([record("a")])
    restartable.stop(kill=True)
    restartable.start()
    with monkeypatch.context() as patch:
        patch.setattr(redis_mending, "repair", lambda frontier: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            first.lease("w", 0, 1)
    assert names_of(second.lease("v", 0, 1).leases) == ["a"]


@pytest.mark.parametrize("mends", [True, False], ids=["by this process", "by another"])
def test_a_server_that_restarts_again_while_it_is_mended_is_mended_before_the_next_call(
    restartable, monkeypatch, mends
):
    monkeypatch.setattr(redis_mending, "MENDING_SECONDS", 0.2)
    frontier = redis_frontier(restartable.client(), prefix="{x}", retry_seconds=20.0)
    frontier.offer([record("a")])
    restarts, repaired_on, repair = [], [], redis_mending.repair

    def restart(*_):
        if len(restarts) < 2:
            restarts.append(1)
            restartable.stop(kill=True)
            restartable.start()
        gevent.sleep(0.05)

    def note_repair(frontier):
        if mends:
            restart()
        repair(frontier)
        repaired_on.append(run_id_of(restartable))

    restart()
    if not mends:
        restartable.client().hset(frontier.keys.meta, mapping={"mender": "other", "mender_until": 2**53})
        frontier.server.sleep = lambda _: restart() or restartable.client().hset(frontier.keys.meta, "mender_until", 0)
    monkeypatch.setattr(redis_mending, "repair", note_repair)
    frontier.lease("w", 0, 1)
    assert len(restarts) == 2
    mended_on = restartable.client().hget(frontier.keys.meta, "run").decode()
    assert repaired_on[-1] == mended_on == run_id_of(restartable)


def run_id_of(server: OwnRedis) -> str:
    with server.client() as client:
        return client.info("server")["run_id"]


def test_a_crawl_that_was_taken_away_begins_anew(redis_client, frontier):
    frontier.offer([record("a")])
    for key in redis_client.scan_iter(f"{frontier.keys.prefix}:*", count=1000):
        redis_client.delete(key)
    assert frontier.offer([record("a")]) == [True]
    assert frontier.counts().ready == 1


# -- full memory ------------------------------------------------------------------------------------------------------


def test_when_memory_is_full_what_is_worked_on_is_settled_and_nothing_is_handed_out(redis_client, frontier):
    frontier.offer([record(name) for name in "abcde"])
    done, dead, later, back = Worker(frontier).lease(4)
    redis_client.config_set("maxmemory", 1)
    try:
        answer = frontier.commit(
            pages=[Page(done.id, done.token, [record("child")], [b"item"]), Page(dead.id, dead.token, reason="no")],
            retries=[(later.id, later.token, 0.0)],
            ask=Ask("w", 4, 5),
        )
        assert (answer.pages, answer.retried) == ([[True], []], [True])
        assert (answer.lease.leases, answer.lease.state) == ([], "full")
        assert frontier.lease("w", 4, 1).state == "full"
        assert frontier.renew([(back.id, back.token)]) == []
        assert frontier.release([(back.id, back.token)]) == 1
        assert frontier.reap() == ([], [])
        assert redis_frontier(redis_client, prefix=frontier.keys.prefix).counts().dead == 1, "others may join"
    finally:
        redis_client.config_set("maxmemory", 0)
    assert names_of(frontier.lease("w", 4, 9).leases) == ["c", "d", "e", "child"]
    assert frontier.audit() == []


def test_when_memory_is_full_a_crawl_can_be_looked_after(redis_client, frontier):
    frontier.offer([record(name) for name in "abcd"])
    dead, gone, lost, _ = Worker(frontier).lease(4)
    redis_client.config_set("maxmemory", 1)
    try:
        frontier.fetched([(dead.id, dead.token)])
        for lease in (dead, gone):
            assert frontier.bury(lease.id, lease.token, "no")
        assert (frontier.revive([dead.id]), frontier.forget([gone.id]), frontier.repair()) == (1, 1, 0)
        frontier.beat("w", {"pid": "1"})
        frontier.set_state("paused")
        frontier.set_site(SITE, limit=3)
        frontier.set_pace(limit=2)
        assert frontier.drain("w")
        assert frontier.hold_seeding("w", 5)
        assert [lost.id in ids for ids in frontier.reap(worker="w")] == [True, False]
        assert frontier.audit() == []
        frontier.flush(force=True)
    finally:
        redis_client.config_set("maxmemory", 0)
    assert frontier.audit() == [] and frontier.counts().seen == 0


def test_a_crawl_can_finish_while_memory_is_full(redis_client, frontier):
    frontier.seed(0, 1, [record("a")], finished=True)
    [lease] = Worker(frontier).lease()
    redis_client.config_set("maxmemory", 1)
    try:
        frontier.ack([Page(lease.id, lease.token)])
        assert frontier.finish()
    finally:
        redis_client.config_set("maxmemory", 0)


def test_offers_wait_for_memory_and_give_up_after_a_while_without_having_written(redis_client):
    frontier = redis_frontier(redis_client, retry_seconds=0.2)
    frontier.offer([record("a")])
    redis_client.config_set("maxmemory", 1)
    try:
        with pytest.raises(FrontierUnavailable, match="used memory"):
            frontier.offer([record("b")])
        with pytest.raises(FrontierUnavailable, match="used memory"):
            frontier.seed(0, 1, [record("b")])
    finally:
        redis_client.config_set("maxmemory", 0)
    assert frontier.locate(record("b").id).state is State.NEW
    assert frontier.seed_cursor() == (0, False)


# -- foreign and broken values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["req", "open", "leases", "owner", "sites", "meta", "items"])
def test_a_key_that_holds_what_another_program_wrote_is_a_clear_error(redis_client, frontier, name):
    frontier.offer([record("a"), record("b")])
    [lease] = Worker(frontier).lease()
    redis_client.set(getattr(frontier.keys, name), b"mine")
    with pytest.raises(FrontierError, match="another program wrote"):
        frontier.ack([Page(lease.id, lease.token, [record("c", site="http://new:80")], [b"item"])])
        frontier.lease("v", 0, 1)


def test_a_body_that_is_no_body_is_handed_out_for_its_reader_to_refuse(redis_client, frontier):
    frontier.offer([record("a"), record("b")])
    redis_client.hset(frontier.keys.req, record("a").id, b"?")
    first, second = Worker(frontier).lease(2)
    assert (first.id, first.payload) == (record("a").id, b"")
    assert frontier.bury(first.id, first.token, "Undecodable")
    assert frontier.ack([Page(second.id, second.token)]) == [[]]


def test_a_crawl_stored_by_a_later_release_is_refused(redis_client, frontier):
    redis_client.hset(frontier.keys.meta, "schema", 2)
    with pytest.raises(FrontierError, match="schema 2, not 1"):
        redis_frontier(redis_client, prefix=frontier.keys.prefix, lease_seconds=99.0)
    assert redis_client.hget(frontier.keys.meta, "lease") == b"10000", "it is left as it is"


# -- opening ----------------------------------------------------------------------------------------------------------


def test_a_crawl_with_requests_keeps_its_order_and_says_so(redis_client, caplog):
    first = redis_frontier(redis_client, order="fifo")
    first.offer([record("a"), record("b", priority=9)])
    second = redis_frontier(redis_client, prefix=first.keys.prefix, order="priority")
    assert "goes on in the order it has: fifo" in caplog.text
    assert names_of(Worker(second).lease(2)) == ["a", "b"]


def test_a_crawl_without_requests_takes_the_new_order(redis_client):
    first = redis_frontier(redis_client, order="fifo")
    second = redis_frontier(redis_client, prefix=first.keys.prefix, order="priority")
    second.offer([record("a"), record("b", priority=9)])
    assert names_of(Worker(second).lease(2)) == ["b", "a"]


def test_whoever_opens_last_says_how_long_leases_are(redis_client):
    clock = Clock()
    first = redis_frontier(redis_client, clock, lease_seconds=10.0, grace_seconds=float("inf"))
    first.offer([record("a")])
    redis_frontier(redis_client, prefix=first.keys.prefix, lease_seconds=99.0, grace_seconds=float("inf"))
    Worker(first).lease()
    clock.advance(50)
    assert first.reap() == ([], [])


def test_an_unknown_kind_of_item_store_is_refused(redis_client):
    with pytest.raises(ValueError, match="stream or list"):
        RedisFrontier(redis_client, "{x}", items_as="set")


def test_items_can_be_a_list_that_consumers_pop(redis_client):
    frontier = redis_frontier(redis_client, items_as="list")
    frontier.offer([record("a")])
    [lease] = Worker(frontier).lease()
    frontier.ack([Page(lease.id, lease.token, items=[b"1", b"2"])])
    assert frontier.items() == ([b"1", b"2"], "2")
    assert redis_client.lpop(frontier.keys.items) == b"1"
    assert frontier.repair() == 0


def test_names_of_crawls_cannot_run_into_each_other():
    assert crawl_prefix("shop", "books") == "{shop:books}"
    assert crawl_prefix("shop", "books", "may", before="sp:") == "sp:{shop:books:may}"
    assert crawl_prefix("shop", "books", "10:30") == "{shop:books:10:30}", "the last may have colons"
    for bad in ("a:b", "a{b", "a}b"):
        with pytest.raises(SettingsError, match="the spider's name = .* cannot name a crawl"):
            crawl_prefix("shop", bad)
    with pytest.raises(SettingsError, match="JOB"):
        crawl_prefix("shop", "books", "{may}")
    with pytest.raises(AttributeError, match="no key"):
        Keys("{x}").nothing  # noqa: B018


def test_every_script_says_its_keys_arguments_and_answer_first():
    for name in names():
        text = load(name).text
        own = text[text.index(f"-- {name}.lua:") :]
        head = own[: own.index("\nlocal") if "\nlocal" in own else len(own)]
        assert "KEYS" in head and "ARGV" in head and "->" in head, name


# -- the cache of what is seen ----------------------------------------------------------------------------------------


def sent_records(frontier: RedisFrontier, monkeypatch) -> list[int]:
    """How many bytes each call from now on carries, roughly: the number of its arguments."""
    sizes: list[int] = []
    once = frontier.server._evaluate

    def evaluate(script, keys, arguments):
        sizes.append(len(arguments))
        return once(script, keys, arguments)

    monkeypatch.setattr(frontier.server, "_evaluate", evaluate)
    return sizes


def test_what_is_certainly_seen_is_not_sent_again(frontier, monkeypatch):
    frontier.offer([record("a"), record("b")])
    sizes = sent_records(frontier, monkeypatch)
    assert frontier.offer([record("a"), record("b")]) == [False, False]
    assert sizes == [2], "only the question whether that still holds"
    assert frontier.offer([record("a"), record("c"), record("b"), record("d")]) == [False, True, False, True]
    [lease] = Worker(frontier).lease()
    few = sizes[-1]
    assert frontier.ack([Page(lease.id, lease.token, [record("a"), record("x"), record("b")])]) == [
        [False, True, False]
    ]
    assert sizes[-1] < few + 20


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("change", ["forget", "flush", "revive", "repair"])
def test_what_another_process_changed_empties_the_cache_before_it_does_harm(redis_client, frontier, change, is_known):
    other = redis_frontier(redis_client, prefix=frontier.keys.prefix)
    frontier.offer([record("a"), record("b")])
    a, b = Worker(frontier).lease(2)
    if change == "revive":
        frontier.bury(a.id, a.token, "no")
        other.revive([a.id])
    else:
        frontier.ack([Page(a.id, a.token)])
        if change == "flush":
            other.flush(force=True)
        elif change == "repair":
            redis_client.srem(bucket_of(frontier, a.id), member_of(a.id))
            other.repair()
        else:
            other.forget([a.id])
    expected = change != "revive"
    if change == "flush":
        assert frontier.offer([record("a"), record("c")]) == [True, True]
    else:
        assert frontier.knows([a.id]) == [True]
        known = Known([a.id], lambda place: record("a")) if is_known else None
        children = [record("c")] if is_known else [record("c"), record("a")]
        assert frontier.ack([Page(b.id, b.token, children, known=known)]) == [[True, expected]]


def bucket_of(frontier: RedisFrontier, id: bytes) -> str:
    return frontier.keys.bucket(epoch_of(frontier), int.from_bytes(id[:2], "big") >> 4)


def epoch_of(frontier: RedisFrontier) -> int:
    return int(frontier.server.client.hget(frontier.keys.meta, "epoch"))


def member_of(id: bytes) -> int:
    return (int.from_bytes(id[:10], "big") >> 5) & ((1 << 63) - 1)


def test_the_cache_is_bounded_and_keeps_what_comes_again():
    cache = SeenCache(100)
    cache.learn([b"often"], b"1.1")
    for number in range(1000):
        cache.learn([b"%d" % number], b"1.1")
        assert b"often" in cache
        assert len(cache) <= 100
    assert b"0" not in cache and b"999" in cache
    cache.heed(b"1.2")
    assert len(cache) == 0 and b"often" not in cache


# -- what is left behind ----------------------------------------------------------------------------------------------


def test_a_finished_crawl_keeps_what_it_has_seen_and_little_else(redis_client, frontier):
    frontier.seed(0, 3, [record(name, site=f"http://{name}:80") for name in "abc"], finished=True)
    frontier.set_site("http://a:80", limit=1)
    worker = Worker(frontier)
    worker.ack(*worker.lease(3))
    assert frontier.finish()
    left = {
        key.decode().removeprefix(frontier.keys.prefix) for key in redis_client.scan_iter(f"{frontier.keys.prefix}:*")
    }
    assert {name for name in left if not name.startswith(":seen:")} == {":meta", ":sites", ":names", ":last", ":s:1"}


def test_a_flush_leaves_nothing_but_what_the_next_crawl_needs(redis_client, frontier):
    frontier.offer([record(f"{number}", site=f"http://{number}:80") for number in range(30)])
    frontier.flush()
    left = [
        key.decode().removeprefix(frontier.keys.prefix) for key in redis_client.scan_iter(f"{frontier.keys.prefix}:*")
    ]
    assert left == [":meta"]


def test_an_unfinished_flush_is_finished_by_whoever_opens_next(redis_client, frontier, monkeypatch):
    frontier.offer([record("a")])
    old = f"{frontier.keys.prefix}:seen:{epoch_of(frontier)}:*"
    monkeypatch.setattr(frontier, "sweep", lambda: None)
    frontier.flush()
    frontier.offer([record("a")])
    assert len(list(redis_client.scan_iter(old, count=9999))) == 1
    again = redis_frontier(redis_client, prefix=frontier.keys.prefix)
    assert list(redis_client.scan_iter(old, count=9999)) == []
    assert again.audit() == [] and again.counts().ready == 1


def test_a_call_a_page_and_less_goes_over_the_wire(redis_client, frontier):
    frontier.offer([record(f"{number:04}") for number in range(320)])
    base, held, before = 0, [], frontier.server.round_trips
    for _ in range(12):
        pages = [Page(lease.id, lease.token) for lease in held]
        held = frontier.commit(pages=pages, ask=Ask("w", base, 32)).lease.leases
        base += len(held)
    assert frontier.counts().done == 320
    assert (frontier.server.round_trips - before) / 320 <= 0.1


def test_the_audit_finds_what_is_broken(redis_client, frontier):
    frontier.offer([record(name) for name in "abcdef"])
    worker = Worker(frontier)
    leases = worker.lease(2)
    frontier.bury(leases[0].id, leases[0].token, "no")
    keys, a, b, c, d, e, f = frontier.keys, *(record(name).id for name in "abcdef")
    breaks = {
        "stands in 0 places": lambda: redis_client.zrem(keys.queue(1), c),
        "stands in 2 places": lambda: redis_client.zadd(keys.delayed, {d: 1}),
        "dead without a reason": lambda: redis_client.hdel(keys.why, a),
        "has no owner": lambda: redis_client.hdel(keys.owner, b),
        "wrong lane": lambda: redis_client.hset(keys.lost, e, 2),
        "out of its place": lambda: redis_client.zadd(keys.queue(1), {f: 1}),
        "was never seen": lambda: redis_client.delete(bucket_of(frontier, e)),
        "a counter without its request": lambda: redis_client.hset(keys.retry, b"x" * 20, 1),
        "slots in use": lambda: redis_client.hset(keys.site(1), "busy", 7),
        "in the backup, but": lambda: redis_client.zadd(keys.queue(1), {b"x" * 20: 1}),
        "seen are counted": lambda: redis_client.hset(keys.meta, "seen", 99),
        'stands in ""': lambda: redis_client.zrem(keys.open, 1),
        "with 2 owners": lambda: redis_client.hset(keys.owner, b"x" * 20, "11:w:9"),
        "does not stand by its best request": lambda: redis_client.zadd(keys.open, {"1": 5}),
        "in 2": lambda: redis_client.zadd(keys.alone, {e: 1}),
        "2 places": lambda: redis_client.zadd(keys.alone, {b: 1}),
        "2 place": lambda: redis_client.zadd(keys.queue(1), {b: 1}),
        "alive": lambda: redis_client.hset(keys.why, c, "1 0 0 no"),
    }
    copy = {key: redis_client.dump(key) for key in redis_client.scan_iter(f"{keys.prefix}:*", count=9999)}
    for complaint, spoil in breaks.items():
        spoil()
        assert any(complaint in line for line in frontier.audit()), complaint
        frontier.repair()
        assert frontier.audit() == [], complaint
        for key in redis_client.scan_iter(f"{keys.prefix}:*", count=9999):
            redis_client.delete(key)
        for key, value in copy.items():
            redis_client.restore(key, 0, value)
    assert frontier.audit() == []


def test_a_site_in_a_pause_is_audited_as_waiting(frontier):
    frontier.offer([record("a")])
    frontier.set_site(SITE, paused_until=frontier.now() + 60)
    assert frontier.audit() == []
