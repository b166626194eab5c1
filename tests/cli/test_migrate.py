"""The queues of other frameworks in a real Redis, taken over: pickles as those wrote them, and bad ones."""

from __future__ import annotations

import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scrapy_plus.cli import main
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.codec import decode
from scrapy_plus.http.request import Request
from scrapy_plus.migrating.child import Unpickler, Unreadable
from tests.frontier.conftest import Worker, own_redis, redis_client  # noqa: F401

# What Scrapy 2.19 and scrapy-redis 0.9.1 put into the queue of a spider: a GET with all that it may have, and a form.
FULL = (
    b"\x80\x05\x953\x01\x00\x00\x00\x00\x00\x00}\x94(\x8c\x03url\x94\x8c\x12http://shop.test/a\x94\x8c\x08callback\x94"
    b"\x8c\x04page\x94\x8c\x07errback\x94\x8c\x03err\x94\x8c\x07headers\x94}\x94C\x01X\x94]\x94C\x011\x94as\x8c\x04body"
    b"\x94C\x00\x94\x8c\x07cookies\x94}\x94\x8c\x01c\x94\x8c\x01v\x94s\x8c\x04meta\x94}\x94(\x8c\x05depth\x94K\x02\x8c"
    b"\x04item\x94\x8c\x08__main__\x94\x8c\x03Tea\x94\x93\x94)\x81\x94}\x94\x8c\x07_values\x94}\x94\x8c\x04name\x94\x8c"
    b"\x06oolong\x94ssb\x8c\x01t\x94K\x01K\x02\x86\x94u\x8c\x08encoding\x94\x8c\x05utf-8\x94\x8c\x05flags\x94]\x94\x8c"
    b"\tcb_kwargs\x94}\x94\x8c\x01n\x94K\x01s\x8c\x0bdont_filter\x94\x88\x8c\x06method\x94\x8c\x03GET\x94\x8c\x08priority"
    b"\x94K\x07u."
)
FORM = (
    b"\x80\x05\x95#\x01\x00\x00\x00\x00\x00\x00}\x94(\x8c\x03url\x94\x8c\x12http://shop.test/f\x94\x8c\x08callback\x94N"
    b"\x8c\x07errback\x94N\x8c\x07headers\x94}\x94C\x0cContent-Type\x94]\x94C!application/x-www-form-urlencoded\x94as"
    b"\x8c\x04body\x94C\x03q=1\x94\x8c\x07cookies\x94}\x94\x8c\x04meta\x94}\x94\x8c\x08encoding\x94\x8c\x05utf-8\x94\x8c"
    b"\x05flags\x94]\x94\x8c\tcb_kwargs\x94}\x94\x8c\x0bdont_filter\x94\x89\x8c\x06method\x94\x8c\x04POST\x94\x8c\x08"
    b"priority\x94K\x00\x8c\x06_class\x94\x8c$scrapy.http.request.form.FormRequest\x94u."
)
_projects = count()


def scrapy(name: str, **more: object) -> bytes:
    return pickle.dumps({"url": f"http://shop.test/{name}", "callback": None, "dont_filter": False, **more}, protocol=2)


def parse_detail(self: object, response: object) -> None:
    """A callback of the old spider."""


class Old:
    """Another project, with a crawl in the Redis, and the command that takes it over."""

    def __init__(self, client: Any, socket: str) -> None:
        self.client = client
        self.project = f"moved{next(_projects)}"
        self.key = f"{self.project}:requests"
        self.frontier = RedisFrontier(client, f"{{{self.project}:shop}}", retry_seconds=5.0)
        self.worker = Worker(self.frontier)
        self._words = ["--spider", "shop", "-s", f"REDIS_URL=unix://{socket}", "-s", f"PROJECT_NAME={self.project}"]

    def move(self, framework: str = "scrapy-redis", *keys: str) -> Result:
        return CliRunner().invoke(main, ["migrate", *(keys or (self.key,)), "--from", framework, *self._words])

    def requests(self) -> list[Request]:
        """All that was queued, in the order in which it is crawled."""
        leases = self.worker.lease(100)
        return [decode(lease.payload) for lease in leases]

    def paths(self) -> list[str]:
        return [request.url.rpartition("/")[2] for request in self.requests()]


