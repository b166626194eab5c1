from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_plus.errors import StopCrawl, UsageError
from scrapy_plus.item import Item
from scrapy_plus.pipelines.feeds import Feed, build_feeds


def write(path: Path, *pages: list, **options) -> Path:
    """Opens a feed, stores the pages, closes it."""
    feed = Feed(path, **options)
    feed.open_spider(None)
    for page in pages:
        feed.store(page, None)
    feed.close_spider(None)
    return path


def rows(path: Path, encoding: str = "utf-8") -> list[list[str]]:
    with path.open(encoding=encoding, newline="") as file:
        return list(csv.reader(file))


def lines(path: Path) -> list:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


# -- what is written ---------------------------------------------------------------------------------------------------


def test_jsonl_is_one_object_a_line_in_utf_8(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"title": "茶", "n": 1}], [{"title": "two\nlines"}])
    assert path.read_text("utf-8") == '{"title": "茶", "n": 1}\n{"title": "two\\nlines"}\n'


def test_json_is_one_array(tmp_path):
    path = write(tmp_path / "a.json", [{"n": 1}, {"n": 2}], [{"n": 3}])
    assert json.loads(path.read_text()) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert json.loads(write(tmp_path / "none.json").read_text()) == []


def test_json_is_valid_after_every_page(tmp_path):
    feed = Feed(tmp_path / "a.json")
    feed.open_spider(None)
    for n in range(5):
        assert len(json.loads((tmp_path / "a.json").read_text())) == n
        feed.store([{"n": n}], None)


def test_csv_has_the_first_items_fields_as_header(tmp_path):
    path = write(tmp_path / "a.csv", [{"b": 1, "a": 'say "hi", you'}], [{"a": None, "b": "x\r\ny"}])
    assert rows(path) == [["b", "a"], ["1", 'say "hi", you'], ["x\r\ny", ""]]


def test_csv_warns_once_of_fields_that_are_not_in_its_header(tmp_path, caplog):
    path = write(tmp_path / "a.csv", [{"a": 1}], [{"a": 2, "late": 3}, {"late": 4}])
    assert rows(path) == [["a"], ["1"], ["2"], [""]]
    assert [record.message for record in caplog.records if "late" in record.message] == [caplog.records[0].message]


def test_fields_left_out_on_purpose_are_not_warned_of(tmp_path, caplog):
    assert rows(write(tmp_path / "a.csv", [{"a": 1, "b": 2}], fields=["a"])) == [["a"], ["1"]]
    assert rows(write(tmp_path / "a.csv", [{"a": 3, "b": 4}], fields=["a"])) == [["a"], ["1"], ["3"]]
    assert rows(write(tmp_path / "b.csv", [{"a": 1, "b": 2}], fields={"b": "second"})) == [["second"], ["2"]]
    assert caplog.records == []


def test_the_fields_asked_for_are_written_in_the_order_asked_for(tmp_path):
    items = [{"a": 1, "b": 2, "c": 3}, {"a": 4}]
    assert rows(write(tmp_path / "a.csv", items, fields=["c", "a"])) == [["c", "a"], ["3", "1"], ["", "4"]]
    assert (write(tmp_path / "a.jsonl", items, fields=["c", "a"])).read_text() == '{"c": 3, "a": 1}\n{"a": 4}\n'
    assert lines(write(tmp_path / "b.jsonl", items, fields={"a": "Name of A"})) == [{"Name of A": 1}, {"Name of A": 4}]


def test_items_of_every_kind_are_written_alike(tmp_path):
    @dataclass
    class Book:
        title: str

    path = write(tmp_path / "a.jsonl", [{"title": "t"}, Item({"title": "t"}), Book("t"), Item(b"<html>")])
    assert lines(path) == [{"title": "t"}] * 3 + [{"data": "<html>"}]


