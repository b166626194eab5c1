"""Random histories: the store against a model so plain that it can be checked by eye."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scrapy_plus.errors import IllegalMove
from scrapy_plus.frontier.base import Page
from scrapy_plus.frontier.memory import MemoryFrontier
from tests.frontier.conftest import Clock, record

NAMES = st.sampled_from([f"r{i}" for i in range(12)])
SITES = st.sampled_from(["http://one:80", "http://two:80"])
RECORDS = st.builds(
    lambda name, site, priority: record(name, site=site, priority=priority), NAMES, SITES, st.integers(-2, 2)
)


class Histories(RuleBasedStateMachine):
    """The model keeps the requests in order of arrival, each with a state; leases pick by looking at all of them."""

    @initialize(
        order=st.sampled_from(["fifo", "lifo", "priority"]), limit=st.integers(0, 2), delay=st.sampled_from([0, 3])
    )
    def begin(self, order, limit, delay):
        self.clock = Clock()
        options = {"order": order, "lease_seconds": 10, "max_lost": 1, "grace_seconds": inf, "dice": lambda: 0.5}
        self.frontier = MemoryFrontier(clock=self.clock, **options)
        self.order, self.limit, self.delay = order, limit, delay
        for site in ("http://one:80", "http://two:80"):
            self.frontier.set_site(site, limit=limit, delay_seconds=delay)
        self.requests = {}  # id -> dict; insertion order is the order of arrival
        self.seen, self.done, self.base, self.old = set(), 0, 0, []
        self.next_at, self.seeded, self.cursor = {}, False, 0

    # -- the model's own reading of the contract ----------------------------------------------------------------------

    def take(self, offered):
        if offered.id in self.seen:
            return False
        self.seen.add(offered.id)
        self.requests[offered.id] = {
            "record": offered,
            "state": "ready",
            "attempt": 0,
            "lost": 0,
            "no": len(self.seen_order()),
        }
        return True

    def seen_order(self):
        self.arrivals = getattr(self, "arrivals", 0) + 1
        return range(self.arrivals)

    def rank(self, entry):
        if self.order == "lifo":
            return -entry["no"]
        return (-entry["record"].priority if self.order == "priority" else 0, entry["no"])

    def may_be_asked(self, site):
        slots = sum(e["state"] == "leased" and e["slot"] and e["record"].site == site for e in self.requests.values())
        return not (self.limit and slots >= self.limit) and self.next_at.get(site, 0) <= self.clock.time

    def expected_lease(self):
        for entry in self.requests.values():
            if entry["state"] == "delayed" and entry["at"] <= self.clock.time:
                entry["state"] = "ready"
        ready = [e for e in self.requests.values() if e["state"] == "ready" and self.may_be_asked(e["record"].site)]
        return min(ready, key=self.rank, default=None)

    def leased(self):
        return [entry for entry in self.requests.values() if entry["state"] == "leased"]

    def in_state(self, state):
        return sum(entry["state"] == state for entry in self.requests.values())

    # -- verbs --------------------------------------------------------------------------------------------------------

    @rule(offered=st.lists(RECORDS, max_size=4))
    def offer(self, offered):
        assert self.frontier.offer(offered) == [self.take(one) for one in offered]

    @rule(offered=st.lists(RECORDS, max_size=2), ends=st.booleans())
    def seed(self, offered, ends):
        taken = self.frontier.seed(self.cursor, self.cursor + len(offered), offered, finished=ends)
        assert taken == [self.take(one) for one in offered]
        self.cursor += len(offered)
        self.seeded = self.seeded or ends

    @rule(count=st.integers(1, 4))
    def lease(self, count):
        leases = self.frontier.lease("w", self.base, count).leases
        if not self.is_finished():
            for n in range(count):
                entry = self.expected_lease()
                assert (entry is None) == (n >= len(leases))
                if entry is None:
                    break
                got = leases[n]
                assert (got.id, got.payload) == (entry["record"].id, entry["record"].payload)
                assert (got.attempt, got.lost) == (entry["attempt"], entry["lost"])
                entry.update(state="leased", token=got.token, at=self.clock.time + 10, slot=True)
                self.next_at[got.site] = self.clock.time + self.delay
        if leases:
            assert self.frontier.lease("w", self.base, count).leases == leases
        self.base += len(leases)

    def is_finished(self):
        return getattr(self, "finished", False) and self.seeded and not self.pending()

    def pending(self):
        return self.in_state("ready") + self.in_state("leased") + self.in_state("delayed")

    @precondition(lambda self: self.leased())
    @rule(data=st.data(), children=st.lists(RECORDS, max_size=3), is_dead=st.booleans())
    def ack(self, data, children, is_dead):
        entry = data.draw(st.sampled_from(self.leased()))
        page = Page(entry["record"].id, entry["token"], children, reason="no" if is_dead else None)
        expected = [self.take(child) for child in children]
        assert self.frontier.ack([page]) == [expected]
        assert self.frontier.ack([page]) == [None]
        self.old.append(page)
        if is_dead:
            entry.update(state="dead")
        else:
            self.done += 1
            del self.requests[entry["record"].id]

    @precondition(lambda self: self.old)
    @rule(data=st.data())
    def ack_of_a_lease_that_is_over(self, data):
        page = data.draw(st.sampled_from(self.old))
        assert self.frontier.ack([page]) == [None]

    @precondition(lambda self: self.leased())
    @rule(data=st.data(), delay=st.integers(0, 15))
    def retry(self, data, delay):
        entry = data.draw(st.sampled_from(self.leased()))
        assert self.frontier.retry(entry["record"].id, entry["token"], delay)
        entry.update(state="delayed", at=self.clock.time + delay, attempt=entry["attempt"] + 1)

    @precondition(lambda self: self.leased())
    @rule(data=st.data())
    def release(self, data):
        entry = data.draw(st.sampled_from(self.leased()))
        assert self.frontier.release([(entry["record"].id, entry["token"])]) == 1
        entry.update(state="ready")

    @precondition(lambda self: self.leased())
    @rule(data=st.data())
    def fetched(self, data):
        entry = data.draw(st.sampled_from(self.leased()))
        self.frontier.fetched([(entry["record"].id, entry["token"])])
        entry.update(slot=False)

    @precondition(lambda self: self.leased())
    @rule(data=st.data())
    def renew(self, data):
        entry = data.draw(st.sampled_from(self.leased()))
        assert self.frontier.renew([(entry["record"].id, entry["token"])]) == []
        entry.update(at=self.clock.time + 10)

    @rule()
    def reap(self):
        late = [entry for entry in self.leased() if entry["at"] <= self.clock.time]
        ready, dead = self.frontier.reap()
        for entry in late:
            entry["lost"] += 1
            entry["state"] = "dead" if entry["lost"] > 1 else "ready"
        assert set(ready) == {e["record"].id for e in late if e["state"] == "ready"}
        assert set(dead) == {e["record"].id for e in late if e["state"] == "dead"}

    @rule(ids=st.lists(NAMES, max_size=4, unique=True))
    def revive(self, ids):
        dead = [
            e for e in self.requests.values() if e["state"] == "dead" and e["record"].id in {record(n).id for n in ids}
        ]
        assert self.frontier.revive([record(name).id for name in ids]) == len(dead)
        for entry in dead:
            entry.update(state="ready", attempt=0, lost=0)

    @rule(ids=st.lists(NAMES, max_size=4, unique=True))
    def forget(self, ids):
        wanted = {record(name).id for name in ids}
        gone = {i for i in wanted & self.seen if i not in self.requests or self.requests[i]["state"] == "dead"}
        assert self.frontier.forget(sorted(wanted)) == len(gone)
        self.seen -= gone
        for id in gone:
            self.requests.pop(id, None)

    @rule(name=NAMES, is_new=st.booleans())
    def replace(self, name, is_new):
        id, payload = record(name).id, b"new" if is_new else b"other"
        assert self.frontier.replace(id, payload) == (id in self.requests)
        if id in self.requests:
            self.requests[id]["record"] = self.requests[id]["record"]._replace(payload=payload)

    @rule(name=NAMES)
    def discard(self, name):
        id = record(name).id
        if id in self.requests and self.requests[id]["state"] == "leased":
            with pytest.raises(IllegalMove):
                self.frontier.discard(id)
        else:
            is_there = self.requests.pop(id, None) is not None
            assert self.frontier.discard(id) == is_there
            self.done += is_there

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    @rule()
    def finish(self):
        self.finished = self.frontier.finish()
        assert self.finished == (self.seeded and not self.pending())

    @invariant()
    def the_counts_agree(self):
        counts = self.frontier.counts()
        due = sum(e["state"] == "delayed" and e["at"] <= self.clock.time for e in self.requests.values())
        assert counts.ready + counts.delayed == self.in_state("ready") + self.in_state("delayed")
        assert counts.delayed >= self.in_state("delayed") - due
        assert (counts.leased, counts.dead) == (self.in_state("leased"), self.in_state("dead"))
        assert (counts.seen, counts.done) == (len(self.seen), self.done)

    @invariant()
    def the_store_is_sound(self):
        assert self.frontier.audit() == []


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