@pytest.fixture
def old(own_redis, redis_client, tmp_path, monkeypatch) -> Iterator[Old]:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    made = Old(redis_client, own_redis.socket)
    yield made
    made.frontier.flush(force=True)
    redis_client.delete(made.key)


# -- scrapy-redis -----------------------------------------------------------------------------------------------------


def test_a_request_of_scrapy_redis_keeps_all_that_it_had(old):
    old.client.zadd(old.key, {FULL: -7})
    done = old.move()
    assert done.exit_code == 0, done.stderr
    [request] = old.requests()
    assert (request.url, request.method, request.parse, request.errback) == ("http://shop.test/a", "GET", "page", "err")
    assert (request.headers["X"], request.cookies, request.priority, request.filter) == ("1", {"c": "v"}, 7, False)
    assert request.meta == {"depth": 2, "item": {"name": "oolong"}, "t": [1, 2]}
    assert request.cb_kwargs == {"n": 1}


def test_a_form_stays_a_form(old):
    old.client.lpush(old.key, FORM)
    old.move()
    [request] = old.requests()
    assert (request.method, request.data, request.parse) == ("POST", b"q=1", "parse")
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("kind", ["list", "zset"])
def test_what_would_have_come_first_there_comes_first_here(old, kind):
    names = [f"p{number:03}" for number in range(450)]
    for number, name in enumerate(names):
        old.client.lpush(old.key, scrapy(name)) if kind == "list" else old.client.zadd(old.key, {scrapy(name): number})
    assert "450 queued" in old.move().stderr
    assert [path for _ in range(5) for path in old.paths()] == names


def test_run_again_it_takes_over_nothing_twice_and_the_old_queue_stays(old):
    old.client.lpush(old.key, FULL, scrapy("b"), scrapy("c", dont_filter=True), scrapy("c", dont_filter=True))
    assert "4 requests in" in (first := old.move().stderr) and "4 queued, 0 known already" in first
    assert "0 queued, 4 known already" in old.move().stderr
    assert sorted(old.paths()) == ["a", "b", "c", "c"]
    assert old.client.llen(old.key) == 4


# -- the course framework ---------------------------------------------------------------------------------------------


@pytest.fixture
def course(monkeypatch) -> Callable[..., bytes]:
    """Pickles of a class `Request` in a module of another program, which is gone when they are read."""

    def make(url: str, **state: object) -> bytes:
        module = types.ModuleType("old_course_request")
        request_class = type("Request", (), {"__module__": module.__name__})
        spider_class = type("Shop", (), {"__module__": module.__name__, "parse_detail": parse_detail})
        module.Request, module.Shop = request_class, spider_class  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        request = request_class()
        if state.get("parse") == "bound":
            state["parse"] = spider_class().parse_detail
        request.__dict__.update({"url": url, "method": "GET", "params": None, "data": None, "meta": None, **state})
        data = pickle.dumps(request)
        monkeypatch.delitem(sys.modules, module.__name__)
        return data

    return make


def test_requests_of_the_course_framework_come_out_of_its_queue_or_backup(old, course):
    many = [
        course("http://shop.test/1", parse="parse_detail", filter=False, spider_name="shop", retry_time=2),
        course("http://shop.test/2", parse="bound", params={"q": "tea"}, headers={"A": "b"}),
        course("http://shop.test/3", method="POST", data={"q": "1"}, dont_filter=True, callback="parse"),
        course("http://shop.test/4", spider_name="books"),
    ]
    old.client.rpush(old.key, *many[:3])
    assert "3 queued" in old.move("course").stderr
    one, two, three = old.requests()
    assert (one.url, one.parse, one.filter) == ("http://shop.test/1", "parse_detail", False)
    assert (two.parse, two.params, two.headers["A"], two.filter) == ("parse_detail", {"q": "tea"}, "b", True)
    assert (three.method, three.data, three.filter) == ("POST", {"q": "1"}, False)
    old.client.hset(f"{old.key}:backup", mapping={"fp1": many[1], "fp4": many[3]})
    told = old.move("course", f"{old.key}:backup").stderr
    assert "2 requests in" in told and "0 queued, 1 known already, 1 of other spiders" in told
    old.client.delete(f"{old.key}:backup")