def test_values_without_a_json_word_are_stored_sensibly(tmp_path):
    @dataclass
    class Author:
        name: str

    item = {
        "price": Decimal("10.10"),
        "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 12, tzinfo=timezone.utc),
        "took": timedelta(minutes=1.5),
        "raw": b"\xe8\x8c\xb6",
        "tags": {"b", "a"},
        "by": [Author("Li"), Item(name="Bo")],
        "nan": float("nan"),
        "cut": "\ud83d",
        3: "number",
    }
    [line] = lines(write(tmp_path / "a.jsonl", [item]))
    assert line == {
        "price": "10.10",
        "day": "2024-02-29",
        "at": "2024-02-29T12:00:00+00:00",
        "took": 90.0,
        "raw": "茶",
        "tags": ["a", "b"],
        "by": [{"name": "Li"}, {"name": "Bo"}],
        "nan": None,
        "cut": "\ud83d",
        "3": "number",
    }


def test_a_value_of_an_unknown_kind_is_stored_as_its_text_with_a_warning(tmp_path, caplog):
    class Odd:
        def __str__(self):
            return "odd one"

    assert lines(write(tmp_path / "a.jsonl", [{"x": Odd()}, {"x": Odd()}])) == [{"x": "odd one"}] * 2
    [said] = [record.message for record in caplog.records if "Odd" in record.message]
    assert said.startswith("items hold values of type Odd, stored as their text")


def test_nested_values_are_json_in_a_csv_cell(tmp_path):
    path = write(tmp_path / "a.csv", [{"tags": ["a", Decimal("1.5")], "d": date(2024, 1, 2), "ok": True}])
    assert rows(path)[1] == ['["a", "1.5"]', "2024-01-02", "True"]


FORMULAS = ['=HYPERLINK("http://x")', "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_text_that_a_spreadsheet_would_run_is_neutralised(tmp_path, cell):
    assert rows(write(tmp_path / "a.csv", [{"x": cell}]))[1] == [f"'{cell}"]
    assert rows(write(tmp_path / "b.csv", [{"x": cell}], csv_safe=False))[1] == [cell]


@pytest.mark.parametrize("cell", ["-5", "+44", "-1.5e3", "-1,234.50", "-12%", "a=b", -5, Decimal("-1.50"), ""])
def test_numbers_and_plain_text_are_left_alone(tmp_path, cell):
    assert rows(write(tmp_path / "a.csv", [{"x": cell, "y": ""}]))[1] == [str(cell), ""]


def test_a_field_name_cannot_be_a_formula_either(tmp_path):
    assert rows(write(tmp_path / "a.csv", [{"=1+1": "x"}]))[0] == ["'=1+1"]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.none() | st.integers() | st.lists(st.text())), max_size=5))
@settings(max_examples=50, deadline=None)
def test_whatever_text_an_item_holds_comes_back_from_json(tmp_path_factory, items):
    folder = tmp_path_factory.mktemp("feeds")
    assert json.loads(write(folder / "a.json", *([item] for item in items)).read_bytes()) == items
    assert lines(write(folder / "a.jsonl", *([item] for item in items))) == items


@given(st.lists(st.fixed_dictionaries({"a": st.text(), "b": st.text()}), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_whatever_text_an_item_holds_comes_back_from_csv(tmp_path_factory, items):
    path = tmp_path_factory.mktemp("feeds") / "a.csv"
    write(path, *([item] for item in items), fields=["a", "b"], csv_safe=False)
    assert rows(path)[1:] == [[item[name].replace("\0", "\ufffd") for name in "ab"] for item in items]


def test_other_encodings_are_written_if_they_can_be_appended_to(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"t": "茶"}], encoding="gb18030")
    assert path.read_text("gb18030") == '{"t": "茶"}\n'
    assert rows(write(tmp_path / "a.csv", [{"t": "茶"}], encoding="gb18030"), "gb18030") == [["t"], ["茶"]]
    with pytest.raises(UsageError, match="utf-16"):
        Feed(tmp_path / "b.jsonl", encoding="utf-16")
    with pytest.raises(UsageError, match="klingon"):
        Feed(tmp_path / "b.jsonl", encoding="klingon")


def test_utf_8_sig_marks_the_start_of_the_file_only(tmp_path):
    write(tmp_path / "a.csv", [{"t": "茶"}], [{"t": "水"}], encoding="utf-8-sig")
    path = write(tmp_path / "a.csv", [{"t": "酒"}], encoding="utf-8-sig")
    assert path.read_bytes().count(b"\xef\xbb\xbf") == 1
    assert rows(path, "utf-8-sig") == [["t"], ["茶"], ["水"], ["酒"]]


