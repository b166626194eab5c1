"""Several sources of settings become one: the higher wins, and every mistake in any of them is found."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy_plus.conf import default_settings
from scrapy_plus.conf.elsewhere import is_harmless, no_effect
from scrapy_plus.conf.options import Option, Unfit, boolean, listed, mapped, number, text
from scrapy_plus.conf.project import line_of
from scrapy_plus.conf.words import nearest

OPTIONS: dict[str, Option] = {name: getattr(default_settings, name) for name in default_settings.__all__}
CANONICAL = {alias: name for name, option in OPTIONS.items() for alias in (name, *option.aliases)}
_RANKS = {"settings.py": 0, "spider": 1, "environment": 2, "command line": 3, "crawl(...)": 3}


class Added(dict[Any, Any]):
    """A dict that is laid over the value below it, where any other value would replace it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of settings: settings.py, spider NAME, environment, command line or crawl(...)."""

    source: str
    values: Mapping[str, Any]
    file: Path | None = None

    @property
    def rank(self) -> int:
        return _RANKS["spider" if self.source.startswith("spider ") else self.source]

    def where(self, name: str) -> str:
        """For a message: the place where somebody wrote `name`."""
        if self.source == "environment":
            return f"environment, SCRAPY_PLUS_{name}"
        if self.source == "settings.py":
            line = line_of(self.file, name) if self.file else None
            return f"settings.py, line {line}" if line else "settings.py"
        return f"custom_settings of {self.source}" if self.source.startswith("spider ") else self.source


@dataclass(slots=True)
class Merged:
    """Values and their sources by name; what is wrong (`problems`) and what deserves a word (`notes`)."""

    values: dict[str, Any]
    sources: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(layers: Iterable[Layer]) -> Merged:
    """The layers, lowest first, over the defaults."""
    merged = Merged({name: deepcopy(option.default) for name, option in OPTIONS.items()})
    for layer in layers:
        _lay(merged, layer)
    return merged


def _lay(merged: Merged, layer: Layer) -> None:
    taken: dict[str, str] = {}
    idle: dict[str, list[str]] = {}
    for name, value in layer.values.items():
        if isinstance(value, Option):
            continue  # came in by `from scrapy_plus.conf.default_settings import *`
        if name in CANONICAL:
            _take(merged, layer, name, value, taken)
        elif advice := no_effect(name):
            if not is_harmless(name, value):
                idle.setdefault(advice, []).append(name)
        elif (meant := nearest(name.upper(), CANONICAL)) and not _is_plural(name, meant, value):
            merged.problems.append(
                f"{name} ({layer.where(name)}): there is no such setting; did you mean {CANONICAL[meant]}?"
            )
        elif name.isupper():
            _take_own(merged, layer, name, value)
        else:
            where = layer.where(name)
            merged.problems.append(f"{name} ({where}): settings have upper-case names, like {name.upper()}")
    for advice, names in idle.items():
        merged.notes.append(f"{', '.join(names)} ({layer.where(names[0])}): no effect here; {advice}")


def _take(merged: Merged, layer: Layer, written: str, value: Any, taken: dict[str, str]) -> None:
    name = CANONICAL[written]
    read = _read(merged, layer, written, OPTIONS[name], value)
    if name in taken and merged.values[name] != read:
        merged.problems.append(
            f"{written} ({layer.where(written)}): the same setting as {taken[name]}, but not its value; keep one"
        )
    if layer.rank == 1 and not OPTIONS[name].one_spider:
        merged.notes.append(f"{written} ({layer.where(written)}): is one for all spiders; set it in settings.py")
    taken[name] = written
    merged.values[name] = {**merged.values[name], **read} if isinstance(value, Added) else read
    merged.sources[name] = layer.source


def _read(merged: Merged, layer: Layer, written: str, option: Option, value: Any) -> Any:
    try:
        return option.read(value)
    except Unfit as error:
        merged.problems.append(f"{written} ({layer.where(written)}): {error}")
    except (ValueError, TypeError, OverflowError, LookupError):
        merged.problems.append(f"{written} = {reprlib.repr(value)} ({layer.where(written)}): must be {option.wants}")
    return deepcopy(option.default)


def _take_own(merged: Merged, layer: Layer, name: str, value: Any) -> None:
    """A constant of the project. A word from outside becomes what the project's own value is: "3307" a number."""
    merged.values[name] = _like(merged.values.get(name), value) if layer.rank >= 2 else value
    merged.sources[name] = layer.source


def _like(model: Any, value: Any) -> Any:
    any_of = {bool: boolean(), int: number(whole=True), float: number(), list: listed(text(), "")}
    any_of[dict] = mapped("", lambda key, member: (key, member))
    kind = any_of.get(type(model))
    try:
        return kind.read(value) if kind else value
    except (ValueError, TypeError):
        return value


def _is_plural(name: str, meant: str, value: Any) -> bool:
    """A list beside a setting that takes one: USER_AGENTS is no slip of USER_AGENT but a constant of the project."""
    takes_many = isinstance(OPTIONS[CANONICAL[meant]].default, list)
    return name == f"{meant}S" and isinstance(value, (list, tuple)) and not takes_many
