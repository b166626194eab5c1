from __future__ import annotations

import logging

import pytest

from scrapy_plus import Request
from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.errors import NotStorable
from scrapy_plus.frontier.base import Record
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.http.codec import encode
from scrapy_plus.rules.fingerprint import fingerprint
from scrapy_plus.rules.judge import Bury, Finish, Retry
from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace

A, B = "http://shop.test/a", "http://shop.test/b"


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(MemoryFrontier(), spider_name="shop")


def where(scheduler: Scheduler, url: str) -> State:
    return scheduler.frontier.locate(fingerprint(Request(url))).state


def test_a_request_comes_back_as_it_went_in(scheduler):
    scheduler.add_request(
        Request(A, "POST", {"X-Y": "1"}, {"p": 1}, {"d": 2}, "parse_book", meta={"k": [1]}, priority=3)
    )
    request = scheduler.get_request()
    assert (request.url, request.method, request.headers["x-y"]) == (A, "POST", "1")
    assert (request.params, request.data, request.parse, request.meta) == ({"p": 1}, {"d": 2}, "parse_book", {"k": [1]})
    assert (request.priority, request.spider_name, request.retry_time) == (3, "shop", 0)


def test_a_url_is_taken_once_unless_it_is_not_filtered(scheduler):
    assert scheduler.add_request(Request(A))
    assert not scheduler.add_request(Request(A))
    assert scheduler.add_request(Request(A, filter=False))
    assert scheduler.add_request(Request(A, filter=False))
    assert len(scheduler) == 3
    assert scheduler.stats.get("dupefilter/filtered") == 1


def test_children_that_were_seen_are_counted_and_not_stored_again(scheduler, monkeypatch):
    encoded = []
    monkeypatch.setattr("scrapy_plus.core.scheduler.encode", lambda one: encoded.append(one.url) or encode(one))
    scheduler.add_request(Request(A))
    children = [Request(A), Request(B), Request(B), Request(A, filter=False)]
    scheduler.delete_request(scheduler.get_request(), children[:3])
    assert encoded == [A, B, B]
    scheduler.delete_request(scheduler.get_request(), children)
    assert encoded == [A, B, B, *(child.url for child in children)], "with an unfiltered one all are taken one by one"
    assert (scheduler.stats.get("scheduler/enqueued"), scheduler.stats.get("dupefilter/filtered")) == (3, 5)


def test_a_child_that_cannot_be_stored_is_told_even_if_its_url_was_seen(scheduler):
    scheduler.add_request(Request(A))
    child = Request(A)
    child.meta["lock"] = object()
    with pytest.raises(NotStorable, match="lock"):
        scheduler.delete_request(scheduler.get_request(), [child])


def test_the_names_of_scrapy_redis_do_the_same(scheduler):
    scheduler.open()
    assert not scheduler.has_pending_requests()
    assert scheduler.enqueue_request(Request(A))
    assert scheduler.has_pending_requests()
    assert scheduler.next_request().url == A
    assert scheduler.next_request() is None
    scheduler.close("finished")


def test_delete_request_takes_the_page_out_and_its_children_in(scheduler):
    scheduler.add_request(Request(A))
    scheduler.delete_request(scheduler.get_request(), [Request(B)])
    assert (where(scheduler, A), where(scheduler, B)) == (State.DONE, State.READY)


def test_a_page_that_is_handed_in_twice_is_refused_the_second_time(scheduler, caplog):
    scheduler.add_request(Request(A))
    request = scheduler.get_request()
    scheduler.delete_request(request)
    scheduler.delete_request(request, [Request(B)])
    assert where(scheduler, B) is State.NEW
    assert "its results are dropped" in caplog.text


def test_equal_unfiltered_children_are_each_taken_and_the_same_page_yields_the_same_ids():
    def ids(scheduler: Scheduler) -> list[bytes]:
        scheduler.add_request(Request(A))
        scheduler.delete_request(scheduler.get_request(), [Request(B, filter=False), Request(B, filter=False)])
        return [scheduler.get_request().fp, scheduler.get_request().fp]

    first, again = ids(Scheduler(MemoryFrontier())), ids(Scheduler(MemoryFrontier()))
    assert first == again
    assert len(set(first)) == 2


