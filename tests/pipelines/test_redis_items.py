"""Items in the crawl's own store: there with the ack of their page, so exactly once, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis

from scrapy_plus import FakeTransport, Item, Request, Spider, crawl
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.core.engine import Engine
from scrapy_plus.errors import DropItem, SettingsError, UsageError
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.pipelines import RedisPipeline
from scrapy_plus.pipelines.redis_items import SoonKnown
from scrapy_plus.wiring import build_engine
from tests.frontier.conftest import OwnRedis, own_redis, redis_client  # noqa: F401  fixtures

PIPELINE = "scrapy_plus.pipelines.RedisPipeline"
PAGES = {f"http://shop.test/{n}": f"<h1>tea {n}</h1>" for n in range(4)}


class Teas(Spider):
    name = "teas"
    start_urls = ["http://shop.test/0"]

    def parse(self, response):
        number = int(response.url[-1])
        yield {"n": number}
        yield {"n": number + 100}
        if number < 3:
            yield Request(f"http://shop.test/{number + 1}")


_numbers = count()
Run = Callable[..., Engine]


@pytest.fixture
def project() -> str:
    return f"items{next(_numbers)}"


@pytest.fixture
def run(own_redis: OwnRedis, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:  # noqa: F811
    """Crawls to the end with a project of its own in Redis, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(spider: type[Spider] = Teas, code: int = 0, **settings: Any) -> Engine:
        common = {"REDIS_URL": f"unix://{own_redis.socket}", "PROJECT_NAME": project, "SCHEDULER_PERSIST": True}
        loaded = load_settings(None, overrides={"SPIDERS": [spider], **common, **settings}, environ={})
        engine = build_engine(loaded, make_transport=lambda _: FakeTransport(PAGES))
        assert engine.start() == code
        return engine

    return run


def stored(client: redis.Redis, project: str, name: str = "teas") -> list[dict[str, Any]]:
    entries: Any = client.xrange(f"{{{project}:{name}}}:items")
    return [json.loads(fields[b"item"]) for _, fields in entries]


EXPECTED = [0, 1, 2, 3, 100, 101, 102, 103]


def test_the_items_of_each_page_are_in_the_stream_once(run, redis_client, project):  # noqa: F811
    engine = run(PIPELINES=[PIPELINE])
    assert sorted(item["n"] for item in stored(redis_client, project)) == EXPECTED
    assert engine.snapshot().crawls[0].stats[f"item_stored_count/{{{project}:teas}}:items"] == 8


def test_without_pipeline_and_file_nothing_is_stored(run, redis_client, project):  # noqa: F811
    run()
    assert redis_client.exists(f"{{{project}:teas}}:items") == 0
    assert redis_client.exists(f"{{{project}:teas}}:meta") == 1, "the crawl itself is there"


def test_a_list_is_for_consumers_that_pop(run, redis_client, project):  # noqa: F811
    run(PIPELINES=[PIPELINE], ITEMS_AS="list")
    key = f"{{{project}:teas}}:items"
    assert json.loads(redis_client.blpop([key], 1)[1]) == {"n": 0}
    assert redis_client.llen(key) == 7


def test_the_key_can_be_chosen(run, redis_client, project):  # noqa: F811
    run(PIPELINES=[PIPELINE], REDIS_ITEMS_KEY=f"{project}/%(spider)s")
    assert redis_client.xlen(f"{project}/teas") == 8
    assert redis_client.exists(f"{{{project}:teas}}:items") == 0
    run(PIPELINES=[PIPELINE], REDIS_ITEMS_KEY=f"{project}/%(spider)s/%(job)s", JOB="may")
    assert redis_client.xlen(f"{project}/teas/may") == 8


def test_a_key_that_crawls_would_share_is_refused(run):
    with pytest.raises(SettingsError, match="must have %\\(spider\\)s in it"):
        run(REDIS_ITEMS_KEY="items")
    with pytest.raises(SettingsError, match="needs %\\(job\\)s in it, since JOB = 'may'"):
        run(REDIS_ITEMS_KEY="%(spider)s:items", JOB="may")


def test_a_crawl_in_memory_refuses_the_pipeline_in_one_clear_line():
    with pytest.raises(UsageError, match="RedisPipeline needs a crawl that is kept in Redis; set SCHEDULER_PERSIST"):
        crawl(Teas, FakeTransport(PAGES), PIPELINES=[PIPELINE])


def test_items_are_stored_as_they_came_through_all_pipelines(run, redis_client, project):  # noqa: F811
    class Odd:
        def process_item(self, item, spider):
            if item["n"] >= 100:
                raise DropItem("even")
            return Item({"n": item["n"], "day": date(2024, 2, 29), "text": "té\ud800"})

    run(PIPELINES=[PIPELINE, Odd])
    assert [item["n"] for item in stored(redis_client, project)] == [0, 1, 2, 3]
    assert stored(redis_client, project)[0] == {"n": 0, "day": "2024-02-29", "text": "té\ud800"}