# -- where -------------------------------------------------------------------------------------------------------------


def test_folders_on_the_way_are_made(tmp_path):
    assert lines(write(tmp_path / "new" / "deep" / "a.jsonl", [{"n": 1}])) == [{"n": 1}]


def test_an_unknown_extension_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match=r"'xml'.*jsonl.*json.*csv"):
        Feed(tmp_path / "a.xml")
    assert lines(write(tmp_path / "a.xml", [{"n": 1}], format="jsonl")) == [{"n": 1}]


@pytest.mark.parametrize("path", ["/proc/no/a.jsonl", "."])
def test_what_cannot_be_written_is_one_clear_error_at_open(tmp_path, path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="cannot write items to"):
        write(Path(path), format="jsonl")


def test_two_crawls_cannot_write_the_same_file(tmp_path):
    feed = Feed(tmp_path / "a.jsonl")
    feed.open_spider(None)
    with pytest.raises(UsageError, match="another crawl"):
        write(tmp_path / "a.jsonl")
    feed.close_spider(None)
    assert lines(write(tmp_path / "a.jsonl", [{"n": 1}])) == [{"n": 1}]


def test_spiders_may_share_a_feed_and_the_last_one_closes_it(tmp_path):
    [feed] = build_feeds({str(tmp_path / "a.csv"): {"fields": None}}, fields=["n"])
    feed.open_spider("one")
    feed.open_spider("two")
    feed.store([{"n": 1}], "one")
    feed.close_spider("one")
    feed.store([{"n": 2}], "two")
    feed.close_spider("two")
    assert rows(tmp_path / "a.csv") == [["n"], ["1"], ["2"]]
    with pytest.raises(ValueError, match="not open"):
        feed.store([{"n": 3}], "two")


