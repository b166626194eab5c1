"""From the settings to one Redis, without asking anybody."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from scrapy_plus.conf.layers import OPTIONS
from scrapy_plus.conf.options import Unfit
from scrapy_plus.conf.redis_address import (
    RedisAddress,
    Secret,
    parse_redis_url,
    redacted,
    redis_address,
)
from scrapy_plus.conf.redis_keys import before_tag, items_key, project_name
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.errors import SettingsError


def address(**given):
    return redis_address(load_settings(None, overrides=given, environ={}).as_dict())


def problem(**given) -> str:
    with pytest.raises(SettingsError) as caught:
        address(**given)
    [line] = caught.value.problems
    return line


# -- URLs --------------------------------------------------------------------------------------------------------------

SENTINELS = (("a", 26_379), ("::1", 5000))
CA = (("ssl_ca_certs", "/etc/ca.pem"), ("ssl_check_hostname", False))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://localhost:6379/0", RedisAddress()),
        (
            "rediss+sentinel://u:p%40@a,[::1]:5000/my%2Fmaster/2",
            RedisAddress("a", 26_379, 2, "", True, "sentinel", SENTINELS, "my/master", "u", "p@"),
        ),
        ("redis+cluster://b,c:7001", RedisAddress("b", found_by="cluster", nodes=(("b", 6379), ("c", 7001)))),
        ("redis://", RedisAddress()),
        ("REDIS://Example.org", RedisAddress("example.org")),
        ("redis://:s%40cr%2Ft@h:1/2", RedisAddress("h", 1, 2, password="s@cr/t")),
        ("redis://me:pw@[::1]:7000", RedisAddress("::1", 7000, username="me", password="pw")),
        ("redis://h?db=4&password=pw", RedisAddress("h", db=4, password="pw")),
        ("rediss://h:6380", RedisAddress("h", 6380, tls=True)),
        (
            "rediss://h?ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=false",
            RedisAddress("h", tls=True, options=CA),
        ),
        ("redis://h?socket_timeout=2.5", RedisAddress("h", options=(("socket_timeout", 2.5),))),
        ("unix:///run/redis.sock", RedisAddress(socket_path="/run/redis.sock")),
        ("unix://:pw@/run/my%20redis.sock?db=3", RedisAddress(socket_path="/run/my redis.sock", db=3, password="pw")),
    ],
)
def test_a_url_says_where_the_redis_is_and_how_to_log_in(url, expected):
    assert parse_redis_url(url) == expected
    assert parse_redis_url(expected.url).place == expected.place
    assert parse_redis_url(expected.url).password == expected.password


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:6379", "must be a URL such as redis://"),
        ("http://h:1", "must be a URL such as redis://"),
        ("redis+sentinels://h/mymaster", "is no URL of a Redis"),
        ("unix+cluster:///run/s", "must be a URL such as redis://"),
        ("redis+sentinel://:secret@h:26379", "does not say which master"),
        ("redis+sentinel:///m", "names no host"),
        ("redis+cluster://", "names no host"),
        ("redis+cluster://:secret@h:1/3", "a cluster has one database, 0"),
        ("redis://:secret@a:1,b:2", "several hosts are for redis+sentinel:// or redis+cluster://"),
        ("redis://h:port", "is no URL of a Redis"),
        ("redis://h:70000", "is no URL of a Redis"),
        ("redis://:sec/ret@h:1", "in the password is written %2F"),
        ("redis://:sec#ret@h:1", "in the password is written %2F"),
        ("redis://:secret@h/first", "stands the number of the database"),
        ("redis://:secret@h?db=x", "db must be a whole number"),
        ("redis://:secret@h?socket_timout=1", "'socket_timout' is not among host, port"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs must be one of 'required'"),
        ("unix://run/redis.sock", "with three slashes"),
        ("unix://", "with three slashes"),
    ],
)
def test_a_url_that_is_none_is_refused_without_showing_the_password(url, words):
    with pytest.raises(Unfit) as caught:
        parse_redis_url(url)
    assert words in str(caught.value)
    assert "sec" not in str(caught.value)
    assert words in problem(REDIS_URL=url)


@pytest.mark.parametrize("path", ["/tmp/a b#c?.sock", "/tmp/ünï/s.sock"])
def test_the_url_of_an_address_is_read_back_to_the_same(path):
    for one in (RedisAddress(socket_path=path, db=1), RedisAddress("h", password="p:/?#@%", username="a@b")):
        assert parse_redis_url(one.url) == one


# -- nothing secret is shown -------------------------------------------------------------------------------------------


def test_an_address_shows_neither_user_nor_password():
    one = parse_redis_url("redis://someone:hush@h:1/2?ssl_password=hush")
    assert f"{one}" == "redis://h:1/2"
    assert "hush" not in repr(one) and "someone" not in repr(one)
    assert "hush" in one.url


def test_a_list_of_settings_shows_no_password():
    settings = load_settings(
        None,
        overrides={
            "REDIS_URL": "redis://:hush@h",
            "REDIS_PASSWORD": "hush",
            "REDIS_PARAMS": {"password": "hush"},
            "REDIS_SET_PASSWORD": 12345,
        },
        environ={},
    )
    shown = repr(settings.as_dict())
    assert "hush" not in shown and "12345" not in shown
    assert "redis://***@h" in shown
    assert settings.REDIS_PASSWORD == "hush" and settings.REDIS_SET_PASSWORD == "12345"
    assert repr(copy.deepcopy(settings.REDIS_PASSWORD)) == "'***'"


def test_what_is_hidden_of_a_url_is_rather_too_much():
    assert redacted("redis://a:b@c@h:1/0?password=x&db=1") == "redis://***@h:1/0?password=***&db=1"
    assert redacted("rediss://token@h") == "rediss://***@h"
    assert (redacted("plain"), redacted("")) == ("***", "")
    assert repr(Secret("redis://h")) == "'redis://h'"


@pytest.mark.parametrize(
    "given",
    [
        {"REDIS_PASSWORD": ["hush"]},
        {"REDIS_PARAMS": "hush"},
        {"REDIS_PARAMS": ["hush"]},
        {"REDIS_PARAMS": {"password": ["hush"]}},
        {"REDIS_HOST": "redis://:hush@h"},
        {"REDIS_URL": "redis://:hush@h:port"},
    ],
)
def test_a_wrong_value_that_may_be_secret_is_not_shown(given):
    assert "hush" not in problem(**given)


# -- one place ---------------------------------------------------------------------------------------------------------


def test_without_a_setting_there_is_no_address_so_the_embedded_redis_is_meant():
    assert address() == (None, [])
    assert address(REDIS_BACKUP_NAME="x", REDIS_PARAMS={"socket_timeout": 3}, REDIS_URL="") == (None, [])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"REDIS_HOST": "h"}, RedisAddress("h")),
        ({"REDIS_PORT": "6380"}, RedisAddress(port=6380)),
        ({"REDIS_DB": 2, "REDIS_PASSWORD": "pw"}, RedisAddress(db=2, password="pw")),
        ({"REDIS_BACKUP_HOST": "h", "REDIS_BACKUP_DB": 1}, RedisAddress("h", db=1)),
        ({"REDIS_HOST": "h", "REDIS_QUEUE_HOST": "h", "REDIS_SET_HOST": "H"}, RedisAddress("H")),
        ({"REDIS_HOST": "h", "REDIS_PORT": 1, "REDIS_SET_HOST": "h"}, RedisAddress("h", 1)),
        ({"REDIS_QUEUE_HOST": "localhost", "REDIS_SET_HOST": "127.0.0.1"}, RedisAddress("127.0.0.1")),
        ({"REDIS_QUEUE_PASSWORD": "pw", "REDIS_SET_HOST": "localhost"}, RedisAddress(password="pw")),
        ({"REDIS_PARAMS": {"unix_socket_path": "/s", "db": 1}}, RedisAddress(socket_path="/s", db=1)),
        ({"REDIS_PARAMS": {"unix_socket_path": "/s"}, "REDIS_HOST": "h"}, RedisAddress("h")),
        ({"REDIS_PARAMS": '{"host": "h", "ssl": true}'}, RedisAddress("h", tls=True)),
        (
            {"REDIS_HOST": "h", "REDIS_PARAMS": {"socket_timeout": 3}},
            RedisAddress("h", options=(("socket_timeout", 3),)),
        ),
    ],
)
def test_parts_of_an_address_come_together(given, expected):
    assert address(**given) == (expected, [])


@pytest.mark.parametrize(
    "given",
    [
        {"REDIS_BACKUP_HOST": "a", "REDIS_QUEUE_HOST": "b"},
        {"REDIS_HOST": "a", "REDIS_SET_HOST": "b"},
        {"REDIS_HOST": "a", "REDIS_SET_PORT": 1},
        {"REDIS_QUEUE_DB": 0, "REDIS_SET_DB": 1},
        {"REDIS_PARAMS": {"unix_socket_path": "/s"}, "REDIS_SET_HOST": "b"},
    ],
)
def test_two_places_for_one_crawl_are_refused_with_the_reason(given):
    line = problem(**given)
    assert "change in one atomic step, which no two servers or databases share" in line
    assert "REDIS_" in line and "://" in line


def test_two_passwords_for_one_place_are_refused_and_not_shown():
    line = problem(REDIS_PASSWORD="one-hush", REDIS_BACKUP_PASSWORD="two-hush")
    assert "different passwords for redis://localhost:6379" in line and "hush" not in line


@pytest.mark.parametrize(
    ("others", "used", "is_warned"),
    [
        ({}, RedisAddress("h", 1), False),
        ({"REDIS_PASSWORD": "pw", "REDIS_DB": 3}, RedisAddress("h", 1, 3, password="pw"), False),
        ({"REDIS_HOST": "h", "REDIS_PORT": 1, "REDIS_PASSWORD": "pw"}, RedisAddress("h", 1, password="pw"), False),
        ({"REDIS_BACKUP_HOST": "h"}, RedisAddress("h", 1), False),
        ({"REDIS_HOST": "other", "REDIS_PASSWORD": "pw"}, RedisAddress("h", 1), True),
        ({"REDIS_QUEUE_HOST": "other"}, RedisAddress("h", 1), True),
        ({"REDIS_QUEUE_DB": 5}, RedisAddress("h", 1), True),
    ],
)
def test_the_url_wins_and_what_contradicts_it_is_said(others, used, is_warned):
    found, notes = address(REDIS_URL="redis://h:1", **others)
    assert found == used
    assert [note.startswith("REDIS_URL (redis://h:1) is used, not REDIS_") for note in notes] == [True] * is_warned


def test_a_url_of_a_socket_wins_over_a_host():
    found, [note] = address(REDIS_URL="unix:///run/r.sock", REDIS_HOST="h")
    assert found == RedisAddress(socket_path="/run/r.sock")
    assert note == "REDIS_URL (unix:///run/r.sock) is used, not REDIS_HOST/PORT/DB (redis://h:6379); keep one of them"


def test_keywords_of_the_client_that_are_decided_here_are_said_to_have_no_effect():
    found, notes = address(REDIS_PARAMS={"host": "h", "decode_responses": True, "retry_on_timeout": True})
    assert found == RedisAddress("h")
    assert notes == [f"REDIS_PARAMS: {name} has no effect here" for name in ("decode_responses", "retry_on_timeout")]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"REDIS_HOST": "h:6379"}, "the port is a setting of its own"),
        ({"REDIS_HOST": "redis://h"}, "a URL belongs in REDIS_URL"),
        ({"REDIS_HOST": "a b"}, "must be the name of a host, or None"),
        ({"REDIS_PORT": 0}, "must be a whole number from 1 to 65535"),
        ({"REDIS_DB": -1}, "must be a whole number, 0 or more"),
        ({"REDIS_PARAMS": {"hots": "h"}}, "REDIS_PARAMS: 'hots' is not among host"),
        ({"REDIS_PARAMS": {"port": "x"}}, "REDIS_PARAMS: port must be a whole number"),
        ({"REDIS_BACKUP_NAME": "a{b}"}, "must be a text without braces"),
        ({"REDIS_URI": "redis://h"}, "did you mean REDIS_URL?"),
        ({"REDIS_HOSTS": "h"}, "did you mean REDIS_HOST?"),
        ({"ITEMS_AS": "set"}, "must be one of 'stream', 'list'"),
        ({"REDIS_RETRY_SECONDS": -1}, "must be a number of seconds, 0 or more"),
    ],
)
def test_a_wrong_part_says_what_it_should_be(given, words):
    assert words in problem(**given)


def test_the_settings_of_redis_stand_together_at_the_end_of_the_list():
    groups = [option.group for option in OPTIONS.values()]
    assert set(groups[-groups.count("Redis") :]) == {"Redis"}


# -- names -------------------------------------------------------------------------------------------------------------


def test_an_unset_project_name_is_the_folder_s_only_where_nobody_else_is():
    assert project_name(None, Path("/home/me/shop"), is_embedded=True) == "shop"
    assert project_name(None, Path("/home/me/a:{b}"), is_embedded=True) == "a__b_"
    assert project_name("books", Path("/home/me/shop"), is_embedded=False) == "books"
    with pytest.raises(SettingsError, match="PROJECT_NAME is not set, .* PROJECT_NAME = 'shop' in settings.py"):
        project_name(None, Path("/home/me/shop"), is_embedded=False)
    with pytest.raises(SettingsError, match="PROJECT_NAME is not set"):
        project_name("", None, is_embedded=True)


def names(**given):
    return before_tag(load_settings(None, overrides=given, environ={}).as_dict())


def test_one_prefix_stands_before_all_keys_of_a_crawl():
    assert names() == ("", [])
    assert names(REDIS_BACKUP_NAME="mine") == names(REDIS_SET_NAME="mine:") == ("mine:", [])
    assert names(REDIS_BACKUP_NAME="b", REDIS_SET_NAME="b") == ("b:", [])
    prefix, [note] = names(REDIS_BACKUP_NAME="b", REDIS_QUEUE_NAME="q")
    assert prefix == "b:" and note.startswith("REDIS_QUEUE_NAME has no effect")


def test_the_items_lie_beside_the_crawl_or_where_the_setting_says():
    assert items_key(None, prefix="{shop:books}", spider="books") == "{shop:books}:items"
    assert items_key("%(spider)s:items", prefix="{shop:books}", spider="books") == "books:items"
