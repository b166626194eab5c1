from __future__ import annotations

import pytest

from scrapy_plus.figures import Figures, Rates, figures, show_bytes, show_counts, show_duration, show_rate
from scrapy_plus.frontier.base import Counts

from .scene import crawl


def test_figures_add_up_over_spiders():
    one = crawl("a", counts=Counts(ready=1, leased=2, delayed=3, dead=4, done=5), stats={
        "downloader/response_count": 10, "downloader/response_bytes": 100, "item_scraped_count": 7,
        "downloader/response_status_count/200": 8, "downloader/response_status_count/404": 2,
        "downloader/exception_count": 1, "spider_exceptions_count": 2})  # fmt: skip
    both = figures([one, one])
    assert (both.queued, both.in_flight, both.delayed, both.dead, both.done) == (2, 4, 6, 8, 10)
    assert (both.pages, both.bytes, both.items, both.errors) == (20, 200, 14, 6)
    assert both.classes == {"2xx": 16, "4xx": 4}


def test_the_rate_now_is_that_of_the_last_seconds_and_the_average_that_of_all():
    rates = Rates(window_seconds=5)
    for second in range(1, 21):
        rates.add(second, Figures(pages=10 * second if second <= 10 else 100 + (second - 10)))
    assert rates.now("pages") == pytest.approx(1)
    assert rates.average("pages") == pytest.approx(110 / 20)


def test_rates_before_anything_happened_are_zero():
    assert Rates().now("pages") == 0
    rates = Rates()
    rates.add(0.0, Figures(pages=3))
    assert rates.average("pages") == 0
    rates.add(0.01, Figures(pages=3))
    assert rates.average("pages") == 0 == rates.now("pages"), "too early to tell"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show_bytes(0), "0 B"),
        (show_bytes(9_999), "9,999 B"),
        (show_bytes(15_200_000), "15.2 MB"),
        (show_bytes(3.2e15), "3,200.0 TB"),
        (show_duration(4.23), "4.2 s"),
        (show_duration(125), "2:05"),
        (show_duration(3725), "1:02:05"),
        (show_rate(41.23), "41.2/s"),
        (show_rate(12345.6), "12,346/s"),
        (show_counts({"404": 3, "200": 1000}), "200: 1,000  404: 3"),
    ],
)
def test_numbers_are_shown_as_people_read_them(shown, text):
    assert shown == text
