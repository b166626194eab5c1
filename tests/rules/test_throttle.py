"""How slowly a site is asked, by how it answers."""

from __future__ import annotations

import pytest

from scrapy_plus.rules.throttle import (
    CRAWL_DELAY,
    LATENCY,
    OVERLOAD,
    AutoThrottle,
    faster,
    is_noticeable,
    learned,
    retry_after,
    slower,
)

NOW = 784_111_777.0
"""Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples."""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 5 ", 5.0),
        ("0", 0.0),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30.0),
        ("Sunday, 06-Nov-94 08:50:07 GMT", 30.0),
        ("Sun Nov  6 08:50:07 1994", 30.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Fri, 31 Dec 1993 23:59:59 GMT", 0.0),
        ("Fri, 31 Dec 2093 23:59:59 GMT", 600.0),
        ("601", 600.0),
        ("9" * 500, 600.0),
        (None, 0.0),
        ("", 0.0),
        ("-1", 0.0),
        ("1.5", 0.0),
        ("soon", 0.0),
        ("٣", 0.0),
        ("Sun, 99 Nov 1994 08:49:37 GMT", 0.0),
        ("\x00", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_in_any_of_three_forms_and_is_cut_at_the_limit(value, seconds):
    assert retry_after(value, NOW, 600.0) == seconds


def test_a_site_that_refuses_is_asked_half_as_often_each_time_up_to_the_limit():
    delays = [0.0]
    for _ in range(6):
        delays.append(slower(delays[-1], 3.0))
    assert delays == [0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_good_answers_make_a_site_faster_bit_by_bit_until_it_has_no_delay_at_all():
    delay, answers = 2.0, 0
    while delay:
        assert faster(delay) < delay and (faster(delay) >= delay * 0.9 or faster(delay) == 0.0)
        delay, answers = faster(delay), answers + 1
        assert answers < 100
    assert answers > 20


@pytest.mark.parametrize(
    ("delay", "latency", "target", "is_good", "expected"),
    [
        (5.0, 1.0, 1.0, True, 3.0),  # half-way down
        (1.0, 5.0, 1.0, True, 5.0),  # at once up
        (5.0, 1.0, 4.0, True, 2.625),  # four at a time: a quarter of the latency between two
        (5.0, 1.0, 1.0, False, 5.0),  # an error page is no reason to go faster
        (1.0, 5.0, 1.0, False, 5.0),  # but one to go slower
        (50.0, 500.0, 1.0, True, 60.0),
    ],
)
def test_latency_decides_between_what_was_and_what_it_asks_for(delay, latency, target, is_good, expected):
    rule = AutoThrottle(max_seconds=60.0, target_concurrency=target)
    assert rule.next_delay(delay, latency, is_good=is_good) == expected


def test_at_a_steady_latency_the_delay_comes_to_rest_at_it():
    rule, delay = AutoThrottle(target_concurrency=2.0), 5.0
    for _ in range(30):
        delay = rule.next_delay(delay, 0.4, is_good=True)
    assert delay == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("old", "new", "is_worth"),
    [(0.0, 0.0, False), (0.0, 0.1, True), (0.1, 0.0, True), (1.0, 1.1, False), (1.0, 1.5, True), (1.0, 0.7, True)],
)
def test_only_a_change_that_matters_is_told(old, new, is_worth):
    assert is_noticeable(old, new) is is_worth


@pytest.mark.parametrize(
    ("facts", "delay"),
    [
        ({}, 5.0),
        ({LATENCY: "0.2"}, 0.2),
        ({LATENCY: "0.2", CRAWL_DELAY: "1", OVERLOAD: "0.5"}, 1.0),
        ({CRAWL_DELAY: "9"}, 9.0),
        ({LATENCY: "junk", OVERLOAD: "-3"}, 0.0),
    ],
)
def test_the_slowest_of_all_that_was_learned_counts(facts, delay):
    assert learned(facts, start_seconds=5.0) == delay