def test_standard_output_gets_whole_json_and_nothing_else(tmp_path):
    program = (
        "import scrapy_plus\nfrom scrapy_plus.pipelines.feeds import Feed\nfeed = Feed('-', format='json')\n"
        "feed.open_spider(None)\nfeed.store([{'n': 1}], None)\nfeed.store([{'n': 2}], None)\nfeed.close_spider(None)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert json.loads(ran.stdout) == [{"n": 1}, {"n": 2}]


def test_a_reader_that_goes_away_stops_the_crawl(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "__stdout__", stdout)
        feed = Feed("-")
        feed.open_spider(None)
        os.close(reader)
        gevent.sleep(0.01)  # gevent closes pipes when its loop turns
        with pytest.raises(StopCrawl, match="output_closed"):
            feed.store([{"n": 1}], None)
        feed.close_spider(None)


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", ["jsonl", "json", "csv"])
def test_a_file_is_gone_on_with_unless_it_shall_be_overwritten(tmp_path, extension):
    read = {"jsonl": lines, "json": lambda path: json.loads(path.read_text()), "csv": rows}[extension]
    path = tmp_path / f"a.{extension}"
    once = read(write(path, [{"n": 1}, {"n": 2}]))
    write(path, [{"n": 1}], overwrite=True)
    write(path)
    write(path, [{"n": 2}])
    assert read(path) == once


@pytest.mark.parametrize("extension", ["jsonl", "json", "csv"])
def test_a_file_cut_at_any_byte_goes_on_behind_its_last_whole_item(tmp_path, extension):
    """A kill can leave any prefix of a write behind, over the tail of the write before it."""
    items = [{"n": str(n), "t": f'li"ne\r\n{n}],[' } for n in range(3)]
    base = write(tmp_path / f"base.{extension}", items[:2])
    old = base.read_bytes()
    new = write(base, items[2:]).read_bytes()
    common = len(os.path.commonprefix([old, new]))
    for cut in range(common, len(new)):
        path = tmp_path / f"cut.{extension}"
        path.write_bytes(new[:cut] + old[cut:])
        write(path, items[2:])
        if extension == "csv":
            found = [dict(zip(("n", "t"), row, strict=True)) for row in rows(path)[1:]]
        else:
            found = lines(path) if extension == "jsonl" else json.loads(path.read_text())
        # The cut may fall behind the whole item (its line end is missing): then it stands there twice, as it should.
        assert found in (items, [*items, items[2]]), f"cut at {cut}"


@pytest.mark.parametrize("extension", ["jsonl", "json", "csv"])
def test_a_file_cut_within_its_first_item_starts_anew(tmp_path, extension):
    whole = write(tmp_path / f"a.{extension}", [{"n": "1"}]).read_bytes()
    for cut in range(whole.index(b"1")):
        path = tmp_path / f"b.{extension}"
        path.write_bytes(whole[:cut])
        assert write(path, [{"n": "1"}]).read_bytes() == whole, f"cut at {cut}"


def test_a_repair_is_said(tmp_path, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n": 2')
    write(path, [{"n": 3}])
    assert lines(path) == [{"n": 1}, {"n": 3}]
    assert "cut 7 bytes" in caplog.text


def test_a_whole_last_line_without_its_newline_is_kept(tmp_path, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}')
    assert lines(write(path, [{"n": 2}])) == [{"n": 1}, {"n": 2}]
    assert caplog.records == []


def test_long_lines_are_found_again(tmp_path):
    long = "x" * 300_000
    for name, read in (("a.jsonl", lines), ("a.json", lambda path: json.loads(path.read_text()))):
        path = write(tmp_path / name, [{"t": long}, {"t": long}])
        os.truncate(path, path.stat().st_size - 10)
        assert read(write(path, [{"t": "y"}])) == [{"t": long}, {"t": "y"}]


def test_a_foreign_json_file_is_refused_untouched(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{\n  "not": "an array"\n}\n')
    with pytest.raises(UsageError, match="overwrite"):
        write(path, [{"n": 1}])
    assert path.read_text() == '{\n  "not": "an array"\n}\n'


def test_csv_goes_on_below_the_header_that_is_there(tmp_path, caplog):
    write(tmp_path / "a.csv", [{"a": 1, "b": 2}])
    assert rows(write(tmp_path / "a.csv", [{"b": 4, "a": 3}])) == [["a", "b"], ["1", "2"], ["3", "4"]]
    assert caplog.records == []
    write(tmp_path / "a.csv", [{"b": 6, "a": 5}], fields=["b", "a"])
    assert rows(tmp_path / "a.csv")[-1] == ["5", "6"]
    assert "header it has" in caplog.text


# -- when it goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", ["jsonl", "json", "csv"])
def test_a_full_disk_is_an_error_and_leaves_the_file_whole(tmp_path, extension):
    path = tmp_path / f"a.{extension}"
    feed = Feed(path)
    feed.open_spider(None)
    feed.store([{"n": 1}], None)
    before = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limit[1]))  # room for a part of the write
    try:
        with pytest.raises(OSError):
            feed.store([{"n": "x" * 200}], None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    feed.store([{"n": 2}], None)
    feed.close_spider(None)
    assert path.read_bytes() == write(tmp_path / f"b.{extension}", [{"n": 1}, {"n": 2}]).read_bytes()


def test_a_kill_leaves_whole_lines(tmp_path):
    program = (
        "import scrapy_plus, sys\nfrom scrapy_plus.pipelines.feeds import Feed\nfeed = Feed(sys.argv[1])\n"
        "feed.open_spider(None)\nprint('ready', flush=True)\n"
        "for n in range(10_000_000):\n    feed.store([{'n': n, 't': 'x' * 3000}] * 5, None)"
    )
    path = tmp_path / "a.jsonl"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        while path.stat().st_size < 1_000_000 and child.poll() is None:
            pass
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    numbers = [line["n"] for line in lines(write(path))]
    assert numbers == sorted(numbers)
    assert len(numbers) > 300


def test_items_do_not_go_to_whatever_has_the_number_of_a_closed_standard_output(tmp_path):
    script = "from scrapy_plus.pipelines.feeds import Feed; kept = open('kept', 'w'); Feed('-').open_spider(None)"
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert "UsageError: cannot write items to standard output: it is closed" in done.stderr
