from __future__ import annotations

import gevent

from scrapy_plus.core.stats import Stats


def test_what_is_counted_is_told_to_the_store_once():
    stats = Stats()
    stats.inc("pages")
    stats.inc("pages", 2)
    assert stats.get("pages") == 3
    assert stats.take_increments() == {"pages": 3}
    assert stats.take_increments() == {}


def test_pages_that_are_worked_on_side_by_side_keep_their_counts_apart():
    stats, taken = Stats(), {}

    def work(name: str, seconds: float) -> None:
        stats.begin_page()
        stats.inc(name)
        gevent.sleep(seconds)
        stats.inc("pages")
        taken[name] = stats.take_increments()

    gevent.joinall([gevent.spawn(work, "slow", 0.02), gevent.spawn(work, "fast", 0.0)], raise_error=True)
    assert taken == {"slow": {"slow": 1, "pages": 1}, "fast": {"fast": 1, "pages": 1}}
    assert stats.get("pages") == 2


def test_the_counts_of_a_page_that_comes_again_go_to_the_next_that_is_taken():
    stats = Stats()
    stats.begin_page()
    stats.inc("retry/count")
    stats.end_page()
    assert stats.take_increments() == {"retry/count": 1}


def test_errors_are_grouped_with_the_first_url_and_not_without_end():
    stats = Stats(max_groups=2)
    for number in range(5):
        stats.error("timeout", f"http://shop.test/{number}")
        stats.error(f"reason {number}", "http://shop.test/")
    groups = {group.reason: (group.count, group.sample_url) for group in stats.errors()}
    assert groups["timeout"] == (5, "http://shop.test/0")
    assert groups["other"][0] == 4
    assert len(groups) == 3