def test_a_subclass_says_how_items_are_encoded(run, redis_client, project):  # noqa: F811
    class Short(RedisPipeline):
        def encode(self, item):
            return b"n=%d" % item["n"]

    run(PIPELINES=[Short])
    entries = redis_client.xrange(f"{{{project}:teas}}:items")
    assert entries[0][1][b"item"] == b"n=0"


def test_what_an_errback_yields_is_stored_with_the_dead_letter(run, redis_client, project):  # noqa: F811
    class Wrong(Spider):
        name = "teas"

        def start_requests(self):
            yield Request("http://shop.test/missing", errback="failed")

        def parse(self, response): ...

        def failed(self, failure):
            yield {"failed": failure.request.url}

    run(Wrong, PIPELINES=[PIPELINE])
    assert stored(redis_client, project) == [{"failed": "http://shop.test/missing"}]


def test_a_page_that_is_tried_again_stores_its_items_once(run, redis_client, project):  # noqa: F811
    fails = iter([True, False, True] + [False] * 20)

    class Fragile:
        def flush(self):
            if next(fails):
                raise RuntimeError("the database is away")

    run(PIPELINES=[PIPELINE, Fragile], RETRY_BACKOFF_SECONDS=0.01)
    assert sorted(item["n"] for item in stored(redis_client, project)) == EXPECTED


# -- files -------------------------------------------------------------------------------------------------------------


def numbers(path: str) -> list[int]:
    return sorted(json.loads(line)["n"] for line in Path(path).read_text().splitlines())


def test_a_file_is_written_from_the_store_before_the_summary(run, redis_client, project):  # noqa: F811
    engine = run(FEEDS={"teas.jsonl": {}, "teas.csv": {"fields": ["n"]}})
    assert numbers("teas.jsonl") == EXPECTED
    assert sorted(map(int, Path("teas.csv").read_text().split()[1:])) == EXPECTED
    stats = engine.snapshot().crawls[0].stats
    assert {name: value for name, value in stats.items() if name.startswith("item_stored_count/")} == {
        "item_stored_count/teas.jsonl": 8,
        "item_stored_count/teas.csv": 8,
    }
    assert len(stored(redis_client, project)) == 8, "nothing is taken out of the store"


def test_pipeline_and_file_together_store_each_item_once(run, redis_client, project):  # noqa: F811
    run(PIPELINES=[PIPELINE], FEEDS={"teas.jsonl": {}})
    assert numbers("teas.jsonl") == EXPECTED
    assert len(stored(redis_client, project)) == 8


def test_a_finished_crawl_fills_a_file_that_was_asked_for_later(run):
    run(PIPELINES=[PIPELINE])
    run(FEEDS={"teas.jsonl": {}})
    run(FEEDS={"teas.jsonl": {}})
    assert numbers("teas.jsonl") == EXPECTED


def test_a_fresh_crawl_is_added_to_the_file(run, redis_client, project):  # noqa: F811
    run(FEEDS={"teas.jsonl": {}})
    run(FEEDS={"teas.jsonl": {}}, SCHEDULER_FLUSH_ON_START=True)
    assert numbers("teas.jsonl") == sorted(EXPECTED * 2)
    assert len(stored(redis_client, project)) == 8
    run(SCHEDULER_FLUSH_ON_START=True)
    assert stored(redis_client, project) == [], "who wants no file any more stores nothing"


def test_spiders_share_a_file(run):
    class Others(Teas):
        name = "others"

    run(SPIDERS=[Teas, Others], FEEDS={"both.jsonl": {}})
    assert numbers("both.jsonl") == sorted(EXPECTED * 2)


def test_files_cannot_be_written_from_a_list(run):
    with pytest.raises(SettingsError, match="ITEMS_AS = 'list'"):
        run(FEEDS={"teas.jsonl": {}}, ITEMS_AS="list")


def test_a_file_that_cannot_be_written_is_said_at_the_start(run, tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(UsageError, match="cannot write items to 'folder.jsonl': Is a directory"):
        run(FEEDS={"folder.jsonl": {}})


def test_who_wants_no_file_asks_whether_another_process_does(redis_client, project):  # noqa: F811
    prefix = f"{{{project}:teas}}"
    here = RedisFrontier(redis_client, prefix)
    assert not here.keeps_items()
    RedisFrontier(redis_client, prefix, keeps_items=True)
    RedisFrontier(redis_client, prefix)
    assert here.keeps_items(), "and it stays so, whoever else comes without wanting one"


def test_a_yes_is_asked_for_once_and_a_no_once_a_second():
    now, asked = [0.0], []
    answers = iter([False, True])

    def ask() -> bool:
        asked.append(now[0])
        return next(answers)

    known = SoonKnown(ask, clock=lambda: now[0])
    assert [known(), known()] == [False, False]
    now[0] = 1.0
    assert [known(), known()] == [True, True]
    now[0] = 9.0
    assert known() and asked == [0.0, 1.0]
