"""The frontier contract, a sentence a test. Every store is judged by these."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import CursorMoved, IllegalMove, NodesAlive
from scrapy_plus.frontier.base import Ask, Location, Page
from scrapy_plus.rules.lifecycle import TABLE, State
from scrapy_plus.rules.pace import Pace
from tests.frontier.conftest import SITE, Worker, name_of, names, record


@pytest.fixture(autouse=True)
def the_invariants_hold_at_the_end(request):
    store = request.getfixturevalue("frontier") if "frontier" in request.fixturenames else None
    yield
    assert store is None or store.audit() == []


# -- offer and seed ---------------------------------------------------------------------------------------------------


def test_offer_takes_in_what_was_never_seen_and_says_which(frontier):
    assert frontier.offer([record("a"), record("b"), record("a")]) == [True, True, False]
    assert frontier.offer([record("b"), record("c")]) == [False, True]
    assert frontier.counts().ready == 3


def test_a_done_request_is_not_taken_in_again(frontier, worker):
    frontier.offer([record("a")])
    worker.ack(*worker.lease())
    assert frontier.offer([record("a")]) == [False]
    assert frontier.counts().seen == 1


def test_a_payload_comes_back_byte_for_byte(frontier, worker):
    payload = bytes(range(256))
    frontier.offer([record("a")._replace(payload=payload)])
    assert worker.lease()[0].payload == payload


def test_each_lease_names_the_site_of_its_request(frontier, worker):
    sites = ["http://a:80", "http://b:80", "http://a:80"]
    frontier.offer([record(str(number), site=site) for number, site in enumerate(sites)])
    assert [lease.site for lease in sorted(worker.lease(3))] == sites


def test_hundreds_that_arrive_at_once_go_before_the_hundreds_after_them(frontier, worker):
    arrivals = [str(number) for number in range(800)]
    frontier.offer([record(name) for name in arrivals[:400]])
    frontier.offer([record(name) for name in arrivals[400:]])
    assert [name for _ in range(8) for name in names(worker.lease(100))] == arrivals


@pytest.mark.parametrize("payload", [b"", b"x", b"xxxxxxxxx"])
def test_a_short_payload_is_as_good_as_any(frontier, worker, payload):
    frontier.offer([record("b"), record("a", priority=1)._replace(payload=payload)])
    [lease] = worker.lease()
    assert (name_of(lease.id), lease.payload, lease.site) == ("a", payload, SITE)
    frontier.release([(lease.id, lease.token)])
    assert names(worker.lease(2)) == ["a", "b"]


def test_what_is_retried_at_once_and_leased_in_the_same_call_has_its_attempt_counted(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    answer = frontier.commit(retries=[(lease.id, lease.token, 0.0)], ask=Ask("w", 1, 1))
    assert [one.attempt for one in answer.lease.leases] == [1]


def test_a_delay_holds_for_what_comes_after_the_last_request_was_done(frontier, worker, clock):
    frontier.set_site(SITE, delay_seconds=5)
    frontier.offer([record("a")])
    worker.ack(*worker.lease(1))
    frontier.offer([record("b")])
    assert worker.lease(1) == []
    clock.advance(5)
    assert names(worker.lease(1)) == ["b"]


def test_what_is_new_or_done_or_waits_is_located_with_nothing_but_its_state(frontier, worker):
    frontier.offer([record("done"), record("ready")])
    worker.ack(*worker.lease(1))
    assert frontier.locate(record("new").id) == Location(State.NEW)
    assert frontier.locate(record("done").id) == Location(State.DONE)
    assert frontier.locate(record("ready").id)._replace(site="") == Location(State.READY)  # memory looks up no site


@pytest.mark.parametrize("limit", [0, 9])
def test_a_call_gives_as_many_as_it_asks_for_and_the_best_of_all_sites_whatever_their_limits(frontier, worker, limit):
    frontier.set_site("http://b:80", limit=limit)
    sites = [f"http://{'aabb'[number % 4]}:80" for number in range(9)]
    frontier.offer([record(str(number), site=site, priority=-number) for number, site in enumerate(sites)])
    assert names(worker.lease(5)) == list("01234")
    assert names(worker.lease(2)) == list("56")


def test_an_id_may_be_any_twenty_bytes(frontier, worker):
    ids = [bytes(20), b"\xff" * 20, b"\r\n" * 10, b"a" * 20]
    frontier.offer([record("x")._replace(id=id) for id in ids])
    assert {lease.id for lease in worker.lease(4)} == set(ids)


def test_seed_moves_the_cursor_with_the_records(frontier):
    assert frontier.seed(0, 2, [record("a"), record("b")]) == [True, True]
    assert frontier.seed_cursor() == (2, False)


def test_seed_from_another_position_is_refused_whole(frontier):
    frontier.seed(0, 1, [record("a")])
    with pytest.raises(CursorMoved) as refusal:
        frontier.seed(0, 1, [record("b")])
    assert refusal.value.cursor == 1
    assert frontier.locate(record("b").id).state is State.NEW


def test_seeding_ends_when_it_is_told_to(frontier):
    frontier.seed(0, 1, [record("a")], finished=True)
    assert frontier.seed_cursor() == (1, True)


# -- lease ------------------------------------------------------------------------------------------------------------


def test_lease_hands_out_up_to_count_and_no_request_twice(frontier, worker):
    frontier.offer([record(name) for name in "abc"])
    assert names(worker.lease(2)) == ["a", "b"]
    assert names(worker.lease(2)) == ["c"]
    assert worker.lease(2) == []


def test_lease_asked_again_with_the_same_base_answers_the_same(frontier):
    frontier.offer([record(name) for name in "abcd"])
    first = frontier.lease("w", 0, 2).leases
    assert frontier.lease("w", 0, 2).leases == first
    assert names(frontier.lease("w", 2, 2).leases) == ["c", "d"]


def test_an_empty_answer_uses_no_base(frontier):
    assert frontier.lease("w", 0, 1).leases == []
    frontier.offer([record("a")])
    assert names(frontier.lease("w", 0, 1).leases) == ["a"]


def test_two_workers_with_the_same_base_get_different_requests(frontier):
    frontier.offer([record("a"), record("b")])
    assert names(frontier.lease("v", 0, 1).leases) == ["a"]
    assert names(frontier.lease("w", 0, 1).leases) == ["b"]


def test_tokens_are_the_workers_own(frontier):
    frontier.offer([record("a"), record("b")])
    assert [lease.token for lease in frontier.lease("w", 7, 2).leases] == [("w", 7), ("w", 8)]


def test_lease_says_when_the_next_delayed_request_is_due(frontier, worker, clock):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    frontier.retry(lease.id, lease.token, 30)
    clock.advance(10)
    assert frontier.lease("w", worker.base, 1).wait_seconds == pytest.approx(20)


def test_lease_says_nothing_of_time_when_only_an_event_can_help(frontier):
    assert frontier.lease("w", 0, 1).wait_seconds is None


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_a_crawl_that_does_not_run_hands_out_nothing_but_settles_what_is_out(frontier, worker, state):
    frontier.offer([record("a"), record("b")])
    [lease] = worker.lease()
    frontier.set_state(state)
    answer = frontier.lease("w", worker.base, 1)
    assert (answer.leases, answer.state) == ([], state)
    assert frontier.ack([Page(lease.id, lease.token)]) == [[]]
    frontier.set_state("running")
    assert names(worker.lease()) == ["b"]


def test_a_state_that_is_none_is_refused(frontier):
    with pytest.raises(ValueError, match="running, paused, stopped"):
        frontier.set_state("asleep")


# -- order ------------------------------------------------------------------------------------------------------------


def leased_order(frontier) -> list[str]:
    return names(Worker(frontier).lease(100))


def test_higher_priority_goes_first_and_equal_ones_by_arrival(make_frontier):
    frontier = make_frontier(order="priority")
    frontier.offer([record("a", priority=-1), record("b"), record("c", priority=1000), record("d")])
    assert leased_order(frontier) == ["c", "b", "d", "a"]


def test_priorities_beyond_the_limit_are_cut_to_it(make_frontier):
    frontier = make_frontier(order="priority")
    frontier.offer(
        [
            record("a", priority=1000),
            record("b", priority=5000),
            record("c", priority=-5000),
            record("d", priority=-1000),
        ]
    )
    assert leased_order(frontier) == ["a", "b", "c", "d"]


def test_fifo_is_the_order_of_arrival_whatever_the_priority(make_frontier):
    frontier = make_frontier(order="fifo")
    frontier.offer([record("a"), record("b", priority=9), record("c", priority=-9)])
    assert leased_order(frontier) == ["a", "b", "c"]


def test_lifo_is_the_last_first(make_frontier):
    frontier = make_frontier(order="lifo")
    frontier.offer([record("a", priority=9), record("b"), record("c")])
    assert leased_order(frontier) == ["c", "b", "a"]


@pytest.mark.parametrize("order", ["fifo", "lifo", "priority"])
def test_what_comes_back_takes_its_original_place(make_frontier, order):
    frontier = make_frontier(order=order)
    frontier.offer([record(name) for name in "abc"])
    worker = Worker(frontier)
    [first] = worker.lease()
    frontier.release([(first.id, first.token)])
    assert names(worker.lease(3)) == (["c", "b", "a"] if order == "lifo" else ["a", "b", "c"])


def test_an_unknown_order_is_refused(make_frontier):
    with pytest.raises(ValueError, match="priority, fifo, lifo"):
        make_frontier(order="random")


def test_among_sites_the_best_request_goes_first(frontier, worker):
    frontier.offer([record("a", site="http://one:80"), record("b", site="http://two:80", priority=5)])
    frontier.offer([record("c", site="http://one:80", priority=9)])
    assert names(worker.lease(3)) == ["c", "b", "a"]


# -- sites and their pace ---------------------------------------------------------------------------------------------


def test_a_delay_is_kept_between_the_starts_of_one_site(frontier, worker, clock):
    frontier.offer([record(name) for name in "abc"])
    frontier.set_site(SITE, delay_seconds=2)
    assert names(worker.lease(3)) == ["a"]
    assert frontier.lease("w", worker.base, 3).wait_seconds == pytest.approx(2)
    clock.advance(1.9)
    assert worker.lease(3) == []
    clock.advance(0.2)
    assert names(worker.lease(3)) == ["b"]


def test_the_default_pace_is_every_sites(make_frontier, clock):
    frontier = make_frontier(pace=Pace(delay_seconds=1))
    frontier.offer(
        [record("a", site="http://one:80"), record("b", site="http://one:80"), record("c", site="http://two:80")]
    )
    worker = Worker(frontier)
    assert names(worker.lease(3)) == ["a", "c"]
    clock.advance(1)
    assert names(worker.lease(3)) == ["b"]


def test_jitter_spreads_the_delay_around_itself(make_frontier, clock):
    frontier = make_frontier(dice=lambda: 0.0)
    frontier.set_site(SITE, delay_seconds=2, jitter=0.5)
    frontier.offer([record("a"), record("b")])
    Worker(frontier).lease(1)
    assert frontier.lease("w", 1, 1).wait_seconds == pytest.approx(1)


def test_a_limit_holds_requests_back_until_one_is_off_the_wire(frontier, worker):
    frontier.set_site(SITE, limit=2)
    frontier.offer([record(name) for name in "abcd"])
    first, second = worker.lease(4)
    assert worker.lease(1) == []
    frontier.fetched([(first.id, first.token)])
    assert names(worker.lease(4)) == ["c"]
    frontier.ack([Page(first.id, first.token)])
    assert worker.lease(1) == [], "a slot is freed once, by the body or by the end of the lease"
    frontier.ack([Page(second.id, second.token)])
    assert names(worker.lease(1)) == ["d"]


@pytest.mark.parametrize(
    ("pace", "is_limited"),
    [
        ({}, False),
        ({"limit": 1}, True),
        ({"delay_seconds": 9.0}, True),
        ({"slow_seconds": 9.0}, True),
        ({"is_gated": True}, True),
        ({"limit": 0}, False),
    ],
)
def test_a_lease_says_whether_others_may_wait_for_its_slot(frontier, worker, pace, is_limited):
    frontier.set_site(SITE, **pace)
    frontier.offer([record("a")])
    [lease] = worker.lease()
    assert lease.is_limited is is_limited
    assert frontier.lease("w", 0, 1).leases == [lease], "also when it is asked again"


@pytest.mark.parametrize("end", ["ack", "retry", "bury", "release", "reap"])
def test_every_end_of_a_lease_frees_the_sites_slot(frontier, worker, clock, end):
    frontier.set_site(SITE, limit=1)
    frontier.offer([record("a"), record("b")])
    [lease] = worker.lease()
    if end == "ack":
        worker.ack(lease)
    elif end == "retry":
        frontier.retry(lease.id, lease.token, 99)
    elif end == "bury":
        frontier.bury(lease.id, lease.token, "no")
    elif end == "release":
        frontier.release([(lease.id, lease.token)])
    else:
        clock.advance(11)
        frontier.reap()
    assert len(worker.lease()) == 1
    assert frontier.site_facts(SITE).in_flight == 1


def test_a_gated_site_is_asked_by_one_at_a_time_until_it_is_opened(make_frontier):
    frontier = make_frontier(pace=Pace(is_gated=True))
    frontier.offer([record("a"), record("b"), record("c"), record("d", site="http://two:80")])
    worker = Worker(frontier)
    assert names(worker.lease(9)) == ["a", "d"]
    assert worker.lease(9) == []
    frontier.set_site(SITE, is_gated=False)
    assert names(worker.lease(9)) == ["b", "c"]
    assert not frontier.site_facts(SITE).pace.is_limited


def test_the_gate_of_a_site_stands_before_its_limit_and_its_end_shows_that_again(frontier, worker):
    frontier.set_site(SITE, is_gated=True, limit=2)
    frontier.offer([record(name) for name in "abcd"])
    assert names(worker.lease(9)) == ["a"]
    frontier.set_site(SITE, is_gated=False)
    assert names(worker.lease(9)) == ["b"]


def test_what_was_learned_of_a_site_slows_it_down_and_never_below_its_own_delay(frontier, worker, clock):
    frontier.offer([record(name) for name in "abc"])
    frontier.set_site(SITE, delay_seconds=2, slow_seconds=5)
    assert names(worker.lease(9)) == ["a"]
    assert frontier.lease("w", worker.base, 3).wait_seconds == pytest.approx(5)
    frontier.set_site(SITE, slow_seconds=0.5)
    clock.advance(5)
    assert names(worker.lease(9)) == ["b"]
    assert frontier.lease("w", worker.base, 3).wait_seconds == pytest.approx(2)


def test_no_jitter_makes_a_site_faster_than_was_learned_of_it(make_frontier):
    frontier = make_frontier(dice=lambda: 0.0)
    frontier.set_site(SITE, delay_seconds=4, jitter=0.5, slow_seconds=3)
    frontier.offer([record("a"), record("b")])
    Worker(frontier).lease(1)
    assert frontier.lease("w", 1, 1).wait_seconds == pytest.approx(3)


def test_how_slow_sites_are_of_which_nothing_is_known_can_be_said_for_all(make_frontier):
    frontier = make_frontier(pace=Pace(slow_seconds=3))
    frontier.offer([record("a"), record("b")])
    assert names(Worker(frontier).lease(9)) == ["a"]
    assert frontier.lease("w", 1, 3).wait_seconds == pytest.approx(3)
    assert frontier.site_facts(SITE).pace.slow_seconds == 3


def test_a_fact_that_is_empty_is_taken_away(frontier):
    frontier.set_site(SITE, facts={"robots": "x", "server": "nginx"})
    frontier.set_site(SITE, facts={"robots": "", "never": ""})
    assert dict(frontier.site_facts(SITE).facts) == {"server": "nginx"}


def test_a_pause_holds_everybody_until_its_end(frontier, worker, clock):
    frontier.offer([record("a")])
    frontier.set_site(SITE, paused_until=frontier.now() + 5)
    assert worker.lease() == []
    clock.advance(5)
    assert names(worker.lease()) == ["a"]


def test_a_site_that_must_wait_never_blocks_another(frontier, worker):
    frontier.offer([record("slow", priority=100), record("slower", priority=99), record("free", site="http://two:80")])
    frontier.set_site(SITE, delay_seconds=60)
    assert names(worker.lease(3)) == ["slow", "free"]


def test_a_pace_can_be_lifted_while_requests_wait(frontier, worker):
    frontier.offer([record("a"), record("b")])
    frontier.set_site(SITE, limit=1)
    worker.lease(2)
    frontier.set_site(SITE, limit=0)
    assert names(worker.lease(2)) == ["b"]


def test_only_a_free_worker_may_take_from_a_site_with_a_pace(frontier, worker):
    frontier.set_site(SITE, limit=5)
    frontier.offer([record("a"), record("b"), record("c", site="http://two:80")])
    assert names(worker.lease(3, limited=1)) == ["a", "c"]
    assert worker.lease(3, limited=0) == []
    assert names(worker.lease(3)) == ["b"]


def test_a_worker_that_may_take_from_no_site_with_a_pace_gets_as_many_of_the_others_as_it_asks_for(frontier, worker):
    frontier.offer([record(name) for name in "abcde"])
    assert names(worker.lease(2, limited=0)) == ["a", "b"]
    assert names(worker.lease(2, limited=1)) == ["c", "d"]


def test_site_facts_tell_pace_load_and_what_is_known(frontier, worker):
    frontier.set_site(SITE, delay_seconds=1, facts={"robots": "User-agent: *"})
    frontier.set_site(SITE, facts={"server": "nginx"})
    frontier.offer([record("a"), record("b")])
    worker.lease()
    facts = frontier.site_facts(SITE)
    assert (facts.pace.delay_seconds, facts.in_flight, facts.ready) == (1, 1, 1)
    assert facts.facts == {"robots": "User-agent: *", "server": "nginx"}


def test_a_site_never_met_has_the_default_pace(frontier):
    facts = frontier.site_facts("http://nowhere:80")
    assert (facts.pace.delay_seconds, facts.ready, dict(facts.facts)) == (0, 0, {})


def test_sites_are_listed_with_the_most_waiting_first(frontier):
    frontier.offer(
        [record("a", site="http://one:80"), record("b", site="http://two:80"), record("c", site="http://two:80")]
    )
    assert [name for name, _ in frontier.sites()] == ["http://two:80", "http://one:80"]
    assert len(frontier.sites(limit=1)) == 1


def test_a_thousand_sites_take_turns(frontier, worker):
    frontier.offer([record(f"{site}-{i}", site=f"http://s{site}:80") for i in range(2) for site in range(1000)])
    for site in range(1000):
        frontier.set_site(f"http://s{site}:80", limit=1)
    assert len(worker.lease(5000)) == 1000


# -- ack --------------------------------------------------------------------------------------------------------------


def test_ack_takes_the_parent_out_and_the_children_in(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    assert frontier.ack([Page(lease.id, lease.token, [record("b"), record("a"), record("c")])]) == [[True, False, True]]
    assert frontier.locate(record("a").id).state is State.DONE
    assert names(worker.lease(5)) == ["b", "c"]


def test_one_call_acks_many_pages(frontier, worker):
    frontier.offer([record("a"), record("b")])
    first, second = worker.lease(2)
    assert frontier.ack([Page(first.id, first.token, [record("c")]), Page(second.id, second.token, [record("c")])]) == [
        [True],
        [False],
    ]
    assert frontier.counts().done == 2


def test_an_ack_sent_again_changes_nothing(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    page = Page(lease.id, lease.token, [record("b")])
    frontier.ack([page])
    before = frontier.counts()
    assert frontier.ack([page]) == [None]
    assert frontier.counts() == before


def test_a_late_worker_cannot_ack_what_another_now_holds(frontier, clock):
    frontier.offer([record("a")])
    [late] = Worker(frontier, "late").lease()
    clock.advance(11)
    frontier.reap()
    [current] = Worker(frontier, "current").lease()
    assert frontier.ack([Page(late.id, late.token, [record("b")], [b"item"])]) == [None]
    assert frontier.locate(record("b").id).state is State.NEW, "a refused page is refused whole"
    assert frontier.ack([Page(current.id, current.token)]) == [[]]


def test_a_refused_page_does_not_spoil_the_others_of_the_call(frontier, worker):
    frontier.offer([record("a"), record("b")])
    first, second = worker.lease(2)
    assert frontier.ack([Page(first.id, ("other", 0)), Page(second.id, second.token, [record("c")])]) == [None, [True]]


def test_items_are_stored_with_the_ack_and_only_once(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    page = Page(lease.id, lease.token, items=[b"one", b"two"])
    frontier.ack([page])
    frontier.ack([page])
    assert frontier.items()[0] == [b"one", b"two"]


# -- retry, bury, revive, forget --------------------------------------------------------------------------------------


def test_retry_holds_the_request_in_the_store_and_counts(frontier, worker, clock):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    assert frontier.retry(lease.id, lease.token, 5)
    assert frontier.locate(lease.id).state is State.DELAYED
    assert worker.lease() == []
    clock.advance(5)
    [again] = worker.lease()
    assert (again.attempt, again.lost) == (1, 0)


def test_retry_counts_add_up_and_are_gone_when_the_page_is_done(frontier, worker, clock):
    frontier.offer([record("a")])
    for attempt in range(4):
        [lease] = worker.lease()
        assert lease.attempt == attempt
        frontier.retry(lease.id, lease.token, 0)
    worker.ack(*worker.lease())
    frontier.forget([record("a").id])
    frontier.offer([record("a")])
    assert worker.lease()[0].attempt == 0


@pytest.mark.parametrize("verb", ["retry", "bury"])
def test_retry_and_bury_by_another_than_the_holder_are_refused(frontier, worker, verb):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    stranger = ("stranger", lease.token[1])
    assert not (frontier.retry(lease.id, stranger, 0) if verb == "retry" else frontier.bury(lease.id, stranger, "no"))
    assert frontier.locate(lease.id).state is State.LEASED


def test_a_dead_letter_keeps_payload_reason_attempts_status_and_time(frontier, worker, clock):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    frontier.retry(lease.id, lease.token, 0)
    [lease] = worker.lease()
    clock.advance(3)
    assert frontier.bury(lease.id, lease.token, "HTTP 503", status=503)
    [letter], cursor = frontier.dead_letters()
    assert (letter.payload, letter.reason, letter.attempts, letter.status) == (b"payload of a", "HTTP 503", 2, 503)
    assert letter.at == pytest.approx(frontier.now())
    assert cursor == 0


def test_a_page_that_is_given_up_can_have_children(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    assert frontier.ack([Page(lease.id, lease.token, [record("b")], reason="no")]) == [[True]]
    assert frontier.locate(lease.id).state is State.DEAD
    assert names(worker.lease()) == ["b"]


def test_a_dead_request_is_not_taken_in_again(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    frontier.bury(lease.id, lease.token, "no")
    assert frontier.offer([record("a")]) == [False]


def test_revive_puts_dead_requests_back_with_fresh_counters(frontier, worker):
    frontier.offer([record("a"), record("b")])
    lease, other = worker.lease(2)
    frontier.retry(lease.id, lease.token, 0)
    [lease] = worker.lease()
    frontier.bury(lease.id, lease.token, "no")
    assert frontier.revive([lease.id, other.id, record("never").id]) == 1
    [again] = worker.lease()
    assert (name_of(again.id), again.attempt) == ("a", 0)


def test_forget_lets_done_and_dead_requests_come_again_but_not_pending_ones(frontier, worker):
    frontier.offer([record("done"), record("dead"), record("ready")])
    done, dead = worker.lease(2)
    worker.ack(done)
    frontier.bury(dead.id, dead.token, "no")
    assert frontier.forget([done.id, dead.id, record("ready").id, record("never").id]) == 2
    assert frontier.offer([record("done"), record("dead"), record("ready")]) == [True, True, False]


# -- renew, release, reap ---------------------------------------------------------------------------------------------


def test_renew_moves_the_deadline_and_names_the_lost(frontier, worker, clock):
    frontier.offer([record("a"), record("b")])
    kept, lost = worker.lease(2)
    clock.advance(9)
    frontier.renew([(kept.id, kept.token)])
    clock.advance(9)
    assert frontier.reap() == ([lost.id], [])
    assert frontier.renew([(kept.id, kept.token), (lost.id, lost.token)]) == [lost.id]


def test_release_counts_nothing_and_says_how_many(frontier, worker):
    frontier.offer([record("a"), record("b")])
    first, second = worker.lease(2)
    worker.ack(second)
    assert frontier.release([(first.id, first.token), (second.id, second.token)]) == 1
    [again] = worker.lease()
    assert (again.attempt, again.lost) == (0, 0)


def test_reap_gives_back_only_what_is_past_its_deadline(frontier, worker, clock):
    frontier.offer([record("a"), record("b")])
    worker.lease()
    clock.advance(6)
    worker.lease()
    clock.advance(5)
    assert [name_of(id) for id in frontier.reap()[0]] == ["a"]
    assert frontier.locate(record("b").id).state is State.LEASED


def test_reap_counts_losses_apart_from_retries(frontier, worker, clock):
    frontier.offer([record("a")])
    worker.lease()
    clock.advance(11)
    frontier.reap()
    [again] = worker.lease()
    assert (again.attempt, again.lost) == (0, 1)


def test_a_request_whose_workers_keep_dying_ends_in_the_dead_letters(frontier, worker, clock):
    frontier.offer([record("a")])
    for _ in range(2):
        worker.lease()
        clock.advance(11)
        assert frontier.reap()[1] == []
    worker.lease()
    clock.advance(11)
    assert frontier.reap() == ([], [record("a").id])
    [letter], _ = frontier.dead_letters()
    assert (letter.reason, letter.lost) == ("its worker died 3 times", 3)


def test_reap_takes_no_more_than_its_limit(frontier, worker, clock):
    frontier.offer([record(name) for name in "abc"])
    worker.lease(3)
    clock.advance(11)
    assert len(frontier.reap(limit=2)[0]) == 2
    assert len(frontier.reap(limit=2)[0]) == 1


# -- the crawl as a whole ---------------------------------------------------------------------------------------------


def test_finished_means_seeded_and_nothing_pending_but_the_dead(frontier, worker):
    assert not frontier.finish(), "seeding has not ended"
    frontier.seed(0, 2, [record("a"), record("b")], finished=True)
    first, second = worker.lease(2)
    worker.ack(first)
    assert not frontier.finish(), "one is still worked on"
    frontier.bury(second.id, second.token, "no")
    assert frontier.finish()
    assert frontier.lease("w", 9, 1).state == "finished"


def test_a_delayed_request_keeps_the_crawl_from_finishing(frontier, worker):
    frontier.seed(0, 1, [record("a")], finished=True)
    [lease] = worker.lease()
    frontier.retry(lease.id, lease.token, 60)
    assert not frontier.finish()


@pytest.mark.parametrize("how", ["offer", "revive"])
def test_new_work_reopens_a_finished_crawl(frontier, worker, how):
    frontier.seed(0, 1, [record("a")], finished=True)
    [lease] = worker.lease()
    frontier.bury(lease.id, lease.token, "no")
    assert frontier.finish()
    if how == "offer":
        frontier.offer([record("b")])
    else:
        frontier.revive([lease.id])
    assert not frontier.finish()
    assert len(worker.lease()) == 1


def test_flush_is_refused_while_requests_are_leased_unless_forced(frontier, worker):
    frontier.seed(0, 1, [record("a")], finished=True)
    worker.lease()
    with pytest.raises(NodesAlive, match="1 request"):
        frontier.flush()
    frontier.flush(force=True)
    assert frontier.counts() == type(frontier.counts())()
    assert frontier.seed_cursor() == (0, False)
    assert frontier.offer([record("a")]) == [True]


def test_an_ack_from_before_a_flush_is_refused(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    frontier.flush(force=True)
    assert frontier.ack([Page(lease.id, lease.token, [record("b")])]) == [None]


# -- a finished crawl: once more, or away -----------------------------------------------------------------------------


def finished_crawl(frontier, worker, *more):
    """A crawl of the seeds a (done) and x (dead), and of the link l (done)."""
    frontier.seed(0, 2, [record("a"), record("x")], finished=True)
    a, x = worker.lease(2)
    frontier.ack([Page(a.id, a.token, [record("l")], [b"item of a"], counters={"pages": 1})])
    frontier.bury(x.id, x.token, "no")
    worker.ack(*worker.lease())
    assert frontier.finish()


def test_a_crawl_seeded_once_more_takes_its_seeds_in_again_and_what_they_link_to_only_if_it_is_new(frontier, worker):
    finished_crawl(frontier, worker)
    assert frontier.begin_again()
    assert frontier.seed_cursor() == (0, False)
    assert frontier.seed(0, 3, [record("a"), record("x"), record("new")]) == [True, True, True]
    again, *_ = worker.lease(3)
    assert frontier.ack([Page(again.id, again.token, [record("l"), record("m")])]) == [[False, True]]
    assert frontier.audit() == []


def test_a_seed_of_a_later_round_that_waits_already_is_not_taken_twice(frontier, worker):
    finished_crawl(frontier, worker)
    frontier.begin_again()
    frontier.seed(0, 1, [record("a")])
    assert frontier.seed(1, 2, [record("a")]) == [False]
    assert names(worker.lease(5)) == ["a"]


def test_a_dead_seed_of_a_later_round_comes_with_fresh_counters_and_the_new_payload(frontier, worker):
    finished_crawl(frontier, worker)
    frontier.begin_again()
    frontier.seed(0, 1, [record("x")._replace(payload=b"new")])
    [lease] = worker.lease()
    assert (lease.payload, lease.attempt, frontier.counts().dead) == (b"new", 0, 0)


def test_a_crawl_that_is_not_finished_cannot_begin_again(frontier, worker):
    frontier.seed(0, 1, [record("a")], finished=True)
    assert not frontier.begin_again()
    assert frontier.seed_cursor() == (1, True)


def test_a_crawl_seeded_once_more_ends_again(frontier, worker):
    finished_crawl(frontier, worker)
    frontier.begin_again()
    assert not frontier.finish(), "its seeding has not ended"
    frontier.seed(0, 1, [record("a")], finished=True)
    worker.ack(*worker.lease())
    assert frontier.finish()


def test_clearing_a_finished_crawl_leaves_its_items_and_dead_letters(frontier, worker):
    finished_crawl(frontier, worker)
    assert frontier.clear_finished()
    assert frontier.finish(), "who comes late is told that it is over"
    counts = frontier.counts()
    assert (counts.seen, counts.dead, counts.pending) == (0, 1, 0)
    assert frontier.items()[0] == [b"item of a"]
    [letter], _ = frontier.dead_letters()
    assert (letter.id, letter.reason) == (record("x").id, "no")
    assert frontier.locate(record("a").id).state is State.NEW
    assert frontier.audit() == []


def test_the_crawl_after_a_cleared_one_takes_everything_in_what_was_dead_too(frontier, worker):
    finished_crawl(frontier, worker)
    assert frontier.clear_finished(reopens=True)
    assert not frontier.finish()
    assert (frontier.seed_cursor(), frontier.stats(), frontier.counts().done) == ((0, False), {}, 0)
    assert frontier.seed(0, 2, [record("a"), record("x")]) == [True, True]
    assert names(worker.lease(5)) == ["a", "x"]
    assert frontier.counts().dead == 0
    assert frontier.audit() == []


def test_a_dead_letter_of_a_cleared_crawl_can_still_be_revived(frontier, worker):
    finished_crawl(frontier, worker)
    frontier.clear_finished()
    assert frontier.revive([record("x").id]) == 1
    assert names(worker.lease()) == ["x"]
    assert frontier.offer([record("x")]) == [False]
    assert frontier.audit() == []


def test_a_crawl_is_not_cleared_before_it_is_finished_or_while_a_node_lives(frontier, worker, clock):
    frontier.seed(0, 1, [record("a")], finished=True)
    assert not frontier.clear_finished()
    worker.ack(*worker.lease())
    frontier.beat("w", {})
    frontier.finish()
    assert not frontier.clear_finished()
    assert frontier.counts().seen == 1
    clock.advance(11)
    assert frontier.clear_finished()


# -- looking ----------------------------------------------------------------------------------------------------------


def test_locate_tells_where_a_request_stands_in_every_state(frontier, worker, clock):
    frontier.offer([record(name) for name in ("done", "dead", "delayed", "leased", "ready")])
    done, dead, delayed, leased = worker.lease(4)
    worker.ack(done)
    frontier.bury(dead.id, dead.token, "no")
    frontier.retry(delayed.id, delayed.token, 7)
    where = {name: frontier.locate(record(name).id) for name in ("new", "done", "dead", "delayed", "leased", "ready")}
    assert {name: str(location.state) for name, location in where.items()} == {name: name for name in where}
    assert (where["dead"].reason, where["dead"].attempt, where["delayed"].attempt) == ("no", 0, 1)
    assert where["delayed"].at == pytest.approx(frontier.now() + 7)
    assert (where["leased"].worker, where["leased"].site) == ("w", SITE)
    assert where["leased"].at == pytest.approx(frontier.now() + 10)


@pytest.mark.parametrize("state", [State.READY, State.LEASED, State.DELAYED, State.DEAD])
def test_scan_finds_all_of_a_state_in_pages(frontier, worker, state):
    frontier.offer([record(f"{i}") for i in range(40)])
    for lease in worker.lease(10):
        frontier.retry(lease.id, lease.token, 99)
    for lease in worker.lease(10):
        frontier.bury(lease.id, lease.token, "no")
    worker.lease(10)
    found, cursor = [], -1
    while cursor:
        page, cursor = frontier.scan(state, max(cursor, 0), 7)
        found += page
    assert len({id for id, _ in found}) == len(found) == 10
    assert all(frontier.locate(id).state is state for id, _ in found)
    assert all(payload.startswith(b"payload of ") for _, payload in found)


def test_dead_letters_come_in_pages(frontier, worker):
    frontier.offer([record(f"{i}") for i in range(5)])
    for lease in worker.lease(5):
        frontier.bury(lease.id, lease.token, "no")
    first, cursor = frontier.dead_letters(count=3)
    rest, end = frontier.dead_letters(cursor, count=3)
    assert (len(first), len(rest), end) == (3, 2, 0)


def test_counts_add_up(frontier, worker):
    frontier.offer([record(f"{i}") for i in range(10)])
    done, dead, delayed, _ = worker.lease(4)
    worker.ack(done)
    frontier.bury(dead.id, dead.token, "no")
    frontier.retry(delayed.id, delayed.token, 9)
    counts = frontier.counts()
    assert (counts.ready, counts.leased, counts.delayed, counts.dead, counts.done, counts.seen) == (6, 1, 1, 1, 1, 10)
    assert counts.pending == 8


def test_who_opens_a_crawl_again_finds_it_as_it_was(frontier, worker):
    frontier.offer([record("a"), record("b")])
    worker.ack(*worker.lease())
    before = frontier.counts()
    frontier.open()
    assert (frontier.counts(), frontier.audit()) == (before, [])


@pytest.mark.parametrize("state", ["running", "paused", "stopped"])
def test_the_state_is_the_one_that_was_set(frontier, state):
    frontier.set_state(state)
    assert frontier.state() == state
    with pytest.raises(ValueError, match="state 'asleep'; it is one of running, paused, stopped"):
        frontier.set_state("asleep")


def test_time_never_goes_back(frontier, clock):
    clock.advance(100)
    before = frontier.now()
    clock.advance(-50)
    assert frontier.now() == before


def test_repair_of_a_sound_store_changes_nothing(frontier, worker):
    frontier.offer([record("a"), record("b")])
    worker.lease()
    before = frontier.counts()
    assert frontier.repair() == 0
    assert frontier.counts() == before


# -- replace, discard and waiting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.READY, State.DELAYED, State.DEAD])
def test_replace_changes_the_payload_and_nothing_else(frontier, worker, clock, state):
    bring_to(frontier, worker, clock, state)
    before = frontier.locate(record("a").id), frontier.counts()
    assert frontier.replace(record("a").id, b"another")
    assert (frontier.locate(record("a").id), frontier.counts()) == before
    assert frontier.scan(state)[0] == [(record("a").id, b"another")]
    assert frontier.replace(record("a").id, b"")


def test_replaced_requests_come_in_the_order_that_they_had(frontier, worker):
    frontier.offer([record("a"), record("b"), record("c", priority=1)])
    for name in "bac":
        assert frontier.replace(record(name).id, b"new " + name.encode())
    assert [(lease.id[:1], lease.payload) for lease in worker.lease(3)] == [
        (b"c", b"new c"),
        (b"a", b"new a"),
        (b"b", b"new b"),
    ]


def test_what_replaces_a_leased_payload_counts_when_the_request_comes_back(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    assert frontier.replace(lease.id, b"another")
    assert frontier.release([(lease.id, lease.token)]) == 1, "its holder still holds it"
    [again] = worker.lease()
    assert again.payload == b"another"
    worker.ack(again)


@pytest.mark.parametrize("state", [State.NEW, State.DONE])
def test_replace_of_what_is_not_there_changes_nothing(frontier, worker, clock, state):
    bring_to(frontier, worker, clock, state)
    assert not frontier.replace(record("a").id, b"another")
    assert frontier.locate(record("a").id).state is state
    assert frontier.offer([record("a")]) == [state is State.NEW]


@pytest.mark.parametrize("state", [State.READY, State.DELAYED, State.DEAD])
def test_what_is_discarded_is_gone_and_comes_again_only_when_it_is_forgotten(frontier, worker, clock, state):
    bring_to(frontier, worker, clock, state)
    assert frontier.discard(record("a").id)
    assert not frontier.discard(record("a").id)
    assert frontier.counts().pending + frontier.counts().dead == 0
    assert frontier.counts().done == 1
    assert frontier.dead_letters() == ([], 0)
    assert frontier.offer([record("a")]) == [False]
    clock.advance(100)
    assert worker.lease(9) == []
    assert frontier.forget([record("a").id]) == 1
    assert frontier.offer([record("a")]) == [True]
    assert [(lease.attempt, lease.lost) for lease in worker.lease(9)] == [(0, 0)]


def test_discard_takes_one_out_and_leaves_the_others_in_their_order(frontier, worker):
    frontier.offer([record(name, site=f"http://{site}:80") for name, site in ("ax", "bx", "cy", "dx", "ey")])
    for name in "ad":
        assert frontier.discard(record(name).id)
    assert not frontier.discard(record("z").id)
    assert frontier.audit() == []
    assert names(worker.lease(9)) == ["b", "c", "e"]


def test_discard_of_the_only_request_of_a_site_leaves_nothing_to_ask_there(frontier, worker):
    frontier.set_site(SITE, delay_seconds=5)
    frontier.offer([record("a"), record("b"), record("c", site="http://other:80")])
    assert names(worker.lease(1)) == ["a"]
    assert frontier.discard(record("b").id)
    assert names(worker.lease(2)) == ["c"]
    assert frontier.lease("v", 0, 1).wait_seconds is None


def test_discard_refuses_what_is_leased_and_changes_nothing(frontier, worker):
    frontier.offer([record("a")])
    [lease] = worker.lease()
    with pytest.raises(IllegalMove):
        frontier.discard(lease.id)
    assert frontier.ack([Page(lease.id, lease.token, [record("b")])]) == [[True]]


def test_what_was_delayed_and_discarded_does_not_wake_nor_keep_others_from_it(frontier, worker, clock):
    frontier.offer([record("a"), record("b")])
    for lease, delay in zip(worker.lease(2), (5, 3), strict=True):
        frontier.retry(lease.id, lease.token, delay)
    assert frontier.discard(record("b").id)
    assert frontier.lease("v", 0, 1).wait_seconds == pytest.approx(5, abs=0.01)
    clock.advance(6)
    [again] = worker.lease(9)
    assert (name_of(again.id), again.attempt) == ("a", 1)
    frontier.forget([record("b").id])
    frontier.offer([record("b")])
    assert [lease.attempt for lease in worker.lease(9)] == [0]


def test_a_request_whose_workers_died_can_be_discarded(frontier, worker):
    frontier.offer([record("a"), record("b")])
    for _ in range(2):
        worker.lease(2)
        frontier.reap(worker=worker.name, started=[record("a").id])
    assert frontier.discard(record("a").id)
    assert frontier.audit() == []
    assert names(worker.lease(9)) == ["b"]


def test_a_crawl_whose_last_requests_were_discarded_is_finished(frontier):
    frontier.seed(0, 1, [record("a")], finished=True)
    assert not frontier.finish()
    frontier.discard(record("a").id)
    assert frontier.finish()


def test_waiting_gives_what_is_ready_or_delayed_with_its_retries(frontier, worker):
    frontier.offer([record(f"{i}") for i in range(20)])
    delayed, dead, done, _ = worker.lease(4)
    frontier.retry(delayed.id, delayed.token, 5)
    frontier.bury(dead.id, dead.token, "no")
    worker.ack(done)
    found, cursor = {}, -1
    while cursor:
        page, cursor = frontier.waiting(max(cursor, 0), 5)
        found |= {name_of(id): (payload, attempt) for id, payload, attempt in page}
    expected = {f"{i}": (f"payload of {i}".encode(), 0) for i in range(4, 20)}
    assert found == {**expected, "0": (b"payload of 0", 1)}


# -- the table of moves -----------------------------------------------------------------------------------------------


def bring_to(frontier, worker, clock, state: State):
    """The request "a", brought to a state; its lease as far as it had one."""
    if state is State.NEW:
        return None
    frontier.offer([record("a")])
    if state is State.READY:
        return None
    [lease] = worker.lease()
    if state is State.DELAYED:
        frontier.retry(lease.id, lease.token, 5)
    elif state is State.DEAD:
        frontier.bury(lease.id, lease.token, "no")
    elif state is State.DONE:
        worker.ack(lease)
    return lease


def apply(frontier, worker, clock, verb: str, lease) -> None:
    id, token = record("a").id, lease.token if lease else ("w", 0)
    if verb == "offer":
        frontier.offer([record("a")])
    elif verb == "lease":
        worker.lease()
    elif verb == "ack":
        frontier.ack([Page(id, token)])
    elif verb == "retry":
        frontier.retry(id, token, 5)
    elif verb == "bury":
        frontier.bury(id, token, "no")
    elif verb == "release":
        frontier.release([(id, token)])
    elif verb == "reap":
        clock.advance(11)
        frontier.reap()
    elif verb == "revive":
        frontier.revive([id])
    elif verb == "discard":
        if lease is not None and frontier.locate(id).state is State.LEASED:
            with pytest.raises(IllegalMove, match="^cannot discard a request that is leased$"):
                frontier.discard(id)
        else:
            frontier.discard(id)
    else:
        frontier.forget([id])


VERBS = ["offer", "lease", "ack", "retry", "bury", "release", "reap", "revive", "forget", "discard"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("state", list(State), ids=str)
def test_every_verb_moves_as_the_table_says_and_otherwise_not_at_all(frontier, worker, clock, state, verb):
    lease = bring_to(frontier, worker, clock, state)
    apply(frontier, worker, clock, verb, lease)
    is_due = state is State.DELAYED and verb == "reap"  # time passes there, but nothing asks for what is due
    expected = state if is_due else TABLE[state].get(verb, state)
    assert frontier.locate(record("a").id).state is expected
