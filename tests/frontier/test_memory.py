"""What only the memory store has: an audit that must tell when something is broken on purpose, and waiting sites."""

from __future__ import annotations

import pytest

from scrapy_plus.frontier.memory import MemoryFrontier
from tests.frontier.conftest import SITE, Clock, Worker, record


def worked_on() -> MemoryFrontier:
    """A sound store with a request in every place."""
    frontier = MemoryFrontier()
    frontier.offer([record(name) for name in ("leased", "delayed", "dead", "ready")])
    leased, delayed, dead = Worker(frontier).lease(3)
    frontier.retry(delayed.id, delayed.token, 60)
    frontier.bury(dead.id, dead.token, "no")
    assert frontier.audit() == []
    return frontier


def two_places(frontier):
    frontier._dead[record("leased").id] = frontier._dead[record("dead").id]


def no_place(frontier):
    del frontier._delayed[record("delayed").id]


def never_seen(frontier):
    frontier._seen.discard(record("ready").id)


def wrong_size(frontier):
    frontier._queues.size += 1


def stray_counter(frontier):
    frontier._attempts[record("nobody").id] = 1


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (two_places, "a request stands in two places"),
        (no_place, "the backup and the places differ"),
        (never_seen, "a request in the backup was never seen"),
        (wrong_size, "1 requests are queued, 2 counted"),
        (stray_counter, "a counter without its request"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_audit_tells_what_is_broken(broken, told):
    frontier = worked_on()
    broken(frontier)
    assert told in frontier.audit()


def test_a_pause_that_was_lifted_is_waited_for_by_nobody():
    frontier = MemoryFrontier(clock=Clock())
    frontier.offer([record("a"), record("b")])
    frontier.set_site(SITE, paused_until=frontier.now() + 50)
    frontier.set_site(SITE, paused_until=0.0)
    worker = Worker(frontier)
    assert len(worker.lease(2)) == 2
    assert frontier.lease("w", worker.base, 1).wait_seconds is None


def test_a_store_in_memory_may_be_closed_and_still_tells():
    frontier = worked_on()
    frontier.close()
    assert frontier.counts().pending == 3
