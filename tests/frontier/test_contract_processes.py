"""The frontier contract where several processes are concerned: who died with what, who lives, and what they share."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import NodesAlive
from scrapy_plus.frontier.base import Ask, Known, LeaseAnswer, Page
from scrapy_plus.rules.lifecycle import State
from tests.frontier.conftest import SITE, Worker, name_of, names, record
from tests.frontier.test_contract import the_invariants_hold_at_the_end  # noqa: F401


def die(frontier, worker: Worker, *, started=None) -> list[bytes]:
    """The worker's process ends, and somebody saw it."""
    return frontier.reap(worker=worker.name, started=started)[0]


# -- commit -----------------------------------------------------------------------------------------------------------


def test_commit_carries_everything_a_worker_has_and_answers_part_by_part(frontier, clock):
    frontier.set_site(SITE, limit=6)
    frontier.offer([record(name) for name in "abcdef"])
    a, b, c, d, e = Worker(frontier).lease(5)
    answer = frontier.commit(
        fetched=[(e.id, e.token)],
        retries=[(b.id, b.token, 5.0), (b.id, b.token, 5.0)],
        releases=[(c.id, c.token), (a.id, ("other", 0))],
        pages=[
            Page(a.id, a.token, [record("child"), record("b")], [b"item"], counters={"pages": 1}),
            Page(a.id, a.token, [record("never")]),
            Page(d.id, d.token, reason="no", status=404),
        ],
        ask=Ask("w", 5, 2),
    )
    assert answer.retried == [True, False]
    assert answer.released == 1
    assert answer.pages == [[True, False], None, []]
    assert names(answer.lease.leases) == ["c", "f"]
    assert [lease.token for lease in answer.lease.leases] == [("w", 5), ("w", 6)]
    assert frontier.site_facts(SITE).in_flight == 2
    assert frontier.stats() == {"pages": 1}


def test_commit_of_nothing_answers_nothing(frontier):
    answer = frontier.commit()
    assert answer == ([], 0, [], None)


