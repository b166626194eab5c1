from __future__ import annotations

import io
import logging
import re
import time

import gevent
import pytest
from rich.console import Console

from scrapy_plus.frontier.base import DeadLetter
from scrapy_plus.summary import summary
from scrapy_plus.terminal import Terminal

from .scene import BUSY, FakeEngine, crawl, dead_letter


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def run(stream: io.StringIO, engine: FakeEngine, seconds: float = 0.05, **options) -> str:
    """A terminal that watches the engine for a while."""
    terminal = Terminal(stream=stream, **options)
    terminal.opened(engine)
    gevent.sleep(seconds)
    terminal.closed(engine, 0)
    return stream.getvalue()


def shown(renderable) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue()


def test_the_panel_shows_rates_queues_items_bytes_answers_and_sites():
    text = shown(Terminal(stream=io.StringIO()).panel(FakeEngine(crawl(**BUSY)).snapshot()))
    assert "shop  running  30.0 s" in text
    assert re.search(r"pages +1,300   43.3/s now   43.3/s average", text)
    assert "1,234 done   5,678 queued   16 in flight   2 delayed   1 dead" in text
    assert re.search(r"items +1,000   33.3/s now", text)
    assert re.search(r"bytes +15.2 MB   506.7 kB/s now", text)
    assert "2xx: 1,200  4xx: 63  5xx: 37  errors: 4" in text
    assert "12 of 16 busy" in text
    assert "http://shop.test:80   5,000 queued   4 in flight   one each 0.5 s   at most 4 at a time" in text


def test_the_panel_shows_each_of_several_spiders_but_not_hundreds():
    engine = FakeEngine(*[crawl(f"s{n}", **BUSY) for n in range(12)])
    text = shown(Terminal(stream=io.StringIO()).panel(engine.snapshot()))
    assert "12 spiders" in text
    assert re.search(r"s7 +1,234 done", text)
    assert "s8" not in text
    assert "and 4 more spiders" in text


def test_a_terminal_gets_the_panel_and_it_goes_before_the_summary():
    text = run(Tty(), FakeEngine(crawl(finish_reason="finished", **BUSY)))
    assert "1,234 done" in text
    assert text.rindex("1,234 done") < text.rindex("finished")
    assert "\x1b[2K" in text, "the panel is wiped"


def test_what_is_no_terminal_gets_no_control_characters():
    text = run(io.StringIO(), FakeEngine(crawl(finish_reason="finished", **BUSY)))
    assert "done" not in text
    assert "\x1b" not in text
    assert "finished" in text


@pytest.mark.parametrize("setting", [{"FORCE_COLOR": "1"}, {"CI": "true"}, {"TTY_COMPATIBLE": "1"}])
def test_a_pipe_gets_no_panel_whatever_the_environment_says(monkeypatch, setting):
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    assert "1,234 done" not in run(io.StringIO(), FakeEngine(crawl(**BUSY)))


def test_a_dumb_terminal_and_a_switched_off_panel_get_none(monkeypatch):
    assert "1,234 done" not in run(Tty(), FakeEngine(crawl(**BUSY)), panel=False)
    monkeypatch.setenv("TERM", "dumb")
    assert "1,234 done" not in run(Tty(), FakeEngine(crawl(**BUSY)))


def test_no_color_is_honoured(monkeypatch):
    colours = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7]|4[0-7]|38)[;m]")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours.search(run(Tty(), FakeEngine(crawl(finish_reason="finished", **BUSY))))


def test_the_cursor_is_never_left_hidden():
    stream = Tty()
    terminal = Terminal(stream=stream)
    engine = FakeEngine(crawl(**BUSY))
    terminal.opened(engine)
    gevent.sleep(0.05)
    text = stream.getvalue()  # a kill now would leave this behind
    assert "1,234 done" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    terminal.closed(engine, 0)
    text = stream.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_elsewhere_figures_are_logged_now_and_then(caplog):
    caplog.set_level(logging.INFO)
    run(io.StringIO(), FakeEngine(crawl(**BUSY)), seconds=0.2, stats_seconds=0.05)
    lines = [record.getMessage() for record in caplog.records if record.name == "scrapy_plus.figures"]
    assert lines
    fields = dict(field.split("=") for field in lines[0].split(" "))
    assert fields["spiders"] == "shop"
    assert fields["done"] == "1234"
    assert fields["pages"] == "1300"
    assert fields["pages_per_second_average"] == "43.3"
    assert fields["status_4xx"] == "63"
    assert fields["in_flight"] == "16"


