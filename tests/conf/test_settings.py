"""How the settings of a project are found, checked, laid over each other and read."""

from __future__ import annotations

import importlib
import sys

import pytest

from scrapy_plus.conf import settings as facade
from scrapy_plus.conf.settings import Added, load_settings
from scrapy_plus.errors import SettingsError


class Quotes:
    name = "quotes"
    custom_settings = {"DOWNLOAD_DELAY": 3, "DEPTH_LIMIT": 3}


def problems(folder, **arguments) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_settings(folder, environ={}, **arguments)
    return list(caught.value.problems)


# -- precedence --------------------------------------------------------------------------------------------------------


def test_the_higher_source_wins_and_says_so(write):
    folder = write("DOWNLOAD_DELAY = 1\nDEPTH_LIMIT = 1\nURLLENGTH_LIMIT = 1\nMAX_RETRY_TIMES = 1\n")
    environ = {"SCRAPY_PLUS_DOWNLOAD_DELAY": "4", "SCRAPY_PLUS_URLLENGTH_LIMIT": "4", "OTHER": "x"}
    settings = load_settings(folder, overrides={"DOWNLOAD_DELAY": "5"}, environ=environ).for_spider(Quotes)
    told = {
        name: (settings[name], settings.source(name)) for name in settings.names() if settings.source(name) != "default"
    }
    assert told == {
        "DOWNLOAD_DELAY": (5.0, "command line"),
        "DEPTH_LIMIT": (3, "spider quotes"),
        "URLLENGTH_LIMIT": (4, "environment"),
        "MAX_RETRY_TIMES": (1, "settings.py"),
    }
    assert settings.source("COOKIES_ENABLED") == "default"


def test_custom_settings_of_one_spider_are_nothing_to_another(write):
    settings = load_settings(write(""), environ={})
    assert settings.for_spider(Quotes).for_spider(object).DEPTH_LIMIT == settings.DEPTH_LIMIT == 0


def test_a_value_that_is_added_goes_over_the_project_s_own_and_any_other_replaces_it(write):
    folder = write("FEEDS = {'a.csv': {}, 'b.json': {}}")
    added = load_settings(folder, overrides={"FEEDS": Added({"a.csv": {"overwrite": True}})}, environ={})
    assert added.FEEDS == {"a.csv": {"format": "csv", "overwrite": True}, "b.json": {"format": "json"}}
    assert load_settings(folder, overrides={"FEEDS": {"c.csv": {}}}, environ={}).FEEDS == {"c.csv": {"format": "csv"}}


def test_a_changed_default_does_not_reach_the_next_crawl(write):
    folder = write("")
    load_settings(folder, environ={}).RETRY_HTTP_CODES.append(404)
    assert 404 not in load_settings(folder, environ={}).RETRY_HTTP_CODES


# -- names -------------------------------------------------------------------------------------------------------------


def test_constants_of_the_project_are_welcome_and_readable(write):
    settings = load_settings(
        write("MYSQL_HOST = 'localhost'\nUSER_AGENTS = ['a', 'b']\nDB = 1\nlower = 2\n_X = 3"), environ={}
    )
    assert settings.MYSQL_HOST == settings["MYSQL_HOST"] == settings.get("MYSQL_HOST") == "localhost"
    assert settings.USER_AGENTS == ["a", "b"]
    assert settings.names()[-3:] == ["MYSQL_HOST", "USER_AGENTS", "DB"]


def test_a_word_from_outside_becomes_what_the_project_s_own_constant_is(write):
    environ = {"SCRAPY_PLUS_PORT": "3307", "SCRAPY_PLUS_DEBUG_SQL": "no", "SCRAPY_PLUS_TOKEN": "0123"}
    overrides = {"TABLES": "a,b", "RATIO": "none"}
    folder = write("PORT = 3306\nDEBUG_SQL = True\nTABLES = []\nRATIO = 0.5\n")
    settings = load_settings(folder, overrides=overrides, environ=environ)
    assert (settings.PORT, settings.DEBUG_SQL, settings.TABLES, settings.RATIO) == (3307, False, ["a", "b"], "none")
    assert settings.TOKEN == "0123"


@pytest.mark.parametrize("name", ["CONCURRENT_REQUEST", "ASYNC_COUNT", "MAX_ASYNC_NUMBER", "MAX_ASYNC_THREAD_NUMBER"])
def test_another_name_of_a_setting_sets_and_reads_it(write, name):
    settings = load_settings(write(f"{name} = 5"), environ={})
    assert settings.CONCURRENT_REQUESTS == settings[name] == getattr(settings, name) == 5
    assert settings.source(name) == "settings.py"
    assert name in settings and name not in settings.names()


def test_one_setting_under_two_names_must_have_one_value(write):
    assert load_settings(write("MAX_RETRY_TIMES = 2\nRETRY_TIMES = 2"), environ={}).MAX_RETRY_TIMES == 2
    [problem] = problems(write("MAX_RETRY_TIMES = 2\n\nRETRY_TIMES = 5"))
    assert (
        problem == "RETRY_TIMES (settings.py, line 3): the same setting as MAX_RETRY_TIMES, but not its value; keep one"
    )


