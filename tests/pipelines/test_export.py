"""A file from stored items has each of them once, in their order, whatever ends the process that writes it."""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import gevent.os
import pytest

from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import FrontierUnavailable, UsageError
from scrapy_plus.pipelines import feeds
from scrapy_plus.pipelines.export import Export, Exporter
from scrapy_plus.pipelines.feeds import BeingWritten, Feed

CRAWL, OTHER = "{shop:books}", "{shop:toys}"
FORMATS = ["jsonl", "json", "csv"]


class Shelf:
    """Stored items behind numbers, as a frontier has them."""

    def __init__(self, count: int = 0, first: int = 0) -> None:
        self.stored = [json.dumps({"n": first + n, "text": f'té, "{n}"\n'}).encode() for n in range(count)]
        self.is_away = self.is_closed = False

    def add(self, count: int) -> Shelf:
        self.stored += Shelf(count, len(self.stored)).stored
        return self

    def items(self, cursor: str = "", count: int = 100) -> tuple[list[bytes], str]:
        if self.is_away:
            raise FrontierUnavailable("no Redis")
        start = int(cursor or 0)
        found = self.stored[start : start + count]
        return found, str(start + len(found)) if found else cursor

    def close(self) -> None:
        self.is_closed = True


class Killed(BaseException):
    """The process ends here."""


def export(path: Path, **options) -> Export:
    return Export(Feed(path, **options), path.parent / "notes")


def write(path: Path, shelf: Shelf, crawl: str = CRAWL, **options) -> int:
    """A process that writes all there is, and ends; how many items that were."""
    one = export(path, **options)
    assert one.claim(crawl)
    total = 0
    while count := one.take(crawl, shelf):
        total += count
    one.release()
    return total


def numbers(path: Path) -> list[int]:
    """The items of a whole file."""
    text = path.read_bytes().decode()
    if path.suffix == ".csv":
        return [int(row["n"]) for row in csv.DictReader(io.StringIO(text, newline=""))]
    found = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    assert all(item["text"].startswith("té") for item in found)
    return [item["n"] for item in found]


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_goes_on_where_it_stood(tmp_path, ending):
    path, shelf = tmp_path / f"a.{ending}", Shelf(3)
    assert write(path, shelf) == 3
    assert write(path, shelf) == 0
    assert write(path, shelf.add(2)) == 2
    assert numbers(path) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_kill_at_any_byte_of_a_write_leaves_each_item_once(tmp_path, ending, monkeypatch):
    whole = tmp_path / f"whole.{ending}"
    write(whole, Shelf(2))
    write(whole, Shelf(5))
    for cut in range(whole.stat().st_size):
        path = tmp_path / f"{cut}.{ending}"
        write(path, Shelf(2))
        killed = export(path)
        assert killed.claim(CRAWL)
        with monkeypatch.context() as patch:
            patch.setattr(feeds.os, "pwrite", cut_after(cut, os.pwrite))
            try:
                killed.take(CRAWL, Shelf(5))
            except Killed:
                pass
            else:  # the write is shorter than that
                assert cut > 50
                break
        killed.release()
        write(path, Shelf(5))
        assert path.read_bytes() == whole.read_bytes(), f"cut after {cut} bytes"
        assert not path.with_name(f"{path.name}.1").exists(), "it was known again, not written anew"
    else:
        raise AssertionError("no write was whole")


def cut_after(count: int, pwrite):
    def write(descriptor: int, data: bytes, offset: int) -> int:
        if count > len(data):
            return pwrite(descriptor, data, offset)
        pwrite(descriptor, data[:count], offset)
        raise Killed

    return write


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("step", range(1, 6))
def test_a_kill_between_any_two_steps_leaves_each_item_once(tmp_path, ending, step, monkeypatch):
    path = tmp_path / f"a.{ending}"
    write(path, Shelf(2))
    killed = export(path)
    steps = iter(range(1, 100))

    def dies(call):
        def replaced(*arguments):
            if next(steps) == step:
                raise Killed
            return call(*arguments)

        return replaced

    with monkeypatch.context() as patch:  # notes of the claim, tail and notes, items, notes
        patch.setattr(os, "replace", dies(os.replace))
        patch.setattr(feeds.os, "pwrite", dies(os.pwrite))
        with pytest.raises(Killed):
            killed.claim(CRAWL)
            killed.take(CRAWL, Shelf(5))
    if killed._feed._sink is not None:
        killed.release()
    else:
        del killed
    write(path, Shelf(5))
    assert numbers(path) == [0, 1, 2, 3, 4]


PROGRAM = """
import scrapy_plus, sys
from pathlib import Path
from tests.pipelines.test_export import CRAWL, Shelf, export

class Endless(Shelf):
    def items(self, cursor="", count=100):
        start = int(cursor or 0)
        numbers = range(start, start + 300)
        return [b'{"n": %d, "text": "t\\\\u00e9 %s"}' % (n, b"x" * 500) for n in numbers], str(start + 300)

one = export(Path(sys.argv[1]))
assert one.claim(CRAWL)
print("begins", flush=True)
while True:
    one.take(CRAWL, Endless())
"""


