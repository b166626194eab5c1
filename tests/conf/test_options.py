"""Which values an option takes, from Python and from words, and what it makes of them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from scrapy_plus.conf import options
from scrapy_plus.conf.layers import CANONICAL, OPTIONS
from scrapy_plus.conf.words import distance, nearest

GOOD = [
    ("COOKIES_ENABLED", True, True),
    ("COOKIES_ENABLED", 0, False),
    ("COOKIES_ENABLED", "Yes", True),
    ("COOKIES_ENABLED", " off ", False),
    ("CONCURRENT_REQUESTS", 8, 8),
    ("CONCURRENT_REQUESTS", 8.0, 8),
    ("CONCURRENT_REQUESTS", "8", 8),
    ("DOWNLOAD_DELAY", "0.25", 0.25),
    ("RETRY_HTTP_CODES", "500, 503", [500, 503]),
    ("RETRY_HTTP_CODES", "[500, 503]", [500, 503]),
    ("RETRY_HTTP_CODES", {500}, [500]),
    ("RETRY_HTTP_CODES", "", []),
    ("SPIDERS", "spiders.a.A,spiders.b.B", ["spiders.a.A", "spiders.b.B"]),
    ("SPIDERS", ("spiders.a.A", Path), ["spiders.a.A", Path]),
    ("PIPELINES", [logging.root], [logging.root]),
    ("PIPELINES", {"p.Late": 900, "p.Off": None, "p.Early": 5}, ["p.Early", "p.Late"]),
    ("PIPELINES", '{"p.Late": 900, "p.Early": 5}', ["p.Early", "p.Late"]),
    ("DEFAULT_REQUEST_HEADERS", '{"Accept": "*/*"}', {"Accept": "*/*"}),
    ("DEFAULT_REQUEST_HEADERS", {"Accept": None, "X": 1}, {"X": "1"}),
    ("PROJECT_NAME", "none", None),
    ("LOG_FILE", Path("a.log"), "a.log"),
    ("LOG_LEVEL", "debug", "DEBUG"),
    ("LOG_FORMAT", "%(asctime)s %(message)s", "%(asctime)s %(message)s"),
    ("LOG_LEVEL", logging.WARNING, "WARNING"),
    ("SCHEDULER_QUEUE_CLASS", "LIFO", "lifo"),
    ("SCHEDULER_QUEUE_CLASS", "scrapy_redis.queue.FifoQueue", "fifo"),
    ("SCHEDULER_QUEUE_CLASS", "PriorityQueue", "priority"),
    ("SCHEDULER_QUEUE_CLASS", type("MyLifoQueue", (), {}), "lifo"),
    ("FEEDS", {Path("a.jl"): {}}, {"a.jl": {"format": "jsonl"}}),
    ("FEEDS", {"a.txt": "csv"}, {"a.txt": {"format": "csv"}}),
    ("FEEDS", {"a.csv": {"fields": ["x"]}}, {"a.csv": {"format": "csv", "fields": ["x"]}}),
    ("FEEDS", {"-": {}}, {"-": {"format": "jsonl"}}),
    (
        "FEEDS",
        {"a.csv": {"encoding": "UTF8", "overwrite": 1}},
        {"a.csv": {"format": "csv", "encoding": "utf-8", "overwrite": True}},
    ),
    ("FEED_EXPORT_FIELDS", "a,b", ["a", "b"]),
    ("FEED_EXPORT_FIELDS", {"a": "A"}, {"a": "A"}),
    ("DOWNLOAD_SLOTS", {"a.test": {"delay": 2}}, {"a.test": {"delay": 2.0}}),
]
BAD = [
    ("COOKIES_ENABLED", "maybe"),
    ("COOKIES_ENABLED", 2),
    ("COOKIES_ENABLED", None),
    ("CONCURRENT_REQUESTS", 0),
    ("LOG_FORMAT", "%(nosuch)s %(message)s"),
    ("LOG_FORMAT", "%(message)d"),
    ("LOG_FORMAT", "no field at all"),
    ("LOG_FORMAT", 5),
    ("CONCURRENT_REQUESTS", 1.5),
    ("CONCURRENT_REQUESTS", True),
    ("CONCURRENT_REQUESTS", "many"),
    ("DOWNLOAD_DELAY", -1),
    ("DOWNLOAD_DELAY", float("nan")),
    ("DOWNLOAD_TIMEOUT", float("inf")),
    ("RETRY_HTTP_CODES", [999]),
    ("RETRY_HTTP_CODES", 500),
    ("RETRY_HTTP_CODES", "[500"),
    ("SPIDERS", ["quotes"]),
    ("SPIDERS", ["spiders/a.py A"]),
    ("SPIDERS", [3]),
    ("PIPELINES", {"p.A": "soon"}),
    ("DEFAULT_REQUEST_HEADERS", ["Accept"]),
    ("LOG_LEVEL", "LOUD"),
    ("LOG_LEVEL", 17),
    ("LOG_FILE", 3),
    ("SCHEDULER_QUEUE_CLASS", "random"),
    ("USER_AGENT", None),
    ("FEEDS", {"a.xml": {}}),
    ("FEEDS", {"a.csv": {"fieldz": []}}),
    ("FEEDS", {"s3://bucket/a.csv": {}}),
    ("FEEDS", ["a.csv"]),
    ("FEEDS", {"a.csv": {"encoding": "klingon"}}),
    ("FEEDS", {"a.csv": {"overwrite": "perhaps"}}),
    ("DOWNLOAD_SLOTS", {"a.test": {"pause": 2}}),
    ("DOWNLOAD_SLOTS", {"a.test": 2}),
]


@pytest.mark.parametrize(("name", "given", "normal"), GOOD)
def test_a_good_value_becomes_its_normal_form(name, given, normal):
    value = OPTIONS[name].read(given)
    assert value == normal
    assert type(value) is type(normal)


@pytest.mark.parametrize(("name", "given"), BAD)
def test_a_wrong_value_is_refused(name, given):
    with pytest.raises((ValueError, TypeError)):
        OPTIONS[name].read(given)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_setting_has_a_sentence_a_group_and_a_default_that_its_own_check_accepts(name):
    option = OPTIONS[name]
    assert option.help[0].isupper() and option.help[-1] in ".}"
    assert option.group
    assert option.read(option.default) == option.default


def test_no_two_settings_share_a_name():
    names = [name for option, o in OPTIONS.items() for name in (option, *o.aliases)]
    assert len(names) == len(set(names)) == len(CANONICAL)


def test_no_setting_is_so_near_to_another_that_one_could_be_a_slip_of_the_other():
    assert nearest("MEMUSAGE_LIMIT_MBS", OPTIONS) is None
    assert not [(a, b) for a in OPTIONS for b in OPTIONS if a < b and distance(a, b) <= 1]


@pytest.mark.parametrize(
    ("left", "right", "edits"),
    [("", "", 0), ("a", "", 1), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "axc", 1), ("kitten", "sitting", 3)],
)
def test_distance_counts_insertions_deletions_replacements_and_swaps(left, right, edits):
    assert distance(left, right) == distance(right, left) == edits


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("CONCURENT_REQUESTS", "CONCURRENT_REQUESTS"),
        ("ROEL", "ROLE"),
        ("PIPLINE", "PIPELINES"),
        ("FEED", "FEEDS"),
        ("DB", None),
        ("MODE", None),
        ("MYSQL_HOST", None),
        ("PROXY", "PROXY"),
    ],
)
def test_a_slip_finds_the_word_that_was_meant_and_short_words_are_left_alone(slip, meant):
    assert nearest(slip, OPTIONS) == meant


def test_what_an_option_wants_is_said_with_its_unit():
    assert OPTIONS["DOWNLOAD_DELAY"].wants == "a number of seconds, 0 or more"
    assert OPTIONS["LEASE_SECONDS"].wants == "a number of seconds from 1 to 3600"
    assert options.optional(options.text()).wants == "a text, or None"
