"""What a user of Redis must be allowed, and what a crawl is without the rest."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from scrapy_plus.errors import FrontierError
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.frontier.script import load, names
from scrapy_plus.frontier.stored_items import StoredItems
from scrapy_plus.redis_client import check_server
from tests.frontier.conftest import Clock, OwnRedis, Worker, record, redis_frontier
from tests.frontier.test_torn import Process, check_whole

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"


def documented() -> list[str]:
    [line] = re.findall(r"^ACL SETUSER crawler on >password ~\{shop:\* (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    return str(line).split()


@pytest.fixture
def server() -> Iterator[OwnRedis]:
    with tempfile.TemporaryDirectory(prefix="sp-rights-") as folder:
        users = Path(folder) / "users.acl"  # they outlive a restart
        users.write_text("user default on nopass ~* &* +@all\n", "utf-8")
        made = OwnRedis(Path(folder), "--appendfsync", "always", "--aclfile", str(users))
        yield made
        made.stop()


@pytest.fixture
def log_in(server: OwnRedis) -> Callable[..., redis.Redis]:
    def as_user(*without: str) -> redis.Redis:
        rights = [right for right in documented() if right[1:] not in without]
        with server.client() as admin:
            admin.execute_command("ACL", "SETUSER", "crawler", "reset", "on", ">password", "~{shop:*", *rights)
            admin.execute_command("ACL", "SAVE")
        return redis.Redis(unix_socket_path=server.socket, username="crawler", password="password", socket_timeout=30)

    return as_user


def test_the_rights_that_are_documented_are_enough_for_every_verb(server, log_in):
    user, clock = log_in(), Clock()
    prefix = "{shop:books}"
    with server.client() as admin:
        follow = redis_frontier(admin, clock, prefix=prefix)  # its clock is moved by somebody who may
        frontier = redis_frontier(user, prefix=prefix, grace_seconds=float("inf"), max_lost=2)
        Process(frontier, "w", clock).run()
        check_whole(frontier)
        follow.close()
    assert frontier.repair() == 0
    assert len(frontier.dead_letters()[0]) == 2 and frontier.nodes() and frontier.sites()
    assert frontier.stats()["pages"] > 0 and frontier.seed_cursor() == (1, True)
    stored = StoredItems(user, prefix)
    assert stored.state() == "finished" and stored.count() == len(frontier.items()[0]) == len(stored.items()[0])
    assert not frontier.keeps_items()
    assert frontier.forget([record("a").id]) == 1
    assert frontier.reap(worker="w") == ([], [])
    assert frontier.begin_again()
    frontier.flush(force=True)
    as_list = redis_frontier(user, prefix="{shop:tea}", items_as="list")
    as_list.seed(0, 1, [record("a")], finished=True)
    Worker(as_list).ack(*Worker(as_list).lease())
    assert StoredItems(user, "{shop:tea}").items() == ([], "")
    assert as_list.finish() and as_list.clear_finished()
    check_server(user)


def test_no_script_calls_what_is_not_documented():
    called = {word for name in names() for word in re.findall(r"\bp?call\('([A-Z]+)'", load(name).text)}
    called |= {word for name in names() for word in re.findall(r"'(HDEL|ZREM|ZADD)'", load(name).text)}
    assert {f"+{word.lower()}" for word in called} <= set(documented())


def test_every_right_that_is_documented_is_used_somewhere():
    texts = "".join(load(name).text for name in names())
    texts += "".join(path.read_text("utf-8") for path in (PAGE.parents[1] / "scrapy_plus").rglob("*.py"))
    for right in documented():
        word = right[1:].partition("|")[0]
        assert re.search(rf"""['".]{word}(\b|_)""", texts, re.IGNORECASE), right


def crawl_over_a_restart(server: OwnRedis, client: redis.Redis, break_what: Callable[[RedisFrontier], None]) -> None:
    """A request that a torn log left nowhere is found again, by who was connected and by who comes."""
    frontier = redis_frontier(client, prefix="{shop:books}", retry_seconds=20.0)
    frontier.offer([record("a"), record("b")])
    with server.client() as admin:
        before = admin.hmget(frontier.keys.meta, "run", "version")
        break_what(frontier)
        server.stop(kill=True)
        server.start()
        assert frontier.offer([record("c")]) == [True]
        assert frontier.audit() == []
        run, version = admin.hmget(frontier.keys.meta, "run", "version")
        assert run != before[0] and int(version) > int(before[1])
        frontier.close()
        again = redis_frontier(client, prefix="{shop:books}")
        assert admin.hmget(frontier.keys.meta, "run", "version") == [run, version], "the same server, met before"
        assert again.counts().ready == 3
        again.close()


@pytest.mark.parametrize("without", [("info",), ("info", "bgrewriteaof"), ("bgrewriteaof",), ()], ids=str)
def test_a_restart_is_noticed_and_mended_whatever_the_user_may_ask(server, log_in, caplog, without):
    with caplog.at_level(logging.WARNING, "scrapy_plus.frontier"):
        crawl_over_a_restart(server, log_in(*without), lambda frontier: forget_a_place(server, frontier))
    told = [entry.getMessage() for entry in caplog.records if "log is not rewritten" in entry.getMessage()]
    assert len(told) == bool(without), "one line where the log is not written anew"


def forget_a_place(server: OwnRedis, frontier: RedisFrontier) -> None:
    with server.client() as admin:
        assert admin.zrem(frontier.keys.queue(1), record("a").id) == 1


def test_two_processes_whose_user_may_not_ask_info_know_that_it_is_one_server(log_in):
    user = log_in("info")
    first, second = (redis_frontier(user, prefix="{shop:books}") for _ in range(2))
    first.server.client.connection_pool.disconnect()
    first.offer([record("a")])
    assert first.server.run_id == second.server.run_id != ""


@pytest.mark.parametrize("right", ["evalsha", "script|exists", "hset"])
def test_a_right_that_is_missing_is_one_line_that_says_where_to_look(log_in, right):
    with pytest.raises(FrontierError, match=r"refuses: .* must be allowed more: .*docs/protocol.md") as refusal:
        redis_frontier(log_in(right, "info"), prefix="{shop:books}")
    assert "\n" not in str(refusal.value)
