"""The benchmarks run, and what they crawl is exact; how fast they are is no matter here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("memory", "redis", "bare", "memory_small", "bare_small", "latency", "redis_far", "slaves", "stock")
PAGES = 40
TIMEOUT_SECONDS = 500


@pytest.mark.system
def test_a_quick_run_crawls_exactly_the_pages_of_its_sites_and_makes_one_item_each(tmp_path):
    told = tmp_path / "all.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--no-rivals", "--no-pin"]
    command += ["--pages", str(PAGES), "--slow-pages", str(PAGES), "--json", str(told), "--only", *OURS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = json.loads(told.read_text())
    assert {run["subject"]: run["problem"] for run in runs} == dict.fromkeys(OURS, "")
    assert all(run["pages"] == PAGES and run["pages_per_second"] > 0 and run["cpu_ms"] > 0 for run in runs)


@pytest.mark.system
def test_a_run_tells_of_a_rival_that_is_not_installed(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--no-pin", "--only", "scrapy"]
    command += ["--pages", "2", "--slow-pages", "2", "--rivals", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| Scrapy | | | | | | not installed |" in done.stdout


def test_a_run_finds_pages_that_were_left_out_fetched_twice_or_never_made_an_item(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import measure
    import subjects

    log = tmp_path / "access.log"
    log.write_text("1.0 /big/9.html 200\n1.5 /big/0.html 200\n2.0 /big/0.html 200\n3.5 /big/2.html 404\n")
    fetched, seconds = measure.read_log(log, len("1.0 /big/9.html 200\n"))
    [memory] = [one for one in subjects.subjects(False) if one.name == "memory"]
    problem = measure.problem_of(memory, fetched, 3, [{"items": 1, "items_doubled": 0}])
    assert problem == "2 pages missing, 1 fetched more than once, 1 strange pages, 2 items missing"
    assert seconds == 2.0
