from __future__ import annotations

import pytest

from scrapy_plus.rules.pace import Pace, next_start, wait_seconds


def test_without_a_delay_the_next_request_may_start_at_once():
    assert next_start(100.0, Pace()) == 100.0


@pytest.mark.parametrize(("dice", "at"), [(0.0, 101.0), (0.5, 102.0), (1.0, 103.0)])
def test_jitter_spreads_the_delay_evenly_around_itself(dice, at):
    assert next_start(100.0, Pace(delay_seconds=2, jitter=0.5), dice) == at


def test_a_site_waits_for_the_later_of_its_next_start_and_its_pause():
    assert wait_seconds(100.0, Pace(paused_until=107), next_at=103, in_flight=0) == 7
    assert wait_seconds(100.0, Pace(paused_until=101), next_at=103, in_flight=0) == 3
    assert wait_seconds(100.0, Pace(paused_until=99), next_at=98, in_flight=0) == 0


def test_a_full_site_waits_for_an_event_and_not_for_a_time():
    assert wait_seconds(100.0, Pace(limit=2), next_at=0, in_flight=2) is None
    assert wait_seconds(100.0, Pace(limit=2), next_at=0, in_flight=1) == 0


def test_only_a_delay_or_a_limit_forbids_fetching_ahead():
    assert not Pace(paused_until=9, jitter=0.5).is_limited
    assert Pace(delay_seconds=0.1).is_limited
    assert Pace(limit=1).is_limited


def test_what_was_learned_of_a_site_is_the_least_time_between_two_starts_and_has_no_jitter():
    assert next_start(100.0, Pace(slow_seconds=3), dice=0.0) == 103.0
    assert next_start(100.0, Pace(delay_seconds=2, jitter=0.5, slow_seconds=2.5), dice=1.0) == 103.0
    assert next_start(100.0, Pace(delay_seconds=2, jitter=0.5, slow_seconds=2.5), dice=0.0) == 102.5
    assert Pace(slow_seconds=0.1).is_limited
    assert Pace(delay_seconds=2, slow_seconds=3).gap_seconds == 3


def test_a_gated_site_has_one_slot_whatever_its_limit():
    assert wait_seconds(100.0, Pace(limit=5, is_gated=True), next_at=0, in_flight=1) is None
    assert wait_seconds(100.0, Pace(is_gated=True), next_at=0, in_flight=0) == 0
    assert Pace(is_gated=True).is_limited
