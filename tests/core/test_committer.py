"""What a process does with the leases of a far store until a worker takes them."""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from scrapy_plus.core.committer import LATE_SECONDS, Committer
from scrapy_plus.frontier.memory import MemoryFrontier
from tests.frontier.conftest import SITE, record


@pytest.fixture
def frontier() -> MemoryFrontier:
    return MemoryFrontier(lease_seconds=60.0)


@pytest.fixture
def committer(frontier) -> Iterator[Committer]:
    made = Committer(frontier, is_remote=True, prefetch=4)
    yield made
    made.stop()


def wait_for(count: str, frontier: MemoryFrontier, is_so=lambda number: number > 0) -> None:
    for _ in range(500):
        if is_so(getattr(frontier.counts(), count)):
            return
        gevent.sleep(0.01)
    raise AssertionError(frontier.counts())


def test_a_request_of_a_site_with_a_pace_that_no_worker_takes_in_time_goes_back_uncounted(frontier, committer):
    frontier.set_site(SITE, limit=1)
    frontier.offer([record("a")])
    committer.start()
    wait_for("leased", frontier)
    gevent.sleep(2 * LATE_SECONDS)
    assert committer.take() is None
    gevent.sleep(4 * LATE_SECONDS)
    lease = committer.take()
    assert lease is not None and lease.id == record("a").id, "once: a process that is always busy goes on too"
    assert (lease.attempt, lease.lost) == (0, 0)


class BusyFrontier(MemoryFrontier):
    """Its second answer reaches a process late that has been busy meanwhile."""

    calls = 0

    def commit(self, **parts):
        answer = super().commit(**parts)
        self.calls += 1
        if self.calls == 2:
            gevent.sleep(2 * LATE_SECONDS)
        return answer


def test_a_request_is_late_from_when_the_store_gave_it_not_from_when_its_process_came_to_read_that():
    frontier = BusyFrontier(lease_seconds=60.0)
    committer = Committer(frontier, is_remote=True, prefetch=4)
    committer.start()
    for _ in range(500):
        if frontier.calls == 1:
            break
        gevent.sleep(0.01)
    frontier.set_site(SITE, limit=1)
    frontier.offer([record("a")])
    committer.poke()
    for _ in range(500):
        if committer.held:
            break
        gevent.sleep(0.01)
    assert committer.take() is None and committer.held, "it goes back"
    committer.stop()
    assert frontier.counts().ready == 1


def test_a_request_of_a_site_without_a_pace_may_wait_for_its_worker(frontier, committer):
    frontier.offer([record("a")])
    committer.start()
    wait_for("leased", frontier)
    gevent.sleep(2 * LATE_SECONDS)
    assert committer.take() is not None


def test_at_a_stop_what_was_not_started_goes_back(frontier):
    committer = Committer(frontier, is_remote=True, prefetch=4)
    frontier.offer([record("a"), record("b")])
    committer.start()
    wait_for("leased", frontier, lambda number: number == 2)
    committer.stop()
    assert (frontier.counts().ready, frontier.counts().leased) == (2, 0)
