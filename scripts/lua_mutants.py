"""The mutants of the frontier's Lua scripts, and which of their lines are run; see mutate-lua."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LUA = Path("scrapy_plus/frontier/lua")
EQUIVALENT = Path("tests/frontier/equivalent_mutants.txt")
HIT = "redis.call('SETBIT', '{hits}', %d, 1); "
CAN_BE_HIT = re.compile(r"\s*(local (?!function)|if |for |return\b|[\w.]+\(|[\w.]+(\[[^]]+\])?(, [\w.]+)* = )")
GOES_ON = (",", "(", "{", "=", " and", " or", "..", "+", "-")
SWAPS = [
    ("==", "~="), ("~=", "=="), ("<=", "<"), (">=", ">"), (" < ", " <= "), (" > ", " >= "), (" + ", " - "),
    (" - ", " + "), (" and ", " or "), (" or ", " and "), ("not ", ""), ("max(", "min("), ("min(", "max("),
    (" 1", " 2"), (" 0", " 1"), ("true", "false"), ("false", "true"), ("'XX', ", ""), ("ZADD", "ZREM"),
    ("HSETNX", "HSET"), ("'1'", "'0'"),
]  # fmt: skip
STATEMENT = re.compile(
    r"\s*(call\(|[\w.]+(\[[^]]+\])? = |place\(|touched|reopen\(|raise_version\(|wrap_up\(|write_indexes\(|if .* end$)"
)


class Mutant(NamedTuple):
    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip() or '(nothing)'}"

    @property
    def key(self) -> str:
        """What the mutant is called in the list of equivalent ones: without its line's number, which moves."""
        return f"{self.file}: {self.before.strip()}  ->  {self.after.strip() or '(nothing)'}"


def mutants(copy: Path, files: list[str]) -> list[Mutant]:
    found = []
    for path in sorted((copy / LUA).glob("*.lua")):
        if files and path.stem not in files:
            continue
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            found += [Mutant(path.name, number, line, changed) for changed in changes(line)]
    return found


def changes(line: str) -> list[str]:
    """The line without its statement, and with each operator, number and word that can be turned around."""
    code = line.split("--")[0]
    if not code.strip() or code.lstrip().startswith(("local function", "end", "else", "for ", "function")):
        return []
    changed = []
    if STATEMENT.match(code):
        changed.append("")
    for old, new in SWAPS:
        for match in re.finditer(re.escape(old), code):
            if code[: match.start()].count("'") % 2:
                continue  # the words of a message
            changed.append(code[: match.start()] + new + code[match.end() :])
    return [one for one in dict.fromkeys(changed) if one != code]


def equivalent(copy: Path) -> set[str]:
    """The keys of those that are listed."""
    lines = (copy / EQUIVALENT).read_text("utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


class Lines:
    """The scripts, each of whose lines tells when it is run, for as long as this is open."""

    def __init__(self, copy: Path) -> None:
        self._folder = copy / LUA
        self._numbers: dict[tuple[str, int], int] = {}
        self._before: dict[Path, str] = {}

    def __enter__(self) -> Lines:
        for path in sorted(self._folder.glob("*.lua")):
            self._before[path] = path.read_text("utf-8")
            if path.stem != "open":  # its first write must be what it is
                path.write_text("\n".join(self._telling(path)) + "\n", "utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        for path, text in self._before.items():
            path.write_text(text, "utf-8")

    def _telling(self, path: Path) -> Iterator[str]:
        goes_on = False
        for place, line in enumerate(self._before[path].splitlines(), 1):
            code = line.split("--")[0].rstrip()
            if code and not goes_on and CAN_BE_HIT.match(code):
                number = self._numbers[path.name, place] = len(self._numbers)
                yield HIT % number + line
            else:
                yield line
            goes_on = code.endswith(GOES_ON) if code else goes_on

    def hit(self, client: Any) -> set[tuple[str, int]]:
        """Those that were run since the last call."""
        bits = client.get("{hits}") or b""
        client.delete("{hits}")
        return {line for line, n in self._numbers.items() if n // 8 < len(bits) and bits[n // 8] >> (7 - n % 8) & 1}

    def __contains__(self, line: tuple[str, int]) -> bool:
        return line in self._numbers
