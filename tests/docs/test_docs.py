"""The pages do what they say: every block of README and docs is run, in order, and its output compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_plus.rules.lifecycle import TABLE
from tests.docs.pages import ELSEWHERE, PAGES, ROOT, Block, Reader, blocks, compare

README, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHINESE], ids=lambda page: page.name)
def test_every_block_of_the_page_does_what_it_shows(page: Path, tmp_path: Path):
    reader = Reader(tmp_path)
    try:
        for block in blocks(page):
            reader.read(block)
    finally:
        reader.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_of_the_repository_leads_somewhere(page: Path):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    files = {target: page.parent / target.partition("#")[0] for target in targets if "://" not in target}
    assert [target for target, file in files.items() if target[0] != "#" and not file.exists()] == []


def test_ci_runs_the_two_commands_that_readme_promises_and_no_others_of_their_kind():
    promised = {command for block in blocks(README) for command, _ in console(block) if command.startswith("./")}
    run_by_ci = {line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("./")}
    assert promised == run_by_ci == {command for command in ELSEWHERE if command.startswith("./")}


def test_the_environment_that_readme_enters_is_the_one_that_the_scripts_make():
    assert ". .venv/bin/activate" in {command for block in blocks(README) for command, _ in console(block)}
    assert "venv=${SCRAPY_PLUS_VENV:-$root/.venv}" in (ROOT / "scripts" / "setup").read_text()


def test_the_chinese_readme_shows_the_same_blocks():
    english, chinese = ([(b.language, b.options, b.text) for b in blocks(page)] for page in (README, CHINESE))
    assert english == chinese


def console(block: Block) -> list[tuple[str, str]]:
    return list(block.commands()) if block.language == "console" else []


def test_the_architecture_page_lists_every_move_of_a_request_and_no_other():
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (\w+) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    moves = {(state.value, verb, after.value) for state, verbs in TABLE.items() for verb, after in verbs.items()}
    assert set(rows) - {("state", "verb", "becomes")} == moves


def test_a_command_that_says_something_else_is_noticed():
    compare("here", "x", "one ... three\n...\nend\n", "one two three\nmore\nlines\nend   \n")
    for said in ("one two three\nend\nmore\n", "one\nend\n", ""):
        with pytest.raises(AssertionError):
            compare("here", "x", "one ... three\n...\nend\n", said)


@pytest.mark.parametrize("text", ["```python flie=x.py\n```\n", "```rust\n```\n", "```python\n"])
def test_a_block_that_nobody_would_run_is_refused(text: str, tmp_path: Path):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(ValueError):
        blocks(tmp_path / "page.md")


def test_blocks_are_run_in_order_in_one_folder_and_a_wrong_one_fails(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python file=one.py\nx = 1\n```\n```python file=one.py append\nx += 1\n```\n"
        "```console exit=2\n$ python -c 'import one; print(one.x)'\n2\n$ exit 2\n```\n"
        "```python\nimport one\nassert one.x == 3\n```\n"
    )
    (tmp_path / "work").mkdir()
    reader = Reader(tmp_path / "work")
    *good, wrong = blocks(page)
    for block in good:
        reader.read(block)
    with pytest.raises(AssertionError, match="AssertionError"):
        reader.read(wrong)
