"""The whole program on a pseudo-terminal, as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

BOOKSHOP = Path(__file__).parents[2] / "examples" / "bookshop"


def enter_terminal() -> None:
    """Makes the terminal that is standard error that of the process, so that it hears of its end."""
    os.setsid()
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


class Program:
    """main.py of the bookshop with standard error, and if asked standard output, on a terminal."""

    def __init__(self, folder: Path, *arguments: str, stdout: int | None = None) -> None:
        self._master, slave = pty.openpty()
        environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "110", "PYTHONPATH": str(BOOKSHOP.parents[1])}
        self.process = subprocess.Popen(
            [sys.executable, str(BOOKSHOP / "main.py"), *arguments],
            cwd=folder,
            env=environ,
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            preexec_fn=enter_terminal,
        )
        os.close(slave)
        self.text = ""

    def read_until(self, pattern: str, seconds: float = 60.0) -> None:
        """Reads what the terminal gets, until the pattern has come; at its end, and for no pattern, until it closes."""
        deadline = time.monotonic() + seconds
        while not (pattern and re.search(pattern, self.text)):
            assert time.monotonic() < deadline, f"{pattern!r} did not come in\n{self.text[-3000:]}"
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self._master, 65536).decode("utf-8", "replace")
                except OSError:  # how Linux says that nobody has the other end
                    break
        if not pattern:
            self.process.wait(10)

    def hang_up(self) -> None:
        """Closes the terminal."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._master >= 0:
            os.close(self._master)


@pytest.fixture
def program(tmp_path):
    started: list[Program] = []

    def start(*arguments: str, **options: int) -> Program:
        started.append(Program(tmp_path, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def is_cursor_shown(text: str) -> bool:
    return text.rfind("\x1b[?25h") >= text.rfind("\x1b[?25l")


def test_progress_is_live_and_the_summary_comes_last(program):
    shop = program()
    shop.read_until("")
    assert shop.process.returncode == 0
    counts = [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) done", shop.text)]
    assert len(set(counts)) >= 3, "the panel moves"
    assert counts == sorted(counts)
    assert shop.text.rindex("1,000  in books.jsonl") > shop.text.rindex(" done ")
    assert is_cursor_shown(shop.text)


def test_an_interrupt_leaves_the_terminal_as_it_was(program):
    shop = program()
    shop.read_until(r"[1-9]\d* done")
    shop.process.send_signal(signal.SIGINT)
    shop.read_until("")
    assert shop.process.returncode == 130
    assert is_cursor_shown(shop.text)
    assert "left in queue" in shop.text
    assert "Traceback" not in shop.text


def test_a_terminal_that_is_closed_stops_the_crawl_with_its_pages_finished_and_stored(hears_signals, program, tmp_path):
    shop = program()
    shop.read_until(r"[1-9]\d* done")
    shop.hang_up()
    assert shop.process.wait(30) == 129
    lines = (tmp_path / "books.jsonl").read_bytes().splitlines()
    assert 0 < len(lines) < 1000
    assert all(line.startswith(b'{"title": ') and line.endswith(b"}") for line in lines)


def test_a_program_that_was_told_to_outlive_its_terminal_does(program, tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited, as of nohup
    try:
        shop = program()
    finally:
        signal.signal(signal.SIGHUP, before)
    shop.read_until(r"[1-9]\d* done")
    shop.hang_up()
    assert shop.process.wait(60) == 0
    assert len((tmp_path / "books.jsonl").read_bytes().splitlines()) == 1000


def test_a_killed_process_leaves_the_cursor(program):
    shop = program()
    shop.read_until(r"[1-9]\d* done")
    shop.process.kill()
    shop.read_until("")
    assert is_cursor_shown(shop.text)


def test_items_on_standard_output_are_not_mixed_with_the_panel(program, tmp_path):
    with (tmp_path / "out").open("wb") as out:
        shop = program("-o", "-", stdout=out.fileno())
        shop.read_until("")
    assert shop.process.returncode == 0
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert len(lines) == 1000
    assert all(line.startswith(b'{"title": ') for line in lines)
    assert "standard output, books.jsonl" in shop.text


def test_no_panel_is_drawn_over_items_that_go_to_the_same_terminal(program):
    shop = program("-o", "-")
    shop.read_until("")
    assert shop.process.returncode == 0
    assert len(re.findall(r'^\{"title": .*\}\r$', shop.text, re.MULTILINE)) == 1000
    assert "\x1b[1A" not in shop.text and "in flight" not in shop.text


@pytest.mark.parametrize("stderr", ["gone", "/dev/full"])
def test_a_reader_that_leaves_takes_neither_items_nor_the_exit_code_with_it(tmp_path, stderr):
    if stderr == "gone":
        reader, stream = os.pipe()
        os.close(reader)
    else:
        stream = os.open(stderr, os.O_WRONLY)
    command = [sys.executable, str(BOOKSHOP / "main.py"), "-o", "-"]
    environ = {**os.environ, "PYTHONPATH": str(BOOKSHOP.parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=stream, timeout=120)
    os.close(stream)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1000
