"""startproject and genspider."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from scrapy_plus.cli.making import add_to_list, module_name, spider_templates, target_url
from scrapy_plus.errors import UsageError

from .conftest import python


@pytest.fixture
def made(cli, tmp_path) -> Path:
    done = cli("startproject", "shop")
    assert (done.returncode, done.stderr) == (0, "")
    return tmp_path / "shop"


# -- startproject ------------------------------------------------------------------------------------------------------


def test_a_new_project_runs_at_once_and_its_items_are_there(made):
    done = python("main.py", "-O", "quotes.jsonl", cwd=made)
    assert done.returncode == 0, done.stderr
    items = [json.loads(line) for line in (made / "quotes.jsonl").read_text("utf-8").splitlines()]
    assert len(items) == 8
    assert {"text": "学而时习之，不亦说乎？", "author": "孔子"} in items
    assert all(item["author"] for item in items)


def test_the_items_of_a_second_spider_pass_the_pipeline_of_a_new_project(made):
    (made / "spiders" / "titles.py").write_text(
        "from dataclasses import dataclass\n"
        "from scrapy_plus import Item, Spider\n"
        "@dataclass\n"
        "class Title:\n"
        "    title: str\n"
        "class TitlesSpider(Spider):\n"
        "    name = 'titles'\n"
        "    start_urls = ['http://demo.test/']\n"
        "    def parse(self, response):\n"
        "        yield from ({'title': 'a'}, Item('b'), Title('c'), 'd')\n",
        "utf-8",
    )
    done = python("main.py", "titles", "-s", "SPIDERS=spiders.titles.TitlesSpider", "-O", "-", cwd=made)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4


def test_an_item_that_the_pipeline_of_a_new_project_drops_is_told_with_its_reason(made):
    page = made / "site" / "index.html"
    page.write_text(page.read_text("utf-8") + "<div class=quote><span class=text>x</span></div>", "utf-8")
    assert "1 x DropItem: no author" in python("main.py", "--nolog", cwd=made).stderr


def test_the_generated_test_of_a_new_project_passes(made):
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=made)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_a_new_project_bears_its_name_and_what_git_should_leave_alone(made):
    assert 'PROJECT_NAME = "shop"' in (made / "settings.py").read_text("utf-8")
    assert (made / "README.md").read_text("utf-8").startswith("# shop\n")
    assert "__pycache__/" in (made / ".gitignore").read_text("utf-8").splitlines()
    assert not [path for path in made.rglob("*") if path.suffix in (".tmpl", ".pyc") or path.name.startswith("dot-")]


def test_all_settings_of_a_new_project_are_known_ones(made, cli):
    facts = json.loads(cli("settings", "--json", cwd=made).stdout)
    own = [name for name, fact in facts.items() if fact["source"] == "settings.py"]
    assert facts["CONCURRENT_REQUESTS_PER_DOMAIN"]["value"] == 8
    assert "A constant of the project." not in {facts[name]["help"] for name in own}


def test_a_project_may_be_made_in_a_folder_that_is_there(cli, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "notes.txt").write_text("mine", "utf-8")
    assert cli("startproject", "shop", ".", cwd=tmp_path / "here").returncode == 0
    assert (tmp_path / "here" / "main.py").is_file()


def test_a_project_never_writes_over_a_file_that_is_there(cli, tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "settings.py").write_text("mine", "utf-8")
    done = cli("startproject", "shop")
    assert done.returncode == 2
    assert "shop/settings.py is there already; choose another folder" in done.stderr
    assert os.listdir(tmp_path / "shop") == ["settings.py"]


@pytest.mark.parametrize("name", ["2nd", "a b", "../x", "", "网"])
def test_a_project_needs_a_plain_name(cli, name, tmp_path):
    done = cli("startproject", name)
    assert done.returncode == 2 and "is no name for a project" in done.stderr
    assert os.listdir(tmp_path) == []


# -- genspider ---------------------------------------------------------------------------------------------------------


def test_there_are_three_templates(cli):
    assert spider_templates() == ["basic", "crawl", "sitemap"]
    assert cli("genspider", "--list").stdout.split() == ["basic", "crawl", "sitemap"]


@pytest.mark.parametrize("template", ["basic", "crawl", "sitemap"])
def test_a_new_spider_is_written_registered_and_can_be_made(made, cli, template):
    done = cli("genspider", "old-books", "books.test", "-t", template, cwd=made)
    assert (done.returncode, done.stderr) == (0, "")
    assert "spiders.old_books.OldBooksSpider is in SPIDERS" in done.stdout
    assert cli("list", cwd=made).stdout.split() == ["quotes", "old-books"]
    script = (
        "import scrapy_plus; from spiders.old_books import OldBooksSpider as S; s = S();"
        "print(s.name, s.allowed_domains, [r.url for r in s.start_requests()])"
    )
    shown = python("-c", script, cwd=made).stdout.strip()
    page = "sitemap.xml" if template == "sitemap" else ""
    assert shown == f"old-books ['books.test'] ['https://books.test/{page}']"


LINKS = b"<title>all</title><a href='/item/1'>one</a><a href='/other'>other</a>"
SITEMAP = b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>https://books.test/item/1</loc></url></urlset>"
SITE = {
    "https://books.test/": LINKS,
    "https://books.test/other": b"<title>other</title>",
    "https://books.test/item/1": b"<title>one</title>",
    "https://books.test/sitemap.xml": SITEMAP,
}


@pytest.mark.parametrize(("template", "titles"), [("basic", ["all"]), ("crawl", ["one"]), ("sitemap", ["one"])])
def test_a_new_spider_of_each_kind_finds_what_it_is_for(made, cli, template, titles):
    assert cli("genspider", "books", "books.test", "-t", template, cwd=made).returncode == 0
    script = (
        f"import scrapy_plus as s; from spiders.books import BooksSpider; site = s.FakeTransport({SITE!r});"
        "print([item['title'] for item in s.crawl(BooksSpider, site).items])"
    )
    done = python("-c", script, cwd=made)
    assert done.stdout.strip() == repr(titles), done.stderr


def test_a_spider_that_is_there_stays_unless_force_is_given(made, cli):
    file = made / "spiders" / "quotes.py"
    before = file.read_text("utf-8")
    done = cli("genspider", "quotes", "http://127.0.0.1:9/x?a='1'", cwd=made)
    assert done.returncode == 2 and "--force replaces it" in done.stderr
    assert file.read_text("utf-8") == before
    assert cli("genspider", "quotes", "http://127.0.0.1:9/x?a='1'", "--force", cwd=made).returncode == 0
    assert "start_urls = [\"http://127.0.0.1:9/x?a='1'\"]" in file.read_text("utf-8")
    assert cli("list", cwd=made).stdout.split() == ["quotes"]


def test_settings_that_compute_their_spiders_are_left_alone_and_the_line_is_said(made, cli):
    settings = made / "settings.py"
    settings.write_text('SPIDERS = ["spiders.%s" % name for name in ["quotes.QuotesSpider"]]\n', "utf-8")
    before = settings.read_bytes()
    done = cli("genspider", "books", cwd=made)
    assert done.returncode == 0
    assert 'SPIDERS = [..., "spiders.books.BooksSpider"]' in done.stdout
    assert settings.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["2nd"], "is no name for a spider"),
        (["class"], "is no name for a spider"),
        (["books", "ftp://books.test/"], "is no URL and no domain"),
        (["books", "-t", "magic"], "there is no template 'magic'; there are basic, crawl, sitemap"),
    ],
)
def test_what_cannot_be_a_spider_is_refused(made, cli, words, told):
    done = cli("genspider", *words, cwd=made)
    assert done.returncode == 2 and told in done.stderr
    assert not (made / "spiders" / "books.py").exists()


def test_a_spider_needs_a_project(cli):
    done = cli("genspider", "books", "books.test")
    assert done.returncode == 2 and "scrapy-plus startproject NAME" in done.stderr


# -- its parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A = []\n", 'A = ["b.C"]\n'),
        ("A = [\n]\n", 'A = [\n"b.C"]\n'),
        ("A = ['a.B']  # mine\n", "A = ['a.B', \"b.C\"]  # mine\n"),
        ("A = ['a.B',]\n", "A = ['a.B', \"b.C\",]\n"),
        ("A = [\n    'a.B',\n]\nB = 1\n", "A = [\n    'a.B',\n    \"b.C\",\n]\nB = 1\n"),
        ("A = [\n    'a.B'\n]\n", "A = [\n    'a.B',\n    \"b.C\",\n]\n"),
        ("A = [\n    'a.B',  # the , first\n]\n", "A = [\n    'a.B',  # the , first\n    \"b.C\",\n]\n"),
        ("A = [\n    'a.B'  # the , first\n]\n", "A = [\n    'a.B',  # the , first\n    \"b.C\",\n]\n"),
        ("A = [\r\n    'a.B',\r\n]\r\n", "A = [\r\n    'a.B',\r\n    \"b.C\",\r\n]\r\n"),
        ("# 网\nA = ['网.B']", "# 网\nA = ['网.B', \"b.C\"]"),
        ("A = ['b.C']\n", "A = ['b.C']\n"),
    ],
)
def test_a_plain_list_gets_one_more_and_nothing_else_changes(tmp_path, before, after):
    file = tmp_path / "settings.py"
    file.write_bytes(before.encode())
    assert add_to_list(file, "A", "b.C") is True
    assert file.read_bytes().decode() == after


@pytest.mark.parametrize(
    "source",
    ["", "B = []\n", "A = ()\n", "A = ['a.B']\nA = []\n", "A = [x]\n", "A = B = []\n", "A = [*'a']\n", "A = [] + []\n"],
)
def test_any_other_list_is_left_alone(tmp_path, source):
    file = tmp_path / "settings.py"
    file.write_text(source, "utf-8")
    assert add_to_list(file, "A", "b.C") is False
    assert file.read_text("utf-8") == source


def test_a_name_becomes_a_module_and_a_domain_a_url():
    assert module_name("books.test-2") == "books_test_2"
    assert target_url("books.test") == "https://books.test/"
    assert target_url("books.test:8080/a") == "https://books.test:8080/a"
    assert target_url("http://127.0.0.1:8000/a") == "http://127.0.0.1:8000/a"
    with pytest.raises(UsageError):
        module_name("_private")
