from __future__ import annotations

import pytest

from scrapy_plus import errors
from scrapy_plus.http.response import Response
from scrapy_plus.rules.judge import Bury, Finish, Retry, describe, judge


@pytest.mark.parametrize(("retry_time", "delay"), [(0, 0.5), (1, 1.0), (2, 2.0)])
def test_the_delay_doubles_with_each_retry(retry_time, delay):
    verdict = judge(errors.DownloadTimeout("slow"), retry_time, dice=1.0)
    assert verdict == Retry(delay, "DownloadTimeout: slow")


def test_the_delay_never_exceeds_its_limit_however_many_retries():
    verdict = judge(errors.DownloadTimeout(), 5000, max_retries=9999, backoff_limit_seconds=60, dice=1.0)
    assert verdict == Retry(60.0, "DownloadTimeout")


@pytest.mark.parametrize(("dice", "delay"), [(0.0, 4.0), (0.5, 6.0), (1.0, 8.0)])
def test_the_dice_spread_the_delay_over_its_upper_half(dice, delay):
    assert judge(ValueError("x"), 3, max_retries=9, backoff_seconds=1, dice=dice).delay_seconds == delay


def test_max_retries_counts_the_retries_after_the_first_try():
    assert isinstance(judge(errors.ConnectionFailed("refused"), 2, max_retries=3), Retry)
    assert judge(errors.ConnectionFailed("refused"), 3, max_retries=3) == Bury("ConnectionFailed: refused")
    assert isinstance(judge(errors.ConnectionFailed("refused"), 0, max_retries=0), Bury)


@pytest.mark.parametrize("kind", [errors.BodyTooLarge, errors.BadRedirect, errors.CallbackFailed, errors.NotStorable])
def test_what_would_fail_again_is_buried_at_once(kind):
    assert isinstance(judge(kind("no"), 0), Bury)


def test_a_final_answer_of_the_server_is_done_and_no_dead_letter():
    failure = errors.HttpError(Response("http://a.test/", 404))
    assert judge(failure, 0) == Finish("HttpError: HTTP 404")


def test_a_status_that_says_try_again_is_retried_and_then_buried():
    failure = errors.RetryStatus(Response("http://a.test/", 503))
    assert isinstance(judge(failure, 0), Retry)
    assert judge(failure, 3) == Bury("RetryStatus: HTTP 503")


def test_a_failed_callback_is_described_by_what_it_raised():
    try:
        try:
            raise KeyError("price")
        except KeyError as cause:
            raise errors.CallbackFailed("shop.parse failed") from cause
    except errors.CallbackFailed as failure:
        assert describe(failure) == "KeyError: 'price'"


def test_a_description_is_one_short_line():
    assert describe(ValueError("first\nsecond")) == "ValueError: first"
    assert len(describe(ValueError("x" * 5000))) < 400
