"""settings and version."""

from __future__ import annotations

import json

import pytest

from scrapy_plus.conf.layers import OPTIONS
from scrapy_plus.version import __version__


def test_settings_prints_value_source_and_sentence(cli, project):
    done = cli("settings", "DEPTH_LIMIT", "GREETING", "-s", "DEPTH_LIMIT=4", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "DEPTH_LIMIT = 4",
        f"    command line: {OPTIONS['DEPTH_LIMIT'].help}",
        "GREETING = 'hello'",
        "    settings.py: A constant of the project.",
    ]


def test_settings_prints_all_of_them_also_outside_a_project(cli):
    done = cli("settings", SCRAPY_PLUS_ASYNC_COUNT="5")
    shown = [line.split(" = ")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert shown == list(OPTIONS)
    assert "CONCURRENT_REQUESTS = 5\n    environment: " in done.stdout


def test_settings_as_json_is_for_machines(cli, project):
    facts = json.loads(cli("settings", "--json", "ASYNC_COUNT", "COOKIES_ENABLED", cwd=project).stdout)
    assert {name: (fact["value"], fact["source"]) for name, fact in facts.items()} == {
        "CONCURRENT_REQUESTS": (16, "default"),
        "COOKIES_ENABLED": (True, "default"),
    }


def test_secrets_of_the_project_are_shown_only_when_asked_for(cli, project):
    with (project / "settings.py").open("a", encoding="utf-8") as file:
        file.write("MYSQL_PASSWORD = 'swordfish'\n")
    assert "swordfish" not in cli("settings", cwd=project).stdout
    assert "swordfish" in cli("settings", "MYSQL_PASSWORD", cwd=project).stdout


def test_an_unknown_setting_is_refused_with_the_one_that_was_meant(cli):
    done = cli("settings", "DEPHT_LIMIT", "FOO", "ITEM_PIPELINES")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        "settings: there is no setting DEPHT_LIMIT; did you mean DEPTH_LIMIT?",
        "settings: there is no setting FOO",
        "settings: ITEM_PIPELINES has no effect here; use PIPELINES",
    ]


def test_version_tells_the_libraries_when_asked(cli):
    assert cli("version").stdout == f"scrapy_plus {__version__}\n"
    verbose = cli("version", "-v").stdout
    assert verbose.startswith(f"scrapy_plus {__version__}\nPython 3.")
    assert "\ngevent " in verbose and "not installed" not in verbose


def test_help_names_every_command(cli):
    done = cli("--help")
    assert done.returncode == 0
    for command in ("startproject", "genspider", "list", "run", "crawl", "runspider", "settings", "version"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_settings_show_no_password_of_a_redis(cli, project, form):
    words = ("-s", "REDIS_URL=redis://:hush@127.0.0.1:6379/0", "-s", "REDIS_PASSWORD=hush")
    params = ("-s", 'REDIS_PARAMS={"password": "hush"}')
    shown = cli("settings", *form, *words, *params, cwd=project).stdout
    assert "REDIS_URL" in shown
    assert "hush" not in shown
