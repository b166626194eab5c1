"""The pace that an operator sets for a whole crawl while it runs."""

from __future__ import annotations

from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.rules.pace import Pace
from tests.frontier.conftest import SITE, Clock, Worker, record, redis_frontier


def test_the_pace_of_all_sites_can_be_changed_while_requests_wait_and_is_lent_by_at_once(redis_client):
    frontier = redis_frontier(redis_client, clock := Clock())
    two = "http://two.test:80"
    frontier.offer([record(f"a{n}", site=SITE) for n in range(9)] + [record(f"b{n}", site=two) for n in range(9)])
    frontier.set_site(two, limit=3)
    frontier.set_pace(delay_seconds=4, limit=2)
    worker = Worker(frontier)
    assert sorted(lease.site for lease in worker.lease(9)) == [SITE, two]
    assert worker.lease(9) == []
    assert frontier.audit() == []
    clock.advance(4)
    assert len(worker.lease(9)) == 2
    clock.advance(4)
    assert [lease.site for lease in worker.lease(9)] == [two], "the first has two under way, the other may have three"
    frontier.set_pace(delay_seconds=0)
    assert worker.lease(9) == [], "the limit stays"
    frontier.set_pace(resets=True)
    assert [lease.site for lease in worker.lease(9)] == [SITE] * 7
    assert frontier.audit() == []


def test_what_was_set_holds_for_nodes_that_join_with_other_settings_and_is_told(redis_client):
    frontier = redis_frontier(redis_client)
    frontier.set_pace(limit=5)
    other = RedisFrontier(redis_client, frontier.keys.prefix, pace=Pace(2.0, 8))
    other.open()
    assert (other.site_facts(SITE).pace.delay_seconds, other.site_facts(SITE).pace.limit) == (2.0, 5)
    assert other.overridden_pace() == (None, 5)
    frontier.set_pace(delay_seconds=0.25, resets=True)
    assert other.overridden_pace() == (0.25, None) and other.site_facts(SITE).pace.limit == 8
    other.flush()
    assert other.overridden_pace() == (None, None)


def test_a_site_that_stands_where_its_old_pace_put_it_is_lent_by_the_new_one(redis_client):
    frontier = redis_frontier(redis_client)
    frontier.offer([record(f"a{n}", site=SITE) for n in range(9)])
    redis_client.hset(frontier.keys.meta, mapping={"set_limit": 2})  # as set_pace leaves it for a moment
    assert frontier.lease("w", 0, 9, limited=0).leases == []
    assert frontier.audit() == []
    assert len(frontier.lease("w", 0, 9, limited=9).leases) == 2
    assert frontier.audit() == []


def test_such_a_site_takes_no_other_ones_turn(redis_client):
    frontier = redis_frontier(redis_client)
    two = "http://two.test:80"
    frontier.set_site(two, limit=3)
    frontier.offer([record(f"a{n}", site=SITE) for n in range(4)] + [record("b", site=two)])
    assert [lease.site for lease in frontier.lease("w", 0, 2).leases] == [SITE] * 2
    redis_client.hset(frontier.keys.meta, mapping={"set_limit": 2})
    assert [lease.site for lease in frontier.lease("w", 2, 9, limited=1).leases] == [two]
