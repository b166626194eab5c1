"""run, crawl, runspider, list: what they print, what they leave, and how they end."""

from __future__ import annotations

import json

import pytest

from .conftest import python


def lines(text: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in text.splitlines()]


# -- how a crawl ends --------------------------------------------------------------------------------------------------


def test_a_finished_crawl_exits_with_0_and_all_named_spiders_ran(cli, project):
    done = cli("run", "first", "second", "-O", "-", cwd=project)
    assert done.returncode == 0, done.stderr
    assert sorted(item["spider"] for item in lines(done.stdout)) == ["first", "second"]


def test_a_spider_that_is_named_twice_runs_once(cli, project):
    done = cli("run", "first", "first", "-O", "-", cwd=project)
    assert done.returncode == 0, done.stderr
    assert [item["spider"] for item in lines(done.stdout)] == ["first"]


def test_dead_letters_give_3_and_all_spiders_run_without_names(cli, project):
    done = cli("run", "-O", "-", cwd=project)
    assert done.returncode == 3, done.stderr
    assert sorted(item["spider"] for item in lines(done.stdout)) == ["first", "second"]
    assert "no such luck" in done.stderr


def test_an_exception_nobody_expected_gives_1_and_its_traceback(cli, project):
    (project / "all_spiders.py").write_text("1 / 0\n", "utf-8")
    done = cli("run", cwd=project)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "all_spiders.py" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "thrid"], "no spider 'thrid'; there are: broken, first, second"),
        (["crawl"], "Missing argument 'NAME'"),
        (["run", "master", "-s", "REDIS_URL=redis://127.0.0.1:1"], "PROJECT_NAME is not set"),
        (["run", "slave", "first", "-s", "REDIS_URL=redis://127.0.0.1:1", "-s", "PROJECT_NAME=x"], "127.0.0.1:1"),
        (["run", "-s", "DEPTH_LIMIT"], "'DEPTH_LIMIT' is not of the form NAME=VALUE"),
        (["run", "-s", "DEPHT_LIMIT=1"], "did you mean DEPTH_LIMIT?"),
        (["run", "-s", "DEPTH_LIMIT=deep"], "DEPTH_LIMIT = 'deep' (command line): must be a whole number, 0 or more"),
        (["run", "-o", "items.xml"], "'xml' is no format; there are jsonl, json and csv"),
        (["run", "-L", "LOUD"], "LOG_LEVEL = 'LOUD' (command line): must be one of"),
        (["run", "--what"], "No such option"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_wrong_usage_gives_2_and_a_line_without_traceback(cli, project, words, told):
    done = cli(*words, cwd=project)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_all_mistakes_are_told_at_once(cli, project):
    with (project / "settings.py").open("a", encoding="utf-8") as file:
        file.write("DOWNLOAD_DELAY = 'fast'\nPIPLINES = []\n")
    done = cli("run", "-s", "DEPTH_LIMIT=deep", cwd=project, SCRAPY_PLUS_COOKIES_ENABLED="maybe")
    assert done.returncode == 2
    assert [line.split()[1] for line in done.stderr.splitlines()] == [
        "DOWNLOAD_DELAY",
        "PIPLINES",
        "COOKIES_ENABLED",
        "DEPTH_LIMIT",
    ]


def test_a_settings_file_with_an_error_gives_2_and_its_line(cli, project):
    (project / "settings.py").write_text("A = 1\nB = A.nothing\n", "utf-8")
    done = cli("run", cwd=project)
    assert done.returncode == 2
    assert f"{project / 'settings.py'}, line 2: AttributeError" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["run"], ["crawl", "first"], ["list"]])
def test_outside_a_project_it_is_said_what_to_do(cli, words):
    done = cli(*words)
    assert done.returncode == 2
    assert "scrapy-plus startproject NAME" in done.stderr and "scrapy-plus runspider FILE.py" in done.stderr


def test_what_several_spiders_log_is_not_told_of_each(cli, project):
    said = cli("run", "first", "broken", cwd=project).stderr
    assert said.count("ERROR: 1") == 1 and "log of all spiders" in said.splitlines()[-2]
    alone = cli("run", "broken", cwd=project).stderr
    assert "log of all spiders" not in alone and "ERROR: 1" in alone


# -- options -----------------------------------------------------------------------------------------------------------


def test_arguments_reach_the_spider_and_settings_the_project(cli, project):
    assert lines(cli("crawl", "first", "-O", "-", "-a", "word=a=b", cwd=project).stdout) == [
        {"spider": "first", "word": "a=b"}
    ]
    assert lines(cli("crawl", "first", "-O", "-", "-s", "GREETING=hi", cwd=project).stdout) == [
        {"spider": "first", "word": "hi"}
    ]
    assert lines(cli("crawl", "first", "-O", "-", cwd=project, SCRAPY_PLUS_GREETING="ho").stdout) == [
        {"spider": "first", "word": "ho"}
    ]


