"""What is said of mistakes in the project's own files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_plus.cli.mistakes import own_traceback
from scrapy_plus.http.url import clean_url

from .conftest import python

ENGINE = "from scrapy_plus import Engine\nraise SystemExit(Engine().start())\n"
STARTS = [
    ["-m", "scrapy_plus", "run"],
    ["main.py"],
    ["-m", "scrapy_plus", "runspider", "all_spiders.py"],
    ["engine.py"],
]


def shown_files(stderr: str) -> list[str]:
    return re.findall(r'File "([^"]+)", line \d+', stderr)


@pytest.mark.parametrize("words", STARTS)
def test_a_spider_file_that_is_no_python_gives_2_and_one_line_with_its_place(project, words):
    (project / "engine.py").write_text(ENGINE, "utf-8")
    (project / "all_spiders.py").write_text(
        "import scrapy_plus\nclass First(scrapy_plus.Spider)\n    name = 'x'\n", "utf-8"
    )
    done = python(*words, cwd=project)
    [line] = done.stderr.splitlines()
    assert done.returncode == 2
    assert "all_spiders.py, line 2: expected ':': class First(scrapy_plus.Spider); mend that line" in line


@pytest.mark.parametrize("words", STARTS)
def test_a_spider_file_that_fails_gives_1_and_a_traceback_of_its_own_lines(project, words):
    (project / "engine.py").write_text(ENGINE, "utf-8")
    (project / "all_spiders.py").write_text("import helpers\n", "utf-8")
    (project / "helpers.py").write_text("from scrapy_plus import Request\nRequest('ftp://x/')\n", "utf-8")
    done = python(*words, cwd=project)
    assert done.returncode == 1
    assert [Path(file).name for file in shown_files(done.stderr)] == ["all_spiders.py", "helpers.py"]
    assert "Request('ftp://x/')" in done.stderr and "ValueError" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("hook", ["__init__", "open_spider"])
def test_a_pipeline_that_cannot_begin_gives_1_and_a_traceback_of_its_own_lines(cli, project, hook):
    (project / "pipelines.py").write_text(
        f"class Broken:\n    def {hook}(self, *spider):\n        open('/nowhere/at/all')\n", "utf-8"
    )
    done = cli("run", "first", "-s", "PIPELINES=pipelines.Broken", "--nolog", cwd=project)
    assert done.returncode == 1
    assert [Path(file).name for file in shown_files(done.stderr)] == ["pipelines.py"]
    assert done.stderr.strip().endswith("FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/at/all'")


def test_the_cause_of_a_failure_is_told_in_its_own_lines_too(cli, project):
    (project / "all_spiders.py").write_text(
        "import json\ntry:\n    json.loads('{')\nexcept ValueError as e:\n    raise KeyError('x') from e\n", "utf-8"
    )
    done = cli("run", cwd=project)
    files = [Path(file).name for file in shown_files(done.stderr)]
    assert files[0] == "all_spiders.py" == files[-1] and "decoder.py" in files, "libraries that it called are shown"
    assert "The above exception was the direct cause" in done.stderr


def test_a_mistake_of_the_framework_itself_shows_all_of_its_lines():
    with pytest.raises(TypeError) as caught:
        clean_url(None)
    assert Path(__file__).name in own_traceback(caught.value)
    assert "url.py" not in own_traceback(caught.value)
    ours = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert "url.py" in own_traceback(ours)


def test_a_program_of_ones_own_is_told_in_a_line_what_cannot_be_made_at_its_start(project):
    (project / "engine.py").write_text(ENGINE, "utf-8")
    with (project / "settings.py").open("a", encoding="utf-8") as file:
        file.write("PIPELINES = ['pipelines.Nothing']\n")
    done = python("engine.py", cwd=project)
    assert done.returncode == 2
    assert done.stderr == "engine.py: PIPELINES: there is no module 'pipelines' (for 'pipelines.Nothing')\n"
