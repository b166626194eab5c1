"""The same random history for the memory store and for Redis: every answer must be the same.

The memory store is checked by test_histories against a model that is plain enough to be read; here it is the model.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scrapy_plus.errors import CursorMoved, IllegalMove, NodesAlive
from scrapy_plus.frontier.base import Ask, Lease, Page, Record
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.rules.lifecycle import State
from scrapy_plus.rules.pace import Pace
from tests.frontier.conftest import FUTURE, Clock, OwnRedis, record, redis_frontier

SITE_NAMES = [f"http://{name}:80" for name in ("one", "two", "three")]
IDS = [record(f"r{number}").id for number in range(10)]
RECORDS = st.builds(
    lambda number, site, priority: record(f"r{number}", site=site, priority=priority),
    st.integers(0, 9),
    st.sampled_from(SITE_NAMES),
    st.integers(-2, 2),
)
WORKERS = st.sampled_from(["v", "w"])
SOME_IDS = st.lists(st.sampled_from(IDS), max_size=4, unique=True)
GATES = st.sampled_from([None, False, True])


@pytest.fixture(scope="module")
def twins_redis() -> Iterator[OwnRedis]:
    with tempfile.TemporaryDirectory(prefix="sp-twins-") as folder:
        server = OwnRedis(Path(folder), "--appendonly", "no")
        yield server
        server.stop()


class Twins(RuleBasedStateMachine):
    """Rules draw what is held from the memory store's own answers; `both` asks the two and compares."""

    server: OwnRedis

    @initialize(
        order=st.sampled_from(["fifo", "lifo", "priority"]),
        limit=st.integers(0, 2),
        delay=st.sampled_from([0, 0, 3]),
        slow=st.sampled_from([0, 0, 2]),
        is_gated=st.sampled_from([False, False, True]),
        grace=st.sampled_from([inf, 5.0]),
    )
    def begin(self, order, limit, delay, slow, is_gated, grace):
        self.clock = Clock()
        self.client = self.server.client()
        pace = Pace(delay, limit, slow_seconds=slow, is_gated=is_gated)
        options = {"order": order, "pace": pace, "lease_seconds": 10.0, "max_lost": 3}
        options |= {"grace_seconds": grace, "dice": lambda: 0.5}
        self.memory = MemoryFrontier(clock=self.clock, **options)
        self.redis = redis_frontier(self.client, self.clock, **options)
        self.held: dict[str, list[Lease]] = {"v": [], "w": []}
        self.base = {"v": 0, "w": 0}
        self.cursor = 0
        self.old: list[Lease] = []

    def teardown(self):
        if hasattr(self, "client"):
            self.redis.close()
            self.client.close()

    def both(self, verb, *arguments, **named):
        answers = []
        for store in (self.memory, self.redis):
            try:
                answers.append(getattr(store, verb)(*arguments, **named))
            except (CursorMoved, IllegalMove, NodesAlive) as refusal:
                answers.append((type(refusal), str(refusal)))
        assert answers[0] == answers[1], f"{verb}: memory {answers[0]}, redis {answers[1]}"
        return answers[0]

    def is_anything_held(self):
        return any(self.held.values()) or bool(self.old)

    def draw_lease(self, data) -> Lease:
        leases = [*self.held["v"], *self.held["w"], *self.old[-6:]]
        return data.draw(st.sampled_from(leases))

    def over(self, lease: Lease) -> None:
        for leases in self.held.values():
            if lease in leases:
                leases.remove(lease)
                self.old.append(lease)

    # -- verbs --------------------------------------------------------------------------------------------------------

    @rule(records=st.lists(RECORDS, max_size=5))
    def offer(self, records: list[Record]):
        self.both("offer", records)

    @rule(records=st.lists(RECORDS, max_size=2), start=st.integers(-1, 0), ends=st.booleans())
    def seed(self, records, start, ends):
        answer = self.both("seed", self.cursor + start, self.cursor + start + len(records), records, finished=ends)
        if isinstance(answer, list):
            self.cursor = self.both("seed_cursor")[0]

    @rule(worker=WORKERS, count=st.integers(1, 4), limited=st.sampled_from([None, 0, 1]), says=st.booleans())
    def lease(self, worker, count, limited, says):
        holding = len(self.held[worker]) if says else 0
        self.take(worker, self.both("lease", worker, self.base[worker], count, limited=limited, holding=holding))

    def take(self, worker, answer):
        self.held[worker] += answer.leases
        self.base[worker] += len(answer.leases)

    @precondition(lambda self: max(self.base.values()))
    @rule(worker=WORKERS, back=st.integers(1, 3))
    def lease_again(self, worker, back):
        base = max(0, self.base[worker] - back)
        answer = self.both("lease", worker, base, back)
        for lease in answer.leases:
            if lease not in self.held[worker]:
                self.held[worker].append(lease)
        self.base[worker] = max(self.base[worker], base + len(answer.leases))

    @rule(
        worker=WORKERS,
        ends=st.lists(st.sampled_from(["done", "dead", "later", "back", "died"]), min_size=1, max_size=3),
    )
    def work(self, worker, ends):
        """A whole turn, so that histories get somewhere."""
        self.lease(worker, len(ends), None, True)
        for lease, end in zip(self.held[worker][-len(ends) :], ends, strict=False):
            if end == "later":
                self.both("retry", lease.id, lease.token, 2.0)
            elif end == "back":
                self.both("release", [(lease.id, lease.token)])
            elif end == "died":
                self.reap(worker, None)
            else:
                reason = "no" if end == "dead" else None
                self.both("ack", [Page(lease.id, lease.token, [], [lease.id[:3]], reason, counters={"pages": 1})])
            self.over(lease)

    @precondition(is_anything_held)
    @rule(data=st.data(), children=st.lists(RECORDS, max_size=3), reason=st.sampled_from([None, None, "no"]))
    def ack(self, data, children, reason):
        lease = self.draw_lease(data)
        page = Page(lease.id, lease.token, children, [lease.id[:3]], reason, 404, {"pages": 1, "items": len(children)})
        self.both("ack", [page])
        self.over(lease)

    @precondition(is_anything_held)
    @rule(data=st.data(), worker=WORKERS, children=st.lists(RECORDS, max_size=3), delay=st.integers(0, 9))
    def commit(self, data, worker, children, delay):
        a, b, c, d = (self.draw_lease(data) for _ in range(4))
        answer = self.both(
            "commit",
            fetched=[(a.id, a.token)],
            retries=[(b.id, b.token, float(delay))],
            releases=[(c.id, c.token)],
            pages=[Page(d.id, d.token, children), Page(a.id, a.token, children, [b"x"])],
            ask=Ask(worker, self.base[worker], 2),
        )
        for lease in (a, b, c, d):
            self.over(lease)
        self.take(worker, answer.lease)

    @precondition(is_anything_held)
    @rule(data=st.data(), delay=st.integers(0, 15))
    def retry(self, data, delay):
        lease = self.draw_lease(data)
        self.both("retry", lease.id, lease.token, float(delay))
        self.over(lease)

    @precondition(is_anything_held)
    @rule(data=st.data())
    def release(self, data):
        lease = self.draw_lease(data)
        self.both("release", [(lease.id, lease.token)])
        self.over(lease)

    @precondition(is_anything_held)
    @rule(data=st.data())
    def fetched(self, data):
        lease = self.draw_lease(data)
        self.both("fetched", [(lease.id, lease.token)])

    @rule(worker=WORKERS, reported=st.sampled_from([None, 0, 1, 9]))
    def renew(self, worker, reported):
        leases = self.held[worker]
        started = None if reported is None else [lease.id for lease in leases[:reported]]
        self.both("renew", [(lease.id, lease.token) for lease in leases], started=started)

    @rule(worker=st.sampled_from([None, None, "v", "w"]), reported=st.sampled_from([None, 1]))
    def reap(self, worker, reported):
        started = None if reported is None or worker is None else [one.id for one in self.held[worker][:1]]
        answers = [store.reap(worker=worker, started=started) for store in (self.memory, self.redis)]
        assert [sorted(ids) for ids in answers[0]] == [sorted(ids) for ids in answers[1]]
        gone = {*answers[0][0], *answers[0][1]}
        for lease in [*self.held["v"], *self.held["w"]]:
            if lease.id in gone:
                self.over(lease)

    @rule(ids=SOME_IDS)
    def revive(self, ids):
        self.both("revive", ids)

    @rule(ids=SOME_IDS)
    def forget(self, ids):
        self.both("forget", ids)

    @rule(id=st.sampled_from(IDS), payload=st.binary(max_size=3))
    def replace(self, id, payload):
        self.both("replace", id, payload)

    @rule(id=st.sampled_from(IDS))
    def discard(self, id):
        self.both("discard", id)

    @rule(state=st.sampled_from(["running", "running", "paused", "stopped"]))
    def set_state(self, state):
        self.both("set_state", state)

    @rule(
        site=st.sampled_from(SITE_NAMES), delay=st.sampled_from([None, 0.0, 4.0]), limit=st.sampled_from([None, 0, 1])
    )
    def set_site(self, site, delay, limit):
        self.both("set_site", site, delay_seconds=delay, limit=limit, facts={"delay": str(delay)})

    @rule(site=st.sampled_from(SITE_NAMES), slow=st.sampled_from([None, 0.0, 5.0]), is_gated=GATES)
    def learn_of_site(self, site, slow, is_gated):
        self.both("set_site", site, slow_seconds=slow, is_gated=is_gated)

    @rule(site=st.sampled_from(SITE_NAMES), seconds=st.integers(0, 9))
    def pause_site(self, site, seconds):
        self.memory.set_site(site, paused_until=self.clock.time + seconds)
        self.redis.set_site(site, paused_until=FUTURE + self.clock.time + seconds)

    @rule(worker=WORKERS)
    def beat(self, worker):
        self.both("beat", worker, {"n": worker})

    @rule(worker=WORKERS)
    def drain(self, worker):
        self.both("drain", worker)

    @rule(worker=WORKERS, seconds=st.integers(0, 9))
    def hold_seeding(self, worker, seconds):
        self.both("hold_seeding", worker, seconds)

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    @rule(force=st.booleans())
    def flush(self, force):
        if self.both("flush", force=force) is None:
            self.cursor = 0
            for lease in [*self.held["v"], *self.held["w"]]:
                self.over(lease)

    @rule(ends=st.booleans())
    def begin_again(self, ends):
        if ends:
            self.seed([], 0, True)
        if self.both("begin_again"):
            self.cursor = 0

    @rule(ends=st.booleans(), reopens=st.booleans())
    def clear_finished(self, ends, reopens):
        if ends:
            self.seed([], 0, True)
            self.both("finish")
        if self.both("clear_finished", reopens=reopens):
            self.cursor = 0

    @rule()
    def repair(self):
        assert self.redis.repair() == 0

    # -- what must be the same after every step ----------------------------------------------------------------------

    @invariant()
    def both_look_the_same(self):
        if not hasattr(self, "memory"):
            return
        self.both("finish")
        self.both("counts")
        self.both("stats")
        assert sorted(self.memory.waiting()[0]) == sorted(self.redis.waiting()[0])
        assert self.memory.items(count=999)[0] == self.redis.items(count=999)[0]
        assert self.redis.audit() == []
        for id in IDS:
            mine, other = self.memory.locate(id), self.redis.locate(id)
            assert (mine.state, mine.worker, mine.attempt, mine.lost) == (
                other.state,
                other.worker,
                other.attempt,
                other.lost,
            )
            if mine.state in (State.LEASED, State.DELAYED):
                assert abs(mine.at + FUTURE - other.at) < 0.002
        for site in SITE_NAMES:
            mine, other = self.memory.site_facts(site), self.redis.site_facts(site)
            assert (mine.in_flight, mine.ready, mine.facts) == (other.in_flight, other.ready, other.facts)
            assert replace(mine.pace, paused_until=0.0) == replace(other.pace, paused_until=0.0)


def compare(server: OwnRedis, examples: int, steps: int) -> None:
    Twins.server = server
    run_state_machine_as_test(
        Twins,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_memory_and_redis_answer_the_same_to_random_histories(twins_redis):
    compare(twins_redis, examples=60, steps=30)


@pytest.mark.long
def test_memory_and_redis_answer_the_same_to_many_random_histories(twins_redis):
    compare(twins_redis, examples=int(os.environ.get("TWINS_EXAMPLES", "1000")), steps=60)
