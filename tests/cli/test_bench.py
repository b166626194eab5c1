"""scrapy-plus bench: it measures on a site of its own and says what limits; how fast is no matter here."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

from scrapy_plus.bench import pages
from scrapy_plus.bench.verdict import Figure, limit, parts_of_page
from scrapy_plus.cli import main


def run(*words):
    return CliRunner().invoke(main, ["bench", *words])


def figure(kind="memory", **more):
    facts = {"pages_per_second": 1000.0, "cpu_ms": 1.0, "busy": 1.0, "site_busy": 0.2, "redis_busy": 0.1}
    return Figure(kind, **{**facts, "crowded": 0.0, **more})


def test_help_says_what_is_measured():
    result = run("--help")
    assert result.exit_code == 0
    assert "bare loop" in result.output and "--seconds" in result.output and "--json" in result.output


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server")
def test_it_tells_the_rates_of_four_crawls_as_json():
    result = run("--seconds", "1", "-c", "4", "--kb", "2", "--transport", "requests", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert list(told["figures"]) == ["fetched", "bare", "memory", "redis"]
    assert all(one["pages_per_second"] > 0 and one["cpu_ms"] > 0 for one in told["figures"].values())
    assert told["transport"] == "requests" and list(told["limits"]) == ["memory", "redis"] and told["notes"] == []


def test_it_goes_without_redis_where_there_is_none_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("--seconds", "1", "-c", "4", "--kb", "1", "--transport", "requests")
    assert result.exit_code == 0, result.output
    assert "scrapy_plus, memory" in result.output and "not measured with Redis: there is no Redis" in result.output


def test_a_redis_that_is_named_and_not_there_is_a_mistake_in_one_line():
    result = run("--seconds", "1", "--redis", "redis://127.0.0.1:1/0")
    assert result.exit_code == 2 and len(result.output.splitlines()) == 1 and "Traceback" not in result.output


def test_who_is_busy_is_what_limits():
    assert limit(figure(), 0.1, "libcurl", 1).startswith("the CPU")
    assert "lxml takes 60%" in limit(figure(), 0.6, "libcurl", 1)
    assert "scrapyplus[speed]" in limit(figure(), 0.1, "requests", 1)
    assert "--workers" in limit(figure(), 0.1, "libcurl", 4) and "--workers" not in limit(figure(), 0.1, "libcurl", 1)
    assert limit(figure("redis", redis_busy=0.9), 0.1, "libcurl", 1).startswith("Redis")
    assert limit(figure(busy=0.5, site_busy=0.9), 0.1, "libcurl", 1).startswith("the site of this benchmark")
    assert limit(figure(busy=0.5, crowded=0.9), 0.1, "libcurl", 1).startswith("other programs")
    assert limit(figure(busy=0.5), 0.1, "libcurl", 1).startswith("waiting for the site")
    assert limit(figure("redis", busy=0.5), 0.1, "libcurl", 1).startswith("waiting: for Redis")


def test_a_pages_time_is_told_by_what_takes_it():
    figures = {kind: figure(kind, cpu_ms=ms) for kind, ms in {"fetched": 0.1, "bare": 0.3, "memory": 0.5}.items()}
    parts = dict(parts_of_page(figures, 0.2))
    assert parts == {"fetching": 0.1, "parsing": 0.2, "the framework": pytest.approx(0.2)}
    figures["redis"] = figure("redis", cpu_ms=0.6)
    assert dict(parts_of_page(figures, 0.2))["keeping it in Redis"] == pytest.approx(0.1)


def test_each_page_of_the_site_leads_to_one_that_nothing_before_it_led_to():
    size = 3 * pages.AHEAD
    known = {path.encode() for path in pages.start_paths()}
    for number in range(size):
        linked = [part.split(b'"')[0] for part in pages.page(number, size, b"").split(b'href="')[1:]]
        new = [one for one in linked if one not in known]
        assert len(new) == (1 if number + pages.AHEAD < size else 0)
        known.update(new)
    assert known == {b"/%d.html" % number for number in range(size)}
