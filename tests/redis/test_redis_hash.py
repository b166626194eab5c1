"""RedisBackupRequest: a program of one's own looks into, adds to and changes a crawl in a real Redis."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count

import pytest

from scrapy_plus import Request
from scrapy_plus.errors import IllegalMove, SettingsError, UsageError
from scrapy_plus.frontier.base import Page
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.codec import decode
from scrapy_plus.redis_hash import RedisBackupRequest
from scrapy_plus.rules.fingerprint import fingerprint
from scrapy_plus.rules.lifecycle import State
from tests.frontier.conftest import Worker, own_redis, redis_client  # noqa: F401

_names = count()
A, B, C = (Request(f"http://shop.test/{name}", meta={"from": name}) for name in "abc")


@pytest.fixture
def place(own_redis, tmp_path, monkeypatch) -> dict[str, str]:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    return {"REDIS_URL": f"unix://{own_redis.socket}", "PROJECT_NAME": f"hash{next(_names)}"}


@pytest.fixture
def frontier(redis_client, place) -> RedisFrontier:  # noqa: F811
    return RedisFrontier(redis_client, f"{{{place['PROJECT_NAME']}:shop}}", retry_seconds=5.0)


@pytest.fixture
def backup(frontier, place) -> Iterator[RedisBackupRequest]:
    with RedisBackupRequest("shop", **place) as opened:
        yield opened
    assert frontier.audit() == []


def test_what_is_saved_is_crawled_once(backup, frontier):
    assert backup.save_request(A) and backup.save_request("any fingerprint", B)
    assert not backup.save_request(A)
    leases = Worker(frontier).lease(9)
    assert [decode(lease.payload).url for lease in leases] == [A.url, B.url]


def test_what_waits_is_listed_whole_with_its_retries(backup, frontier):
    for request in (A, B, C):
        backup.save_request(request)
    a, b = Worker(frontier).lease(2)
    frontier.retry(a.id, a.token, 60.0)
    found = {request.url: request for request in backup.get_requests()}
    assert set(found) == {A.url, C.url}, "not what is being worked on"
    assert (found[A.url].retry_time, found[A.url].meta, found[A.url].fp) == (1, {"from": "a"}, fingerprint(A))
    assert len(backup) == backup.get_backup_request_length() == 2 and backup.exist_request_backup()


def test_many_are_listed_each_once(backup):
    urls = {f"http://shop.test/{number}" for number in range(1000)}
    for url in urls:
        backup.save_request(Request(url))
    assert sorted(request.url for request in backup.get_requests()) == sorted(urls)


def test_what_is_updated_keeps_its_place_and_its_counts(backup, frontier):
    for request in (A, B):
        backup.save_request(request)
    worker = Worker(frontier)
    [a] = worker.lease()
    frontier.retry(a.id, a.token, 0.0)
    changed = A.replace(headers={"X-New": "1"})
    assert backup.update_request(fingerprint(A).hex(), changed)
    assert not backup.update_request(C)
    [lease, _] = worker.lease(2)
    assert (lease.id, lease.attempt, decode(lease.payload).headers["X-New"]) == (fingerprint(A), 1, "1")


def test_what_is_deleted_never_comes_and_stays_seen(backup, frontier):
    backup.save_request(A)
    assert backup.delete_request(A) and not backup.delete_request(A)
    assert not backup.save_request(A)
    assert Worker(frontier).lease() == []
    assert frontier.locate(fingerprint(A)).state is State.DONE


def test_what_is_worked_on_cannot_be_deleted(backup, frontier):
    backup.save_request(A)
    [lease] = Worker(frontier).lease()
    with pytest.raises(IllegalMove, match="leased"):
        backup.delete_request(A)
    assert frontier.ack([Page(lease.id, lease.token)]) == [[]]


def test_a_broken_payload_is_passed_over(backup, frontier, caplog):
    backup.save_request(A)
    backup.save_request(B)
    frontier.replace(fingerprint(A), b"junk")
    assert [request.url for request in backup.get_requests()] == [B.url]
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("fp", ["short", b"short", "zz" * 20, 5])
def test_what_is_no_fingerprint_is_refused(backup, fp):
    with pytest.raises(ValueError, match="no fingerprint"):
        backup.delete_request(fp)
    with pytest.raises(TypeError, match="a Request is wanted"):
        backup.save_request(fp)


def test_nothing_that_nodes_said_of_the_crawl_is_changed(frontier, place, redis_client):  # noqa: F811
    before = redis_client.hgetall(frontier.keys.meta)
    with RedisBackupRequest("shop", **place, DOWNLOAD_DELAY=9.0, LEASE_SECONDS=99):
        pass
    assert redis_client.hgetall(frontier.keys.meta) == before


def test_a_crawl_may_be_filled_before_its_first_node_comes(place, redis_client):  # noqa: F811
    with RedisBackupRequest("early", **place, LEASE_SECONDS=7) as backup:
        backup.save_request(A)
    frontier = RedisFrontier(redis_client, f"{{{place['PROJECT_NAME']}:early}}", retry_seconds=5.0)
    assert len(Worker(frontier).lease()) == 1 and frontier.audit() == []


def test_the_project_at_hand_says_which_crawl(place, tmp_path, frontier):
    (tmp_path / "hashspiders.py").write_text("from scrapy_plus import Spider\nclass S(Spider):\n    name = 'shop'\n")
    lines = ["SPIDERS = ['hashspiders.S']", *(f"{name} = {value!r}" for name, value in place.items())]
    (tmp_path / "settings.py").write_text("\n".join(lines))
    sys.path.insert(0, str(tmp_path))
    with RedisBackupRequest() as backup:
        backup.save_request(A)
    assert frontier.counts().ready == 1


def test_what_is_missing_is_said_in_one_line(place):
    with pytest.raises(UsageError, match="which spider's crawl"):
        RedisBackupRequest(**place)
    with pytest.raises(SettingsError, match="did you mean"):
        RedisBackupRequest("shop", **place, REDIS_URK="x")