def test_no_figures_are_logged_when_the_interval_is_zero(caplog):
    caplog.set_level(logging.INFO)
    run(io.StringIO(), FakeEngine(crawl(**BUSY)), stats_seconds=0)
    assert [record for record in caplog.records if record.name == "scrapy_plus.figures"] == []


def test_logs_scroll_above_the_panel(monkeypatch):
    import sys

    from scrapy_plus.log import _StandardError

    stream = Tty()
    monkeypatch.setattr(sys, "stderr", stream)
    handler = _StandardError()
    engine = FakeEngine(crawl(**BUSY))
    terminal = Terminal()
    terminal.opened(engine)
    gevent.sleep(0.05)
    handler.emit(logging.makeLogRecord({"msg": "a line of the log", "levelname": "INFO"}))
    terminal.closed(engine, 0)
    text = stream.getvalue()
    line = text.index("a line of the log")
    assert "\x1b[2K" in text[:line], "the panel is wiped before the line"
    assert "1,234 done" in text[line:], "and drawn again below it"
    assert sys.stderr is stream


def test_the_panel_costs_less_than_a_hundredth_of_a_core():
    engine = FakeEngine(*[crawl(f"s{n}", **BUSY) for n in range(3)])
    terminal = Terminal(stream=Tty())
    terminal.opened(engine)
    gevent.sleep(0.3)
    before, asked = time.process_time(), engine.asked
    gevent.sleep(3)
    spent = time.process_time() - before
    terminal.closed(engine, 0)
    assert engine.asked - asked <= 13, "at most four times a second"
    assert spent < 3 * 0.05  # it is held to 0.01; the bound leaves room for a busy machine


def test_the_summary_tells_how_it_ended():
    text = shown(summary(crawl(finish_reason="finished", dead=[dead_letter("http://u:pw@shop.test/x")], **BUSY), 20.0))
    for label, value in [
        ("shop", "finished"),
        ("duration", "20.0 s"),
        ("pages", "1,300  (65.0/s)"),
        ("items", "1,000  in books.jsonl"),
        ("bytes", "15.2 MB"),
        ("status codes", "200: 1,200  404: 63  503: 37"),
        ("retries", "RetryStatus: 37"),
        ("no answer", "DownloadTimeout: 4"),
        ("duplicates", "2,500"),
        ("log", "WARNING: 1"),
        ("left in queue", "5,696"),
        ("errors", "63 x HTTP 404, as http://me:***@shop.test/gone\\x1b[2J"),
        ("dead letter", "http://u:***@shop.test/x  (DownloadTimeout: 60 s, tries: 4)"),
    ]:
        assert re.search(rf"^ *{label} .*{re.escape(value)}", text, re.MULTILINE), f"{label} {value} in\n{text}"
    assert "secret" not in text
    assert "\x1b[2J" not in text


def test_the_summary_leaves_out_what_did_not_happen():
    text = shown(summary(crawl(finish_reason="finished", stats={"downloader/response_count": 1}), 1.0))
    assert "retries" not in text
    assert "dead" not in text
    assert "errors" not in text


def test_the_summary_says_why_items_were_dropped():
    stats = {f"item_dropped_messages_count/DropItem: {n}": 1 for n in range(12)}
    stats |= {"item_dropped_messages_count/DropItem: no author": 11, "item_dropped_count": 30}
    text = shown(summary(crawl(finish_reason="finished", stats=stats), 1.0))
    assert re.search(r"dropped items +11 x DropItem: no author", text)
    assert re.search(r"dropped items +10 x other reasons", text)
    assert text.count("dropped items") == 11


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "3"), (0.09, "3"), (0.5, "3  (6.0/s)")])
def test_the_summary_gives_no_rate_of_what_took_no_time(seconds, said):
    stats = {"downloader/response_count": 3, "elapsed_time_seconds": seconds}
    text = shown(summary(crawl(finish_reason="finished", stats=stats), 60.0))
    assert re.search(rf"pages +{re.escape(said)} *$", text, re.MULTILINE)


def test_the_summary_stays_short_when_much_went_wrong():
    from scrapy_plus.core.stats import ErrorGroup

    errors = [ErrorGroup(f"E{n}", 1, "http://a/") for n in range(200)]
    letters = [dead_letter(f"http://a/{n}") for n in range(20)]
    fields = {**BUSY, "errors": errors}
    text = shown(summary(crawl(finish_reason="finished", dead=letters, **fields), 1.0))
    assert text.count("\n") < 45
    assert "190 other reasons" in text


def test_a_dead_letter_that_cannot_be_read_is_said_to_be_so():
    letter = DeadLetter(b"x" * 20, b"\xff\xff", "lost", 1, 0, 0, 0.0)
    assert "unreadable" in shown(summary(crawl(finish_reason="finished", dead=[letter]), 1.0))