def test_only_items_go_to_standard_output_when_they_are_written_there(cli, project):
    done = cli("crawl", "first", "-o", "-", cwd=project)
    assert lines(done.stdout) == [{"spider": "first", "word": "hello"}]
    assert "printed by a spider" in done.stderr


def test_small_o_appends_and_large_o_writes_anew(cli, project):
    for _ in range(2):
        assert cli("crawl", "first", "-o", "more.jsonl", "-O", "anew.jsonl", cwd=project).returncode == 0
    assert len(lines((project / "more.jsonl").read_text("utf-8"))) == 2
    assert len(lines((project / "anew.jsonl").read_text("utf-8"))) == 1


def test_a_format_may_be_named_behind_a_colon(cli, project):
    assert cli("crawl", "first", "-O", "items.txt:csv", cwd=project).returncode == 0
    assert (project / "items.txt").read_text("utf-8").splitlines() == ["spider,word", "first,hello"]


def test_files_of_the_settings_are_written_as_well(cli, project):
    with (project / "settings.py").open("a", encoding="utf-8") as file:
        file.write("FEEDS = {'always.jsonl': {}}\n")
    assert cli("crawl", "first", "-O", "now.jsonl", cwd=project).returncode == 0
    assert (project / "always.jsonl").read_text("utf-8") == (project / "now.jsonl").read_text("utf-8") != ""


def test_files_of_the_settings_can_be_switched_off_for_one_run(cli, project):
    with (project / "settings.py").open("a", encoding="utf-8") as file:
        file.write("FEEDS = {'always.jsonl': {}}\n")
    assert cli("crawl", "first", "-s", "FEEDS={}", "-O", "now.jsonl", cwd=project).returncode == 0
    assert (project / "now.jsonl").exists() and not (project / "always.jsonl").exists()


def test_the_level_of_the_log_can_be_set_and_the_log_be_silenced(cli, project):
    assert "ERROR" in cli("crawl", "broken", "-L", "error", cwd=project).stderr
    quiet = cli("crawl", "broken", "--nolog", cwd=project)
    assert quiet.returncode == 3
    assert "ERROR" not in quiet.stderr and "INFO" not in quiet.stderr


# -- where the project is ----------------------------------------------------------------------------------------------


def test_a_project_is_found_from_a_folder_below_it(cli, project):
    assert cli("list", cwd=project / "site").stdout.split() == ["first", "second", "broken"]


def test_main_py_is_run_in_its_own_project_wherever_one_stands(project, tmp_path):
    (tmp_path / "settings.py").write_text("1 / 0\n", "utf-8")
    done = python(project / "main.py", "first", "-O", "-", "-s", "GREETING=hi", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout) == [{"spider": "first", "word": "hi"}]


def test_main_py_takes_the_words_of_run_and_ends_with_its_codes(project):
    assert python("main.py", "master", "-s", "REDIS_URL=redis://127.0.0.1:1", cwd=project).returncode == 2
    assert python("main.py", "broken", cwd=project).returncode == 3
    usage = python("main.py", "--help", cwd=project)
    assert usage.returncode == 0 and usage.stdout.startswith("Usage: main.py [OPTIONS] [master|slave] [SPIDER]...")


# -- a single file -----------------------------------------------------------------------------------------------------


def test_a_single_file_runs_without_a_project(cli, tmp_path, project):
    (tmp_path / "demo_site.py").write_text((project / "demo_site.py").read_text("utf-8"), "utf-8")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<h1>alone</h1>", "utf-8")
    (tmp_path / "alone.py").write_text(
        "from scrapy_plus import CrawlSpider, Spider\n"
        "class Alone(Spider):\n"
        "    name = 'alone'\n"
        "    start_urls = ['http://demo.test/']\n"
        "    custom_settings = {'DOWNLOADER_MIDDLEWARES': ['demo_site.DemoSite']}\n"
        "    def parse(self, response):\n"
        "        yield {'h1': response.css('h1::text').get()}\n",
        "utf-8",
    )
    done = cli("runspider", "alone.py", "-O", "-")
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout) == [{"h1": "alone"}]


def test_a_file_without_a_spider_is_refused(cli, tmp_path):
    (tmp_path / "empty.py").write_text("from scrapy_plus import Spider\n", "utf-8")
    done = cli("runspider", "empty.py")
    assert done.returncode == 2 and "empty.py has no Spider class with a name" in done.stderr