def test_options_that_came_in_by_import_star_are_unset(write):
    settings = load_settings(write("from scrapy_plus.conf.default_settings import *\nDEPTH_LIMIT = 2"), environ={})
    assert (settings.MAX_RETRY_TIMES, settings.source("MAX_RETRY_TIMES")) == (3, "default")
    assert (settings.DEPTH_LIMIT, settings.source("DEPTH_LIMIT")) == (2, "settings.py")
    assert all(name.isupper() for name in importlib.import_module("scrapy_plus.conf.default_settings").__all__)


def test_a_name_that_does_not_exist_is_refused_with_the_one_that_was_meant(write):
    settings = load_settings(write(""), environ={})
    with pytest.raises(AttributeError, match="no setting MAX_RETRY_TIMEZ; did you mean MAX_RETRY_TIMES"):
        settings.MAX_RETRY_TIMEZ  # noqa: B018
    with pytest.raises(KeyError, match="no setting QUITE_OTHER"):
        settings["QUITE_OTHER"]
    with pytest.raises(KeyError):
        settings.source("QUITE_OTHER")
    assert settings.get("QUITE_OTHER", 7) == 7


def test_the_typed_readers_of_other_frameworks_work(write):
    settings = load_settings(write("MY_FLAG = 'yes'\nMY_LIST = 'a,b'\nMY_DICT = {'a': 1}"), environ={})
    assert settings.getbool("MY_FLAG") is True and settings.getbool("NOT_THERE") is False
    assert settings.getint("MAX_RETRY_TIMES") == 3 and settings.getfloat("DOWNLOAD_DELAY") == 0.0
    assert settings.getlist("MY_LIST") == ["a", "b"] and settings.getlist("SPIDERS") == []
    assert settings.getdict("MY_DICT") == {"a": 1} and settings.getdict("NOT_THERE") == {}


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_all_mistakes_of_all_sources_are_reported_at_once_each_with_its_place(write):
    folder = write("import os\nCONCURENT_REQUESTS = 3\n\nDOWNLOAD_DELAY = 'fast'\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(
            folder,
            overrides={"LOG_LVEL": "x", "depth_limit": "1", "Some": "x"},
            environ={"SCRAPY_PLUS_COOKIES_ENABLED": "maybe"},
        )
    assert sorted(str(caught.value).splitlines()) == [
        "CONCURENT_REQUESTS (settings.py, line 2): there is no such setting; did you mean CONCURRENT_REQUESTS?",
        "COOKIES_ENABLED = 'maybe' (environment, SCRAPY_PLUS_COOKIES_ENABLED): must be True or False",
        "DOWNLOAD_DELAY = 'fast' (settings.py, line 4): must be a number of seconds, 0 or more",
        "LOG_LVEL (command line): there is no such setting; did you mean LOG_LEVEL?",
        "Some (command line): settings have upper-case names, like SOME",
        "depth_limit (command line): there is no such setting; did you mean DEPTH_LIMIT?",
    ]


def test_mistakes_in_custom_settings_name_the_spider_and_come_together(write):
    class Slow:
        name = "slow"
        custom_settings = {"DOWNLOAD_DELAY": -1}

    class Typo:
        name = "typo"
        custom_settings = {"DEPHT_LIMIT": 1}

    with pytest.raises(SettingsError) as caught:
        load_settings(write(""), environ={}).for_spiders([Slow, Quotes, Typo])
    assert list(caught.value.problems) == [
        "DOWNLOAD_DELAY = -1 (custom_settings of spider slow): must be a number of seconds, 0 or more",
        "DEPHT_LIMIT (custom_settings of spider typo): there is no such setting; did you mean DEPTH_LIMIT?",
    ]


def test_a_settings_file_that_raises_gives_its_line(write):
    [problem] = problems(write("import os\n\nX = os.environ['NOT_' 'THERE']\n"))
    assert problem.startswith(str(write("") / "settings.py") + ", line 3: KeyError: 'NOT_THERE';")


def test_a_settings_file_with_a_syntax_error_gives_its_line(write):
    [problem] = problems(write("SPIDERS = []\nPIPELINES = [\n"))
    assert "settings.py, line 2: " in problem and "PIPELINES = [" in problem


def test_a_settings_file_that_raises_deep_in_a_module_gives_the_line_of_its_own(write):
    [problem] = problems(write("A = 1\nimport helpers\n", helpers="\n\n1 / 0\n"))
    assert "settings.py, line 2: ZeroDivisionError" in problem


def test_a_settings_file_that_reads_the_settings_made_from_it_is_told_so(write):
    [problem] = problems(write("from scrapy_plus.conf.settings import MAX_RETRY_TIMES"))
    assert "settings.py reads scrapy_plus.conf.settings" in problem


# -- words of other frameworks -----------------------------------------------------------------------------------------


