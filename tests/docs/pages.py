"""Fenced blocks of a Markdown page, and the way they are run: in order, in one folder, as a reader would.

    ```python file=PATH          is written to PATH; any language will do. `append` adds it to the file
    ```python                    is run
    ```python before             what a reader has today, for another framework: it must compile
    ```pycon                     is run as a doctest; the page's pycon blocks share their names
    ```console                   `$ command` lines are run, the lines below each are what it must say. `exit=N` is the
                                 code of the last one; `background` leaves it running until the page is done;
                                 `redis`: passed over where there is no redis-server, but never in CI
    ```text                      is only shown

In what a command must say, `...` stands for anything, and some spaces are as good as others (tables are as wide as
what is in them). The site of the pages has port 8000; here it gets a free one.
"""

from __future__ import annotations

import doctest
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.frontier.conftest import redis_binary

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.md")))
SHOWN_PORT = "8000"
COMMAND_SECONDS = 120
# What README promises of the clone itself; .ci/run runs these, and the environment is that of the tests.
ELSEWHERE = ("./scripts/demo", "./scripts/test", ". .venv/bin/activate")
FENCE = re.compile(r"^```(?P<language>\w*)(?P<words>[^\n`]*)\n(?P<text>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
OPTIONS = {
    "python": {"file", "append", "before"},
    "pycon": set(),
    "console": {"exit", "background", "redis"},
    "text": {"file"},
}


@dataclass(frozen=True)
class Block:
    place: str
    language: str
    options: dict[str, str]
    text: str

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command of a console block, and what is shown below it."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            while command.endswith("\\"):
                line, _, shown = shown.partition("\n")
                command = f"{command}\n{line}"
            yield command, shown


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order. Raises ValueError for one that this convention does not know."""
    text = page.read_text("utf-8")
    found = []
    for match in FENCE.finditer(text):
        options = dict(word.partition("=")[::2] for word in match["words"].split())
        place = f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}"
        if match["language"] not in OPTIONS or not options.keys() <= OPTIONS[match["language"]]:
            raise ValueError(f"{place}: nobody runs a block marked {match['language']!r} {match['words'].strip()!r}")
        found.append(Block(place, match["language"], options, match["text"]))
    if text.count("\n```") + text.startswith("```") != 2 * len(found):
        raise ValueError(f"{page.name}: a fence that is not closed, or is indented")
    return found


class Reader:
    """Does what a page says, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._top = folder
        self._here = folder
        self._port = free_port()
        self._servers: list[subprocess.Popen[str]] = []
        self._names: dict[str, object] = {}
        for part in ("examples", "benchmarks"):
            (folder / part).symlink_to(ROOT / part)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_PLUS_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
        self._environ = {**environ, "PATH": path, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "TERM": "dumb"}

    def read(self, block: Block) -> None:
        if "file" in block.options:
            self._write(block)
        elif "before" in block.options:
            compile(block.text, block.place, "exec")
        elif block.language == "python":
            self._run(block.place, f"{sys.executable} -c {quoted(self._ported(block.text))}", 0)
        elif block.language == "pycon":
            self._doctest(block)
        elif block.language == "console" and ("redis" not in block.options or has_redis()):
            self._console(block)

    def close(self) -> None:
        for server in self._servers:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(10)
            if server.stdout:
                server.stdout.close()

    def _ported(self, text: str) -> str:
        return re.sub(rf"\b{SHOWN_PORT}\b", str(self._port), text)

    def _write(self, block: Block) -> None:
        file = self._here / block.options["file"]
        before = file.read_text("utf-8") + "\n" if "append" in block.options else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(before + self._ported(block.text), "utf-8")

    def _doctest(self, block: Block) -> None:
        said: list[str] = []
        test = doctest.DocTestParser().get_doctest(block.text, self._names, block.place, block.place, 0)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append, clear_globs=False)
        self._names.update(test.globs)
        assert not said, "".join(said)

    def _console(self, block: Block) -> None:
        commands = [one for one in block.commands() if one[0] not in ELSEWHERE]
        for number, (command, shown) in enumerate(commands, 1):
            command, shown = self._ported(command), self._ported(shown)
            if "background" in block.options:
                self._start(block.place, command, shown)
            elif command.startswith("cd "):
                self._here = self._here / command.removeprefix("cd ")
                assert self._here.is_dir(), f"{block.place}: {command}"
            else:
                is_last = number == len(commands)
                said = self._run(block.place, command, int(block.options.get("exit", 0)) if is_last else 0)
                if shown.strip():
                    compare(block.place, command, shown, said)

    def _run(self, place: str, command: str, code: int) -> str:
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self._here,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=COMMAND_SECONDS,
        )
        assert ran.returncode == code, f"{place}: $ {command}\nexit code {ran.returncode}, not {code}\n{ran.stdout}"
        return ran.stdout

    def _start(self, place: str, command: str, shown: str) -> None:
        """A server says something when it is ready; that is waited for."""
        server = subprocess.Popen(
            ["bash", "-c", f"exec {command.removesuffix(' &')}"],
            cwd=self._here,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        self._servers.append(server)
        assert server.stdout is not None
        compare(place, command, shown, server.stdout.readline())


def compare(place: str, command: str, shown: str, said: str) -> None:
    """Raises AssertionError with both if a command did not say what is shown."""
    wanted, got = _squeezed(shown), _squeezed(said)
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else _pattern(line) for line in wanted.splitlines())
    assert re.fullmatch(pattern, got), f"{place}: $ {command}\n--- shown:\n{wanted}--- said:\n{got}"


def _squeezed(text: str) -> str:
    return "".join(f"{' '.join(line.split())}\n" for line in text.strip().splitlines())


def _pattern(line: str) -> str:
    return ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"


def has_redis() -> bool:
    return redis_binary() is not None or os.environ.get("CI") == "true"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