@pytest.mark.parametrize("ending", FORMATS)
def test_kill_9_many_times_leaves_a_whole_file_without_a_gap(tmp_path, ending):
    path, seed = tmp_path / f"a.{ending}", random.randrange(10**9)
    dice = random.Random(seed)
    sizes = []
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"begins\n"
        time.sleep(dice.uniform(0.01, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        sizes.append(path.stat().st_size)
    one = export(path)
    assert one.claim(CRAWL)
    found, written = numbers(path), one.progress(CRAWL).written
    one.release()
    assert found == list(range(written)), f"seed {seed}"
    assert written and sizes == sorted(sizes), f"seed {seed}"


# -- files that changed ------------------------------------------------------------------------------------------------


def test_a_file_that_was_there_before_is_added_to(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 77, "text": "té"}\n')
    write(path, Shelf(2))
    write(path, Shelf(3))
    assert numbers(path) == [77, 0, 1, 2]


def test_what_another_added_behind_is_kept(tmp_path):
    path = tmp_path / "a.jsonl"
    write(path, Shelf(2))
    with path.open("a") as file:
        file.write('{"n": 77, "text": "té"}\n')
    write(path, Shelf(3))
    write(path, Shelf(4))
    assert numbers(path) == [0, 1, 77, 2, 3]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_that_is_gone_or_was_emptied_is_written_anew(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write(path, Shelf(3))
    path.unlink()
    write(path, Shelf(4))
    assert numbers(path) == [0, 1, 2, 3]
    path.write_bytes(b"")
    write(path, Shelf(5))
    assert numbers(path) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("change", ["cut", "edited", "replaced"])
def test_a_file_that_somebody_changed_is_kept_aside_and_written_anew(tmp_path, change, caplog):
    path = tmp_path / "a.jsonl"
    write(path, Shelf(20))
    before = path.read_bytes()
    changed = {"cut": before[:-100], "edited": before[:-20] + b"y" * 19 + b"\n", "replaced": b"x" * len(before)}[change]
    path.write_bytes(changed)
    write(path, Shelf(21))
    assert numbers(path) == list(range(21))
    assert (tmp_path / "a.jsonl.1").read_bytes() == changed
    assert "'" + str(tmp_path / "a.jsonl.1") + "'" in caplog.text
    path.write_bytes(changed)
    write(path, Shelf(21))
    assert (tmp_path / "a.jsonl.2").exists(), "the first one that was kept stays"


def test_a_file_that_was_changed_after_a_kill_within_a_write_is_kept_aside_too(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    write(path, Shelf(2))
    killed = export(path)
    assert killed.claim(CRAWL)
    with monkeypatch.context() as patch:
        patch.setattr(feeds.os, "pwrite", cut_after(10, os.pwrite))
        with pytest.raises(Killed):
            killed.take(CRAWL, Shelf(5))
    killed.release()
    changed = path.read_bytes() + b"and a good deal of what somebody else wrote behind it\n" * 9
    path.write_bytes(changed)
    write(path, Shelf(5))
    assert numbers(path) == [0, 1, 2, 3, 4]
    assert (tmp_path / "a.jsonl.1").read_bytes() == changed


def test_notes_that_cannot_be_read_are_as_good_as_a_changed_file(tmp_path):
    path = tmp_path / "a.jsonl"
    write(path, Shelf(3))
    [notes] = (tmp_path / "notes").iterdir()
    notes.write_text("{}")
    write(path, Shelf(4))
    assert numbers(path) == [0, 1, 2, 3]
    assert (tmp_path / "a.jsonl.1").exists()


def test_overwrite_begins_with_the_first_item_each_time(tmp_path):
    path = tmp_path / "a.jsonl"
    write(path, Shelf(3))
    assert write(path, Shelf(4), overwrite=True) == 4
    assert write(path, Shelf(4), overwrite=True) == 4
    assert numbers(path) == [0, 1, 2, 3]
    assert write(path, Shelf(5)) == 1, "and -o goes on behind it"


def test_a_csv_file_keeps_its_columns_when_it_goes_on(tmp_path):
    path = tmp_path / "a.csv"
    write(path, Shelf(1), fields=["text", "n"])
    write(path, Shelf(2))
    assert path.read_bytes().splitlines()[0] == b"text,n"
    assert numbers(path) == [0, 1]


# -- several crawls, several processes ---------------------------------------------------------------------------------


def test_crawls_that_share_a_file_go_on_each_at_its_own_place(tmp_path):
    path = tmp_path / "a.jsonl"
    books, toys = Shelf(2), Shelf(2, first=100)
    one = export(path)
    assert one.claim(CRAWL) and one.claim(OTHER)
    assert one.take(OTHER, toys) == one.take(CRAWL, books) == 2
    one.release()
    assert one.take(CRAWL, books.add(1)) == 1, "the file is open as long as one of them needs it"
    one.release()
    write(path, toys, OTHER)
    write(path, books.add(1))
    assert numbers(path) == [100, 101, 0, 1, 2, 3]


def test_a_second_process_of_the_crawl_waits_and_one_of_another_is_refused(tmp_path):
    path, shelf = tmp_path / "a.jsonl", Shelf(3)
    first, second = export(path), export(path)
    assert first.claim(CRAWL)
    assert not second.claim(CRAWL)
    with pytest.raises(BeingWritten, match="by another crawl"):
        export(path).claim(OTHER)
    first.take(CRAWL, shelf)
    first.release()
    assert second.claim(CRAWL)
    assert second.take(CRAWL, shelf) == 0
    second.release()


# -- the greenlet ------------------------------------------------------------------------------------------------------


@pytest.fixture
def exporters() -> Iterator[list[Exporter]]:
    """Those that are stopped when the test is over."""
    made: list[Exporter] = []
    yield made
    for one in made:
        one.stop()


def begin(made: list[Exporter], path: Path, shelf: Shelf) -> tuple[Exporter, Stats]:
    stats = Stats()
    one = Exporter(shelf, CRAWL, [export(path)], stats, look_seconds=0.01)
    made.append(one)
    one.start()
    return one, stats


def wait_for(path: Path, count: int) -> None:
    with gevent.Timeout(20):
        while len(numbers(path)) < count:
            gevent.sleep(0.01)


def test_items_are_written_while_the_crawl_goes_on_and_all_of_them_at_its_end(tmp_path, exporters):
    path, shelf = tmp_path / "a.jsonl", Shelf(2)
    one, stats = begin(exporters, path, shelf)
    wait_for(path, 2)
    shelf.add(3)
    wait_for(path, 5)
    shelf.add(2000)
    one.stop()
    assert numbers(path) == list(range(2005))
    assert stats.get(f"item_stored_count/{path}") == 2005
    assert shelf.is_closed


def test_counts_of_files_are_not_added_to_those_of_other_processes(tmp_path, exporters):
    one, stats = begin(exporters, tmp_path / "a.jsonl", Shelf(2))
    one.stop()
    assert stats.take_increments() == {}


def test_the_next_process_takes_over_when_the_writer_ends(tmp_path, exporters):
    path, shelf = tmp_path / "a.jsonl", Shelf(2)
    first, _ = begin(exporters, path, shelf)
    wait_for(path, 2)
    _, stats = begin(exporters, path, shelf)
    assert stats.get(f"item_stored_count/{path}", None) is None, "who does not write does not count"
    first.stop()
    shelf.add(3)
    wait_for(path, 5)
    assert numbers(path) == [0, 1, 2, 3, 4]
    assert stats.get(f"item_stored_count/{path}") == 5


def test_a_file_of_another_crawl_is_refused_at_the_start(tmp_path, exporters, monkeypatch):
    monkeypatch.setattr("scrapy_plus.pipelines.export.CLAIM_SECONDS", 0.2)
    path = tmp_path / "a.jsonl"
    with path.open("w") as stranger:
        fcntl.flock(stranger, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="is being written by another crawl"):
            begin(exporters, path, Shelf(2))


def test_a_store_that_is_away_is_waited_for(tmp_path, exporters, caplog):
    path, shelf = tmp_path / "a.jsonl", Shelf(2)
    shelf.is_away = True
    begin(exporters, path, shelf)
    gevent.sleep(0.1)
    shelf.is_away = False
    wait_for(path, 2)
    assert len([record for record in caplog.records if "no Redis" in record.message]) == 1, "said once, not each look"


def test_a_full_disk_loses_nothing(tmp_path, exporters, monkeypatch):
    path, shelf = tmp_path / "a.jsonl", Shelf(2)
    one, _ = begin(exporters, path, shelf)
    wait_for(path, 2)
    with monkeypatch.context() as patch:
        patch.setattr(feeds.os, "pwrite", full)
        shelf.add(3)
        gevent.sleep(0.1)
    wait_for(path, 5)
    one.stop()
    assert numbers(path) == [0, 1, 2, 3, 4]


def test_a_disk_that_stays_full_is_no_silent_end(tmp_path, monkeypatch):
    shelf = Shelf()
    one, _ = begin([], tmp_path / "a.jsonl", shelf)
    monkeypatch.setattr(feeds.os, "pwrite", full)
    shelf.add(1)
    with pytest.raises(OSError, match="No space"):
        one.stop()


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_reader_that_goes_away_stops_the_crawl(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    reasons: list[str] = []
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "__stdout__", stdout)
        shelf = Shelf(1)
        one = Exporter(shelf, CRAWL, [Export(Feed("-"), tmp_path)], Stats(), look_seconds=0.01)
        one.on_stop = reasons.append
        one.start()
        assert json.loads(gevent.os.tp_read(reader, 1000))["n"] == 0
        os.close(reader)
        with gevent.Timeout(20):
            while not reasons:
                shelf.add(1)  # gevent may close the pipe a little later
                gevent.sleep(0.01)
        one.stop()
    assert reasons == ["output_closed"]