def test_names_without_effect_are_said_once_with_what_to_do(write, caplog):
    folder = write(
        "ITEM_PIPELINES = {'a.B': 1}\nTWISTED_REACTOR = 'x'\nMEMUSAGE_ENABLED = True\nMEMDEBUG_ENABLED = True"
    )
    for _ in range(2):
        load_settings(folder, environ={}).for_spider(Quotes)
    assert [record.getMessage() for record in caplog.records] == [
        "ITEM_PIPELINES (settings.py, line 1): no effect here; use PIPELINES",
        "TWISTED_REACTOR (settings.py, line 2): no effect here; the engine runs on gevent",
        "MEMUSAGE_ENABLED, MEMDEBUG_ENABLED (settings.py, line 3): no effect here; "
        "memory is not watched by this release",
    ]


def test_a_value_that_is_the_case_anyway_needs_no_word(write, caplog):
    load_settings(
        write("FEED_EXPORT_ENCODING = 'utf-8'\nASYNC_TYPE = 'coroutine'\nCOMPRESSION_ENABLED = True"), environ={}
    )
    assert not caplog.records
    load_settings(write("FEED_EXPORT_ENCODING = 'gbk'\nASYNC_TYPE = 'thread'\nCOMPRESSION_ENABLED = False"), environ={})
    assert len(caplog.records) == 3


@pytest.mark.parametrize("values", [["DOWNLOAD_DELAY"], "DOWNLOAD_DELAY = 1", 5])
def test_custom_settings_that_are_no_dict_are_a_mistake_of_that_spider(write, values):
    class Slow:
        name = "slow"
        custom_settings = values

    with pytest.raises(SettingsError, match="custom_settings of spider slow: must be a dict of settings"):
        load_settings(write(""), environ={}).for_spider(Slow)


def test_a_setting_of_the_whole_process_in_custom_settings_is_said(write, caplog):
    class Loud:
        name = "loud"
        custom_settings = {"LOG_LEVEL": "DEBUG"}

    load_settings(write(""), environ={}).for_spider(Loud)
    assert "LOG_LEVEL (custom_settings of spider loud): is one for all spiders; set it in settings.py" in caplog.text


# -- the project at hand -----------------------------------------------------------------------------------------------


def test_the_module_answers_the_settings_of_the_current_folder(write, monkeypatch):
    monkeypatch.chdir(write("MAX_RETRY_TIMES = 9\nMYSQL_HOST = 'db'"))
    from scrapy_plus.conf import settings
    from scrapy_plus.conf.settings import MAX_RETRY_TIMES, MYSQL_HOST

    assert (settings.MAX_RETRY_TIMES, MAX_RETRY_TIMES, MYSQL_HOST) == (9, 9, "db")
    assert settings.__name__ == "scrapy_plus.conf.settings"
    with pytest.raises(AttributeError):
        settings.nothing_of_that_name  # noqa: B018
    with pytest.raises(ImportError):
        from scrapy_plus.conf.settings import NOTHING_LIKE_IT  # noqa: F401


def test_the_folder_of_main_py_comes_before_the_current_one(write, monkeypatch):
    here = write("MAX_RETRY_TIMES = 1", "here")
    there = write("MAX_RETRY_TIMES = 2", "there", main="")
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(there / "main.py"), raising=False)
    assert facade.MAX_RETRY_TIMES == 2


def test_outside_a_project_the_module_answers_the_defaults():
    assert facade.MAX_RETRY_TIMES == 3


def test_the_module_answers_what_was_loaded_last_with_its_overrides(write):
    load_settings(write(""), overrides={"MAX_RETRY_TIMES": "7"}, environ={})
    assert facade.MAX_RETRY_TIMES == 7


def test_the_project_s_own_module_is_called_settings_and_does_not_clash(write):
    load_settings(write("X_OWN = 1\nPIPELINES = []\n"), environ={})
    own = importlib.import_module("settings")
    assert own.X_OWN == 1 and not hasattr(own, "MAX_RETRY_TIMES")
    assert facade.MAX_RETRY_TIMES == 3


def test_two_projects_in_one_process_do_not_mix(write):
    first = write("WHO = 'first'", "one", spiders="WHO = 'first'")
    second = write("WHO = 'second'", "two", spiders="WHO = 'second'")
    told = []
    for folder in (first, second, first):
        settings = load_settings(folder, environ={})
        own = importlib.import_module("settings")
        told.append((settings.WHO, own.WHO, importlib.import_module("spiders").WHO, facade.WHO))
        assert sys.path[0] == str(folder)
        assert settings.project_dir == folder
    assert told == [("first",) * 4, ("second",) * 4, ("first",) * 4]


def test_a_file_that_changed_within_the_second_is_read_anew(write):
    assert load_settings(write("DEPTH_LIMIT = 1"), environ={}).DEPTH_LIMIT == 1
    assert load_settings(write("DEPTH_LIMIT = 2"), environ={}).DEPTH_LIMIT == 2


def test_a_failed_load_leaves_the_settings_module_that_was_there(write):
    load_settings(write("OWN = 1"), environ={})
    before = sys.modules["settings"]
    problems(write("1 / 0"))
    assert sys.modules["settings"] is before