def test_which_key_it_is_must_be_said_for_the_course_framework(old):
    done = CliRunner().invoke(main, ["migrate", "--from", "course", "--spider", "shop", "-s", "PROJECT_NAME=x"])
    assert done.exit_code == 2 and "say in which key the requests are" in done.stderr


# -- what is wrong ----------------------------------------------------------------------------------------------------


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("evil",)


BAD = {
    "no pickle": (b"http://shop.test/", "UnpicklingError"),
    "empty": (b"", "EOFError"),
    "cut": (FULL[:100], "truncated"),
    "no request": (pickle.dumps([1, 2]), "it is a list, and no request"),
    "no url": (pickle.dumps({"method": "GET"}), "it has no 'url'"),
    "another scheme": (pickle.dumps({"url": "ftp://shop.test/"}), "not an http(s) URL"),
    "a program": (pickle.dumps(Evil()), "it has no 'url'"),
    "a program in meta": (scrapy("x", meta={"a": Evil()}), "cannot be stored"),
    "too much": (b"\x80\x04\x8e\xff\xff\xff\xff\x7f\x00\x00\x00.", "too much memory"),
    "a bomb": (b"\x80\x04(" + b"]\x94" + b"h\x00" * 10 + b"l.", ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_request_is_told_and_left_and_the_others_come(old, tmp_path, kind):
    data, reason = BAD[kind]
    old.client.lpush(old.key, scrapy("a"), data, scrapy("b"))
    done = old.move()
    assert done.exit_code == 3
    assert f"shop: number 1 in {old.key} is left out: " in done.stderr and reason in done.stderr
    assert "3 requests in" in done.stderr and "2 queued, 0 known already, 1 left out" in done.stderr
    assert old.paths() == ["a", "b"]
    assert not (tmp_path / "evil").exists(), "nothing in a pickle is run"
    assert old.client.llen(old.key) == 3


def test_the_first_bad_ones_are_told_one_by_one_and_then_only_counted(old):
    old.client.lpush(old.key, *[b"x%d" % number for number in range(30)])
    told = old.move().stderr
    assert told.count("is left out") == 10 and "others will be left out unsaid" in told and "30 left out" in told


@pytest.mark.parametrize(("make", "said"), [("", "there is no key"), ("string", "is a string; a queue is a list")])
def test_a_key_that_is_no_queue_is_told(old, make, said):
    if make:
        old.client.set(old.key, "x")
    done = old.move()
    assert done.exit_code == 2 and said in done.stderr


def test_a_reader_that_a_pickle_has_killed_is_replaced():
    reader = Unpickler()
    try:
        assert reader.load(pickle.dumps(1)) == 1
        assert reader._process is not None
        reader._process.kill()
        reader._process.wait()
        with pytest.raises(Unreadable, match="died of it"):
            reader.load(pickle.dumps(2))
        assert reader.load(pickle.dumps({"b": b"\xff", 3: {4}})) == {"b": b"\xff", 3: [4]}
    finally:
        reader.close()


def test_the_reader_has_no_modules_but_the_standard_ones_and_none_of_our_environment(monkeypatch):
    monkeypatch.setenv("SCRAPY_PLUS_REDIS_PASSWORD", "hush")
    reader = Unpickler()
    try:
        reader.load(pickle.dumps(1))
        assert reader._process is not None
        environment = Path(f"/proc/{reader._process.pid}/environ").read_bytes()
        assert b"hush" not in environment and b"PATH=" in environment
    finally:
        reader.close()