def test_a_retry_is_counted_in_retry_time(scheduler):
    scheduler.add_request(Request(A))
    for expected in range(3):
        request = scheduler.get_request()
        assert (request.retry_time, request.attempt) == (expected, expected + 1)
        scheduler.fail_request(request, Retry(0.0, "slow"))


def test_a_retry_waits_in_the_store_and_the_scheduler_says_how_long(scheduler):
    scheduler.add_request(Request(A))
    scheduler.fail_request(scheduler.get_request(), Retry(60.0, "slow"))
    assert scheduler.get_request() is None
    assert 50 < scheduler.wait_seconds <= 60


@pytest.mark.parametrize(("verdict", "state"), [(Bury("no"), State.DEAD), (Finish("HTTP 404"), State.DONE)])
def test_a_verdict_is_carried_out(scheduler, verdict, state):
    scheduler.add_request(Request(A))
    scheduler.fail_request(scheduler.get_request(), verdict, status=404, children=[Request(B)])
    assert (where(scheduler, A), where(scheduler, B)) == (state, State.READY)


def test_add_lost_requests_gives_back_what_a_silent_worker_held():
    now = [0.0]
    scheduler = Scheduler(MemoryFrontier(lease_seconds=10, clock=lambda: now[0]))
    scheduler.add_request(Request(A))
    scheduler.get_request()
    for now[0] in (3.0, 6.0, 9.0):
        assert scheduler.add_lost_requests() == 0
    now[0] = 11.0
    assert scheduler.add_lost_requests() == 1
    assert scheduler.get_request().url == A


def test_a_released_request_comes_again_uncounted(scheduler):
    scheduler.add_request(Request(A))
    scheduler.release_request(scheduler.get_request())
    assert scheduler.get_request().retry_time == 0


def test_a_stored_request_that_cannot_be_read_is_buried_and_the_next_is_given(scheduler, caplog):
    scheduler.frontier.offer([Record(b"x" * 20, "http://shop.test:80", b"\x80\x04pickle")])
    scheduler.add_request(Request(A))
    assert scheduler.get_request().url == A
    [letter], _ = scheduler.frontier.dead_letters()
    assert letter.reason.startswith("Undecodable")
    assert "cannot be read" in caplog.text


def test_a_priority_beyond_the_limit_is_cut_with_one_warning(scheduler, caplog):
    scheduler.add_request(Request(A, priority=5000))
    scheduler.add_request(Request(B, priority=-5000))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert scheduler.get_request().url == A


@pytest.mark.parametrize(("all_of_them", "lines"), [(True, 3), (False, 1)])
def test_duplicates_are_logged_once_or_all_when_asked(caplog, all_of_them, lines):
    scheduler = Scheduler(MemoryFrontier(), log_all_duplicates=all_of_them)
    with caplog.at_level(logging.DEBUG, "scrapy_plus.scheduler"):
        for _ in range(4):
            scheduler.add_request(Request(A))
    assert len([record for record in caplog.records if "duplicate" in record.message]) == lines


def test_a_pace_by_host_or_by_site_is_set_when_the_site_is_first_met():
    paces = {"shop.test": Pace(limit=2), "http://one.test:8080": Pace(delay_seconds=3)}
    scheduler = Scheduler(MemoryFrontier(), paces=paces)
    for url in (A, "http://one.test:8080/", "http://other.test/"):
        scheduler.add_request(Request(url))
    facts = scheduler.frontier.site_facts
    assert facts("http://shop.test:80").pace.limit == 2
    assert facts("http://one.test:8080").pace.delay_seconds == 3
    assert facts("http://other.test:80").pace == Pace()


def test_seeds_move_the_cursor_and_end():
    scheduler = Scheduler(MemoryFrontier())
    assert scheduler.seed([Request(A), Request(A)]) == 1
    assert scheduler.frontier.seed_cursor() == (2, False)
    scheduler.delete_request(scheduler.get_request())
    assert not scheduler.finish()
    scheduler.end_seeding(2)
    assert scheduler.finish()


def test_opening_says_what_is_left_of_an_earlier_run(scheduler, caplog):
    scheduler.add_request(Request(A))
    with caplog.at_level(logging.INFO, "scrapy_plus.scheduler"):
        scheduler.open()
    assert "Resuming crawl (1 requests scheduled)" in caplog.text