def test_the_lease_of_a_commit_sees_what_the_commit_brought(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    answer = frontier.commit(pages=[Page(lease.id, lease.token, [record("b")])], ask=Ask("w", 1, 5))
    assert names(answer.lease.leases) == ["b"]


def test_a_commit_sent_again_leases_the_same_again(frontier, worker):
    frontier.offer([record("a"), record("b")])
    [lease] = worker.lease()
    call = {"pages": [Page(lease.id, lease.token, [], [b"item"], counters={"n": 2})], "ask": Ask("w", 1, 1)}
    first = frontier.commit(**call)
    again = frontier.commit(**call)
    assert again.lease.leases == first.lease.leases != []
    assert (again.pages, frontier.stats(), frontier.items()[0]) == ([None], {"n": 2}, [b"item"])


def test_a_child_that_is_known_is_made_into_a_record_only_if_it_was_forgotten(frontier, worker):
    frontier.offer([record(name) for name in "abc"])
    a, b, c = worker.lease(3)
    made = []

    known = Known([a.id, b.id], lambda place: made.append((a, b)[place].id) or record("ab"[place]))
    worker.ack(a)
    assert frontier.ack([Page(b.id, b.token, [record("d")], known=known)]) == [[True, False, False]]
    assert made == []
    frontier.forget([a.id])
    assert frontier.knows([a.id]) == [False]
    assert frontier.ack([Page(c.id, c.token, [], known=known)]) == [[True, False]]
    assert a.id in made
    assert names(worker.lease(5)) == ["d", "a"]


def test_no_process_knows_what_was_never_taken_in(frontier):
    ids = [record("a").id, record("b").id]
    assert frontier.knows(ids) == [False, False]
    frontier.offer([record("a")])
    assert frontier.knows(ids) == [True, False]
    frontier.flush()
    assert frontier.knows(ids) == [False, False]


def test_a_page_of_thousands_of_known_children_and_new_ones_is_acked_whole(frontier, worker):
    frontier.offer([record("a"), record("b"), *(record(f"k{number:05}") for number in range(400))])
    first, second = worker.lease(2)
    ids = [record(f"k{number % 400:05}").id for number in range(6000)]
    known = Known(ids, lambda place: record(f"k{place % 400:05}"))
    children = [record(f"{number:05}") for number in range(600)]
    answer = frontier.ack([Page(first.id, first.token, children, [b"item"], known=known)])
    assert answer == [[True] * 600 + [False] * 6000]
    frontier.forget(ids[:1])
    [taken] = frontier.ack([Page(second.id, second.token, children[:1], known=known)])
    assert taken == [False] * 6001, "what still waits is not forgotten"
    assert (frontier.counts().ready, frontier.counts().done, frontier.items()[0]) == (1000, 2, [b"item"])


def test_a_page_of_a_thousand_children_is_acked_whole(frontier, worker):
    frontier.offer([record("a"), record("b")])
    first, second = worker.lease(2)
    children = [record(f"{number:05}") for number in range(1200)]
    answer = frontier.ack(
        [Page(first.id, first.token, [*children, children[0]], [b"item"]), Page(second.id, second.token)]
    )
    assert answer == [[True] * 1200 + [False], []]
    assert (frontier.counts().ready, frontier.counts().done, frontier.items()[0]) == (1200, 2, [b"item"])


def test_a_page_of_a_thousand_children_that_is_not_held_is_refused(frontier):
    frontier.offer([record("a")])
    children = [record(f"{number:05}") for number in range(1200)]
    assert frontier.ack([Page(record("a").id, ("w", 0), children)]) == [None]
    assert frontier.counts().seen == 1


# -- counters and items -----------------------------------------------------------------------------------------------


def test_the_counters_of_all_pages_add_up(frontier, worker):
    frontier.offer([record("a"), record("b"), record("c")])
    a, b, c = worker.lease(3)
    frontier.ack([Page(a.id, a.token, counters={"pages": 1, "bytes": 70}), Page(b.id, b.token, counters={"pages": 1})])
    frontier.ack(
        [Page(c.id, c.token, reason="no", counters={"bytes": 5}), Page(c.id, c.token, counters={"bytes": 1000})]
    )
    assert frontier.stats() == {"bytes": 75, "pages": 2}


def test_items_are_read_in_order_and_the_cursor_goes_on_with_later_ones(frontier, worker):
    frontier.offer([record("a"), record("b")])
    a, b = worker.lease(2)
    frontier.ack([Page(a.id, a.token, items=[b"1", b"2", b"3"])])
    first, cursor = frontier.items(count=2)
    rest, cursor = frontier.items(cursor, count=2)
    none, cursor = frontier.items(cursor)
    frontier.ack([Page(b.id, b.token, items=[b"4"])])
    assert (first, rest, none, frontier.items(cursor)[0]) == ([b"1", b"2"], [b"3"], [], [b"4"])


# -- seeds ------------------------------------------------------------------------------------------------------------


def test_a_seed_call_sent_again_answers_the_same_again(frontier):
    frontier.offer([record("b")])
    records = [record("a"), record("b")]
    assert frontier.seed(0, 2, records) == frontier.seed(0, 2, records) == [True, False]
    assert frontier.seed_cursor() == (2, False)


def test_one_worker_at_a_time_holds_the_seeding(frontier, clock):
    assert frontier.hold_seeding("m", 10)
    assert not frontier.hold_seeding("n", 10)
    clock.advance(6)
    assert frontier.hold_seeding("m", 10), "it renews what it holds"
    clock.advance(6)
    assert not frontier.hold_seeding("n", 10)
    clock.advance(5)
    assert frontier.hold_seeding("n", 10), "the other has been silent"
    assert not frontier.hold_seeding("m", 10)


def test_the_seeding_can_be_let_go(frontier):
    frontier.hold_seeding("m", 10)
    frontier.hold_seeding("m", 0)
    assert frontier.hold_seeding("n", 10)


# -- who is blamed ----------------------------------------------------------------------------------------------------


def test_a_worker_that_was_seen_to_die_gives_back_at_once_what_it_held(frontier):
    frontier.offer([record(name) for name in "abc"])
    dead, alive = Worker(frontier, "dead"), Worker(frontier, "alive")
    dead.lease(2)
    alive.lease(1)
    assert [name_of(id) for id in die(frontier, dead)] == ["a", "b"]
    assert frontier.locate(record("c").id).state is State.LEASED


def test_only_what_had_started_is_blamed(frontier):
    frontier.offer([record("a"), record("b")])
    worker = Worker(frontier, "dead")
    worker.lease(2)
    die(frontier, worker, started=[record("a").id])
    assert [(name_of(one.id), one.lost) for one in Worker(frontier, "next").lease(2)] == [("a", 1), ("b", 0)]


def test_each_of_several_that_had_started_is_blamed(frontier):
    frontier.offer([record(name) for name in "abc"])
    worker = Worker(frontier, "dead")
    worker.lease(3)
    die(frontier, worker, started=[record("a").id, record("c").id])
    assert [one.lost for one in Worker(frontier, "next").lease(3)] == [1, 0, 1]


def test_the_dead_letter_of_a_page_whose_workers_died_has_no_status(frontier):
    frontier.offer([record("a")])
    for number in range(3):
        worker = Worker(frontier, f"w{number}")
        worker.lease(1)
        die(frontier, worker)
    [letter] = frontier.dead_letters(0, 9)[0]
    assert (letter.status, letter.lost, "3 times" in letter.reason) == (0, 3, True)


def test_the_last_report_says_what_had_started(frontier, clock):
    frontier.offer([record("a"), record("b")])
    held = [(lease.id, lease.token) for lease in Worker(frontier, "silent").lease(2)]
    frontier.renew(held, started=[record("a").id])
    frontier.renew(held, started=[record("b").id])
    clock.advance(11)
    frontier.reap()
    assert [one.lost for one in Worker(frontier, "next").lease(2)] == [0, 1]


def test_what_was_handed_out_after_the_last_report_counts_as_started(frontier, clock):
    frontier.offer([record("a"), record("b"), record("c")])
    worker = Worker(frontier, "silent")
    frontier.renew([(lease.id, lease.token) for lease in worker.lease(2)], started=[])
    worker.lease(1)
    clock.advance(11)
    frontier.reap()
    assert [one.lost for one in Worker(frontier, "next").lease(3)] == [0, 0, 1]


def test_a_renewal_that_does_not_say_leaves_the_last_report_as_it_is(frontier, clock):
    frontier.offer([record("a"), record("b")])
    held = [(lease.id, lease.token) for lease in Worker(frontier, "silent").lease(2)]
    frontier.renew(held, started=[])
    frontier.renew(held)
    clock.advance(11)
    frontier.reap()
    assert [one.lost for one in Worker(frontier, "next").lease(2)] == [0, 0]


def test_a_worker_that_never_reported_is_blamed_for_all_it_held(frontier, clock):
    frontier.offer([record("a"), record("b")])
    Worker(frontier, "silent").lease(2)
    clock.advance(11)
    frontier.reap()
    assert [one.lost for one in Worker(frontier, "next").lease(2)] == [1, 1]


def test_a_worker_that_is_gone_leaves_no_report_behind(frontier, clock):
    frontier.offer([record("a")])
    worker = Worker(frontier)
    frontier.renew([(lease.id, lease.token) for lease in worker.lease(1)], started=[])
    die(frontier, worker)
    worker.lease(1)
    clock.advance(11)
    frontier.reap()
    assert frontier.locate(record("a").id).lost == 1


# -- alone ------------------------------------------------------------------------------------------------------------


def lose(frontier, name: str, times: int) -> None:
    """The workers of a request die, so many times; it must be the first that may go."""
    for number in range(times):
        worker = Worker(frontier, f"lost{number}")
        assert names(worker.lease()) == [name]
        die(frontier, worker)


def test_a_request_whose_workers_died_twice_is_handed_out_alone_and_first(frontier):
    frontier.offer([record("a"), record("b")])
    lose(frontier, "a", 2)
    frontier.offer([record("c", priority=100)])
    worker = Worker(frontier)
    assert names(worker.lease(5)) == ["a"]
    assert frontier.counts().ready == 2


def test_once_lost_is_not_enough_to_go_alone(frontier):
    frontier.offer([record("a"), record("b")])
    lose(frontier, "a", 1)
    assert names(Worker(frontier).lease(5)) == ["a", "b"]


def test_nothing_is_handed_out_beside_the_one_that_went_alone(frontier):
    frontier.offer([record("a"), record("b")])
    lose(frontier, "a", 2)
    worker = Worker(frontier)
    [alone] = worker.lease(5)
    assert frontier.lease("w", worker.base, 5) == LeaseAnswer([], None, "running")
    assert names(Worker(frontier, "other").lease(5)) == ["b"], "others go on"
    worker.ack(alone)
    frontier.offer([record("c")])
    assert names(worker.lease(5)) == ["c"]


def test_a_worker_that_holds_something_does_not_get_the_one_that_goes_alone(frontier):
    frontier.offer([record("a"), record("b"), record("c")])
    lose(frontier, "a", 2)
    assert names(frontier.lease("w", 0, 5, holding=1).leases) == ["b", "c"]
    assert frontier.lease("w", 2, 5, holding=2).leases == []
    assert frontier.counts().ready == 1


def test_the_one_that_goes_alone_answers_the_same_again(frontier):
    frontier.offer([record("a")])
    lose(frontier, "a", 2)
    assert frontier.lease("w", 0, 5).leases == frontier.lease("w", 0, 5).leases != []


def test_the_pace_of_its_site_holds_for_the_one_that_goes_alone(frontier, clock):
    frontier.offer([record("a"), record("b")])
    lose(frontier, "a", 2)
    frontier.set_site(SITE, paused_until=frontier.now() + 5)
    answer = frontier.lease("w", 0, 5)
    assert (answer.leases, answer.wait_seconds) == ([], pytest.approx(5))
    clock.advance(5)
    frontier.set_site(SITE, limit=1)
    assert frontier.lease("w", 0, 5, limited=0) == LeaseAnswer([], None, "running")
    assert names(frontier.lease("w", 0, 5).leases) == ["a"]
    assert Worker(frontier, "other").lease() == [], "it took the site's slot"


def test_the_one_that_goes_alone_waits_by_itself_for_its_site(frontier, clock):
    frontier.offer([record("a")])
    lose(frontier, "a", 2)
    frontier.set_site(SITE, delay_seconds=4)
    frontier.offer([record("b")])
    assert names(Worker(frontier, "other").lease(1)) == ["a"]
    assert frontier.lease("w", 0, 1).wait_seconds == pytest.approx(4)


def test_a_site_that_opens_while_one_goes_alone_is_nothing_to_wait_for(frontier, clock):
    frontier.offer([record("a")])
    lose(frontier, "a", 2)
    frontier.set_site("http://slow:80", delay_seconds=4)
    frontier.offer([record("b", site="http://slow:80"), record("c", site="http://slow:80")])
    assert names(frontier.lease("busy", 0, 1, holding=1).leases) == ["b"]
    clock.advance(4)
    answer = frontier.lease("w", 0, 1)
    assert (names(answer.leases), answer.wait_seconds) == (["a"], None)


def test_of_several_that_go_alone_the_first_whose_site_opens_is_waited_for(frontier):
    frontier.offer([record("a"), record("b", site="http://other:80", priority=-1)])
    lose(frontier, "a", 2)
    Worker(frontier, "w").lease(1)
    lose(frontier, "b", 2)
    frontier.release([(record("a").id, ("w", 0))])
    now = frontier.now()
    frontier.set_site(SITE, paused_until=now + 5)
    frontier.set_site("http://other:80", paused_until=now + 9)
    assert frontier.lease("v", 0, 1) == LeaseAnswer([], 5.0, "running")
    frontier.set_site(SITE, paused_until=now + 20)
    assert frontier.lease("v", 0, 1) == LeaseAnswer([], 9.0, "running")


def test_who_asks_for_nothing_does_not_get_the_one_that_goes_alone(frontier):
    frontier.offer([record("a")])
    lose(frontier, "a", 2)
    assert frontier.lease("w", 0, 0).leases == []


def test_after_a_silence_as_long_as_the_grace_the_living_are_late(make_frontier, clock):
    frontier = make_frontier(lease_seconds=5.0, grace_seconds=5.0)
    frontier.offer([record("a")])
    Worker(frontier).lease(1)
    clock.advance(5)
    assert frontier.reap() == ([record("a").id], [])


def test_with_a_grace_of_nothing_any_silence_is_forgiven(make_frontier, clock):
    frontier = make_frontier(lease_seconds=5.0, grace_seconds=0.0)
    frontier.offer([record("a")])
    Worker(frontier).lease(1)
    clock.advance(6)
    assert frontier.reap() == ([], [])


def test_among_those_that_go_alone_the_best_goes_first(frontier):
    frontier.offer([record("a"), record("b", priority=5)])
    for number in range(2):
        worker = Worker(frontier, f"lost{number}")
        assert len(worker.lease(2)) == 2
        die(frontier, worker)
    assert names(Worker(frontier).lease(2)) == ["b"]


def test_what_went_alone_is_always_blamed(frontier):
    frontier.offer([record("a")])
    lose(frontier, "a", 2)
    worker = Worker(frontier)
    frontier.renew([(lease.id, lease.token) for lease in worker.lease()], started=[])
    assert frontier.reap(worker="w", started=[]) == ([], [record("a").id])
    assert frontier.dead_letters()[0][0].reason == "its worker died 3 times"


@pytest.mark.parametrize("way", ["release", "retry"])
def test_what_went_alone_goes_alone_again_when_it_comes_back(frontier, way, clock):
    frontier.offer([record("a"), record("b")])
    lose(frontier, "a", 2)
    worker = Worker(frontier)
    [lease] = worker.lease(5)
    if way == "release":
        frontier.release([(lease.id, lease.token)])
    else:
        frontier.retry(lease.id, lease.token, 0)
    assert names(worker.lease(5)) == ["a"]


def test_revived_is_as_new(frontier):
    frontier.offer([record("a"), record("b")])
    lose(frontier, "a", 2)
    [lease] = Worker(frontier).lease()
    frontier.bury(lease.id, lease.token, "no")
    frontier.revive([lease.id])
    assert [(name_of(one.id), one.lost) for one in Worker(frontier, "v").lease(2)] == [("a", 0), ("b", 0)]


# -- outages ----------------------------------------------------------------------------------------------------------


def test_after_a_long_silence_the_living_are_not_late(make_frontier, clock):
    frontier = make_frontier(grace_seconds=5.0)
    frontier.offer([record("a")])
    [lease] = Worker(frontier).lease()
    clock.advance(30)
    assert frontier.reap() == ([], []), "the store was away; the worker could not renew"
    clock.advance(4)
    assert frontier.renew([(lease.id, lease.token)]) == []
    clock.advance(4)
    assert frontier.reap() == ([], [])


def test_after_a_long_silence_the_dead_get_one_more_lease_time(make_frontier, clock):
    frontier = make_frontier(grace_seconds=5.0)
    frontier.offer([record("a")])
    Worker(frontier).lease()
    clock.advance(30)
    frontier.offer([record("b")])  # whoever calls first ends the silence
    for _ in range(3):
        clock.advance(3)
        assert frontier.reap() == ([], [])
    clock.advance(1)
    assert names_of(frontier.reap()[0]) == ["a"]


def names_of(ids) -> list[str]:
    return [name_of(id) for id in ids]


def test_without_a_silence_reap_does_not_wait(make_frontier, clock):
    frontier = make_frontier(grace_seconds=5.0)
    frontier.offer([record("a")])
    Worker(frontier).lease()
    for _ in range(3):
        clock.advance(4)
        frontier.beat("other", {})
    assert names_of(frontier.reap()[0]) == ["a"]


def test_a_death_that_was_seen_needs_no_grace(make_frontier, clock):
    frontier = make_frontier(grace_seconds=5.0)
    frontier.offer([record("a")])
    worker = Worker(frontier)
    worker.lease()
    clock.advance(30)
    assert names_of(die(frontier, worker)) == ["a"]


def test_the_first_worker_that_a_crawl_loses_is_counted_where_its_request_ends(make_frontier):
    frontier = make_frontier(max_lost=0)
    frontier.offer([record("a")])
    worker = Worker(frontier)
    worker.lease()
    frontier.reap(worker=worker.name)
    [letter] = frontier.dead_letters()[0]
    assert (letter.lost, letter.reason) == (1, "its worker died 1 times")


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_nodes_tell_of_themselves_and_how_long_ago(frontier, clock):
    frontier.beat("m", {"role": "master", "host": "é"})
    clock.advance(2)
    frontier.beat("w", {"role": "slave"})
    clock.advance(1)
    frontier.beat("m", {"role": "master", "host": "h"})
    clock.advance(0.5)
    assert [(node.worker, dict(node.facts)) for node in frontier.nodes()] == [
        ("m", {"role": "master", "host": "h"}),
        ("w", {"role": "slave"}),
    ]
    assert [node.age_seconds for node in frontier.nodes()] == [pytest.approx(0.5), pytest.approx(1.5)]


def test_nodes_that_are_silent_for_an_hour_are_no_longer_listed(frontier, clock):
    frontier.beat("old", {})
    clock.advance(3601)
    frontier.beat("new", {})
    assert [node.worker for node in frontier.nodes()] == ["new"]


def test_a_worker_that_was_reaped_is_no_node_any_more(frontier):
    frontier.beat("w", {})
    frontier.reap(worker="w")
    assert frontier.nodes() == []


def test_a_node_that_is_to_leave_hears_of_it_with_each_beat_until_it_is_gone(frontier):
    assert not frontier.beat("w", {}) and not frontier.beat("other", {})
    assert frontier.drain("w")
    assert frontier.beat("w", {}) and frontier.beat("w", {}), "also if it did not hear the first answer"
    assert not frontier.beat("other", {})
    assert [node.worker for node in frontier.nodes()] in (["other", "w"], ["w", "other"])
    frontier.reap(worker="w")
    assert not frontier.beat("w", {}), "a new process of that name stays"


def test_nobody_is_asked_to_leave_who_is_not_there(frontier):
    assert not frontier.drain("w")
    assert not frontier.beat("w", {}) and [node.worker for node in frontier.nodes()] == ["w"]


def test_flush_is_refused_while_a_node_lives(frontier, clock):
    frontier.offer([record("a")])
    frontier.beat("w", {})
    clock.advance(10)
    with pytest.raises(NodesAlive, match="1 nodes live"):
        frontier.flush()
    clock.advance(1)
    frontier.flush()
    assert frontier.counts().seen == 0


def test_a_flush_takes_counters_items_and_nodes_too(frontier, worker):
    frontier.set_site(SITE, delay_seconds=9)
    frontier.offer([record("a")])
    [lease] = worker.lease()
    frontier.ack([Page(lease.id, lease.token, items=[b"item"], counters={"n": 1})])
    frontier.beat("w", {})
    frontier.flush(force=True)
    assert (frontier.stats(), frontier.items()[0], frontier.nodes(), frontier.sites()) == ({}, [], [], [])
    assert frontier.site_facts(SITE).pace.delay_seconds == 0
    frontier.offer([record("a")])
    assert names(frontier.lease("w", 0, 1).leases) == ["a"], "a worker's tokens may begin anew"
