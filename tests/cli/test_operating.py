"""The operator's commands on a crawl in a real Redis: in every state, here and from another machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from scrapy_plus.cli import main
from scrapy_plus.frontier.base import Page, Record
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.codec import encode
from scrapy_plus.http.request import Request
from scrapy_plus.http.url import site
from scrapy_plus.rules.fingerprint import fingerprint
from scrapy_plus.rules.lifecycle import State
from tests.frontier.conftest import Worker, own_redis, redis_client  # noqa: F401

_projects = count()
URL = "http://shop.test/%s"


def record(name: str) -> Record:
    request = Request(URL % name)
    return Record(fingerprint(request), site(request.url), encode(request))


class Crawl:
    """A crawl of a project that is not here, and the commands that are given for it."""

    def __init__(self, client, socket: str) -> None:
        self.project = f"op{next(_projects)}"
        self.frontier = RedisFrontier(client, f"{{{self.project}:shop}}", retry_seconds=5.0)
        self.worker = Worker(self.frontier)
        self._words = ["-s", f"REDIS_URL=unix://{socket}", "-s", f"PROJECT_NAME={self.project}"]

    def say(self, *words: str, **options: object) -> Result:
        return CliRunner().invoke(main, [*words, *self._words], **options)

    def in_every_state(self) -> None:
        """a is done, b dead, c delayed, d leased, e ready."""
        self.frontier.seed(0, 5, [record(name) for name in "abcde"])
        a, b, c, d = self.worker.lease(4)
        self.worker.ack(a)
        self.frontier.ack([Page(b.id, b.token, reason="HTTP 500 at http://u:hush@shop.test/", status=500)])
        self.frontier.retry(c.id, c.token, 90.0)


@pytest.fixture
def crawl(own_redis, redis_client, tmp_path, monkeypatch) -> Iterator[Crawl]:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    made = Crawl(redis_client, own_redis.socket)
    yield made
    made.frontier.flush(force=True)


# -- status, why -------------------------------------------------------------------------------------------------------


def test_status_tells_where_everything_stands_for_people_and_for_programs(crawl):
    crawl.in_every_state()
    crawl.frontier.beat("w", {"role": "slave", "host": "h", "pid": "7", "leased": "1", "pages_per_minute": "90"})
    lines = crawl.say("status").stdout.splitlines()
    assert lines[0] == "shop: running, seeding, 5 so far, 90 pages/min"
    assert lines[1] == "  1 queued, 1 leased, 1 delayed, 1 dead, 5 seen, 1 done"
    assert lines[2].startswith("  site http://shop.test:80: 1 queued, 1 in flight")
    assert lines[3].startswith("  node w (slave, h, pid 7): heard of ") and "1 leased" in lines[3]
    [told] = [json.loads(line) for line in crawl.say("status", "--json").stdout.splitlines()]
    places = ("queued", "leased", "delayed", "dead", "seen", "done")
    assert [told[place] for place in places] == [1, 1, 1, 1, 5, 1]
    assert (told["spider"], told["state"], told["nodes"][0]["pid"]) == ("shop", "running", 7)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a", "done: "),
        ("b", "dead since 20"),
        ("c", "delayed: tried again in 1:"),
        ("d", "leased: node w works on it"),
        ("e", "ready: it waits"),
        ("f", "new: the crawl never met it"),
    ],
)
def test_why_says_where_a_url_stands_in_every_state(crawl, name, said):
    crawl.in_every_state()
    answer = crawl.say("why", URL % name)
    assert answer.exit_code == 0 and answer.stdout.startswith(f"{URL % name}: {said}")
    assert "hush" not in answer.stdout
    assert json.loads(crawl.say("why", URL % name, "--json").stdout)["state"] == said.partition(":")[0].split()[0]


def test_why_takes_any_spelling_of_a_url_and_ids_too(crawl):
    crawl.in_every_state()
    assert "done" in crawl.say("why", "HTTP://SHOP.test:80/%61").stdout
    assert "dead" in crawl.say("why", record("b").id.hex()).stdout
    wrong = crawl.say("why", "mailto:a@b.test")
    assert wrong.exit_code == 2 and "not an http(s) URL" in wrong.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://other.test/", "offsite: other.test is neither one of the allowed_domains"),
        (URL % "list.PDF", "extension: .pdf is one of DENIED_EXTENSIONS"),
        (URL % ("x" * 200), "characters are more than URLLENGTH_LIMIT (150)"),
        (URL % "f", None),
    ],
)
def test_why_says_of_an_unknown_url_whether_links_to_it_are_followed(crawl, tmp_path, url, said):
    (tmp_path / "settings.py").write_text(
        "SPIDERS = ['spiders.Shop']\nDENIED_EXTENSIONS = ['pdf']\nURLLENGTH_LIMIT = 150\n"
    )
    (tmp_path / "spiders.py").write_text(
        "from scrapy_plus import Spider\n\n\n"
        "class Shop(Spider):\n    name = 'shop'\n    allowed_domains = ['shop.test']\n"
    )
    crawl.in_every_state()
    told = crawl.say("why", url).stdout
    assert ("no link to it is followed: " in told) == (said is not None) and (said or "") in told
    assert (said or "None") in str(json.loads(crawl.say("why", url, "--json").stdout)["out_of_bounds"])


# -- set, drain -------------------------------------------------------------------------------------------------------


def test_set_changes_the_pace_of_all_sites_until_it_is_reset(crawl):
    crawl.in_every_state()
    answer = crawl.say("set", "--delay", "2.5", "--concurrency", "4")
    assert answer.exit_code == 0 and "shop: all sites: one every 2.5 s, 4 at a time" in answer.stderr
    lines = crawl.say("status").stdout.splitlines()
    assert "  set for all sites: one every 2.5 s, 4 at a time" in lines
    assert any("site http://shop.test:80: 1 queued, 1 in flight of 4, one every 2.5 s" in line for line in lines)
    assert "all sites: no delay, 4 at a time" in crawl.say("set", "--delay", "0").stderr
    assert "all sites: as the settings say" in crawl.say("set", "--reset").stderr
    assert json.loads(crawl.say("status", "--json").stdout)["set_concurrency"] is None


def test_set_changes_the_pace_of_one_site_and_leaves_the_others(crawl):
    crawl.in_every_state()
    assert "http://shop.test:80: one every 3 s" in crawl.say("set", "--site", URL % "any", "--delay", "3").stderr
    crawl.say("set", "--delay", "1")
    assert crawl.frontier.site_facts("http://shop.test:80").pace.delay_seconds == 3
    assert crawl.frontier.site_facts("http://other.test:80").pace.delay_seconds == 1
    crawl.say("set", "--site", URL % "any", "--reset")
    assert crawl.frontier.site_facts("http://shop.test:80").pace.delay_seconds == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to set: --delay SECONDS, --concurrency N or --reset"),
        (["--site", "http://shop.test/"], "say what to set"),
        (["--delay", "-1"], "-1.0 is not in the range"),
        (["--site", "shop", "--delay", "1"], "'shop'"),
    ],
)
def test_set_says_what_is_wrong_and_changes_nothing(crawl, words, said):
    crawl.in_every_state()
    answer = crawl.say("set", *words)
    assert answer.exit_code == 2 and said in answer.stderr
    assert crawl.frontier.overridden_pace() == (None, None)


def test_drain_asks_the_node_that_a_beginning_of_its_name_tells(crawl):
    crawl.in_every_state()
    for name in ("abc1", "abd2", "xyz"):
        crawl.frontier.beat(name, {"host": "h", "pid": "7"})
    answer = crawl.say("drain", "abd")
    assert answer.exit_code == 0 and "shop: abd2 (h, pid 7) ends when its pages in flight are finished" in answer.stderr
    assert [crawl.frontier.beat(name, {}) for name in ("abc1", "abd2", "xyz")] == [False, True, False]
    for name, said in (("ab", "several nodes begin with 'ab'"), ("q", "no node begins with 'q'; there are: ")):
        answer = crawl.say("drain", name)
        assert answer.exit_code == 2 and said in answer.stderr


# -- pause, resume, stop -----------------------------------------------------------------------------------------------


def test_a_paused_crawl_hands_nothing_out_until_it_is_resumed(crawl):
    crawl.frontier.offer([record("a")])
    assert crawl.say("pause").exit_code == 0
    assert crawl.worker.lease() == []
    assert "paused already" in crawl.say("pause").stderr
    assert crawl.say("resume").exit_code == 0
    assert len(crawl.worker.lease()) == 1


def test_a_finished_crawl_cannot_be_paused_or_resumed(crawl):
    crawl.frontier.seed(0, 0, [], finished=True)
    assert crawl.frontier.finish()
    for word in ("pause", "resume", "stop"):
        answer = crawl.say(word)
        assert answer.exit_code == 2 and f"is finished: there is nothing to {word}" in answer.stderr
    assert crawl.frontier.state() == "finished"


def test_a_stopped_crawl_says_so_and_can_be_resumed(crawl):
    assert crawl.say("stop").exit_code == 0
    assert crawl.frontier.lease("w", 0, 1).state == "stopped"
    crawl.say("resume")
    assert crawl.frontier.state() == "running"


# -- dead, forget ------------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_and_shown_without_secrets(crawl):
    crawl.in_every_state()
    line = crawl.say("dead", "list").stdout
    assert line == f"{record('b').id.hex()}  1 tries  500  HTTP 500 at http://u:***@shop.test/  {URL % 'b'}\n"
    for word in (URL % "b", record("b").id.hex()):
        told = json.loads(crawl.say("dead", "show", word).stdout)
        assert (told["url"], told["status"], told["request"]["u"]) == (URL % "b", 500, URL % "b")
    assert crawl.say("dead", "show", URL % "a").exit_code == 2


@pytest.mark.parametrize("words", [["--all"], ["--reason", "HTTP 500"], [URL % "b"], [record("b").id.hex()]])
def test_dead_letters_are_revived_as_they_are_named(crawl, words):
    crawl.in_every_state()
    assert "shop: 1 queued again" in crawl.say("dead", "revive", *words).stderr
    assert crawl.frontier.locate(record("b").id).state is State.READY


@pytest.mark.parametrize("words", [["--reason", "no such"], [URL % "a"], [URL % "f"]])
def test_what_is_not_dead_is_not_revived(crawl, words):
    crawl.in_every_state()
    assert "shop: 0 queued again" in crawl.say("dead", "revive", *words).stderr


def test_dead_letters_are_purged_only_when_somebody_is_sure(crawl):
    crawl.in_every_state()
    assert crawl.say("dead", "purge", "--all", input="n\n").exit_code == 2
    assert crawl.frontier.counts().dead == 1
    assert crawl.say("dead", "purge", "--yes").exit_code == 2, "it must be said which"
    assert "1 thrown away" in crawl.say("dead", "purge", "--all", "--yes").stderr
    assert crawl.frontier.counts().dead == 0 and crawl.frontier.audit() == []
    assert "0 thrown away" in crawl.say("dead", "purge", URL % "a", "--yes").stderr
    assert crawl.frontier.locate(record("a").id).state is State.DONE


def test_what_is_forgotten_is_crawled_when_it_is_met_again(crawl):
    crawl.in_every_state()
    answer = crawl.say("forget", URL % "a", URL % "e", URL % "f").stderr.splitlines()
    assert answer == [
        f"{URL % 'a'}: forgotten; it was done",
        f"{URL % 'e'}: nothing to forget, it is ready, and will be crawled",
        f"{URL % 'f'}: nothing to forget, it was never seen",
    ]
    assert crawl.frontier.offer([record("a"), record("e")]) == [True, False]


# -- flush, doctor -----------------------------------------------------------------------------------------------------


def test_flush_tells_what_there_is_and_asks(crawl):
    crawl.frontier.offer([record("a")])
    answer = crawl.say("flush", input="n\n")
    assert answer.exit_code == 2 and "1 ready, 0 leased" in answer.stderr
    assert crawl.frontier.counts().ready == 1
    assert crawl.say("flush", "--yes").exit_code == 0
    assert crawl.frontier.counts().seen == 0


def test_flush_is_refused_while_a_node_lives_unless_forced(crawl):
    crawl.frontier.beat("w", {})
    crawl.frontier.offer([record("a")])
    answer = crawl.say("flush", "--yes")
    assert answer.exit_code == 2 and "1 nodes live" in answer.stderr and "--force" in answer.stderr
    assert crawl.frontier.counts().ready == 1
    assert crawl.say("flush", "--yes", "--force").exit_code == 0


def test_doctor_finds_what_is_broken_and_mends_it(crawl, redis_client):  # noqa: F811
    crawl.in_every_state()
    assert crawl.say("doctor").stdout == "shop: the counts agree\n"
    assert crawl.say("doctor", "--whole").exit_code == 0
    redis_client.zrem(crawl.frontier.keys.delayed, record("c").id)
    redis_client.zadd(crawl.frontier.keys.dead, {record("e").id: 1})
    assert crawl.say("doctor").exit_code == 1
    broken = crawl.say("doctor", "--whole")
    assert broken.exit_code == 1 and record("c").id.hex() in broken.stdout
    assert crawl.say("doctor", "--whole", "--repair").exit_code == 0


# -- which crawl -------------------------------------------------------------------------------------------------------


def test_commands_say_nothing_of_how_the_crawl_is_run(crawl, redis_client):  # noqa: F811
    before = redis_client.hgetall(crawl.frontier.keys.meta)
    crawl.say("status", "-s", "DOWNLOAD_DELAY=9", "-s", "LEASE_SECONDS=99", "-s", "SCHEDULER_QUEUE_CLASS=lifo")
    assert redis_client.hgetall(crawl.frontier.keys.meta) == before


@pytest.mark.parametrize("command", [["status"], ["pause"], ["why", URL % "a"], ["dead", "list"], ["doctor"]])
def test_a_crawl_that_is_not_there_is_told_in_one_line_and_not_made(crawl, command, redis_client):  # noqa: F811
    answer = crawl.say(*command, "--spider", "other")
    assert answer.exit_code == 2 and f"has no crawl {{{crawl.project}:other}}" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert not redis_client.exists(f"{{{crawl.project}:other}}:meta")


def test_of_several_crawls_one_must_be_named(crawl, redis_client):  # noqa: F811
    RedisFrontier(redis_client, f"{{{crawl.project}:books}}")
    answer = crawl.say("pause")
    assert answer.exit_code == 2 and "books, shop" in answer.stderr
    told = crawl.say("status", "--json").stdout.splitlines()
    assert {json.loads(line)["spider"] for line in told} == {"books", "shop"}
    assert crawl.say("pause", "--spider", "books").exit_code == 0


def test_a_project_at_hand_names_the_crawl(crawl, tmp_path: Path, own_redis):  # noqa: F811
    (tmp_path / "spiders.py").write_text("from scrapy_plus import Spider\nclass S(Spider):\n    name = 'shop'\n")
    lines = ["SPIDERS = ['spiders.S']", f"PROJECT_NAME = {crawl.project!r}", f"REDIS_URL = 'unix://{own_redis.socket}'"]
    (tmp_path / "settings.py").write_text("\n".join(lines))
    crawl.in_every_state()
    invoke: Callable[..., Result] = CliRunner().invoke
    assert "1 queued" in invoke(main, ["status"]).stdout
