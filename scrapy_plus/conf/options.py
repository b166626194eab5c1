"""What an option is: a default, a sentence, and a kind that knows which values are right.

A kind reads Python values (settings.py) and words (environment, command line) alike, and answers the value in its one
normal form, or raises ValueError with what it would like to see instead.
"""

from __future__ import annotations

import codecs
import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class Unfit(ValueError):
    """A value is wrong in a way that its kind can say better than "must be ..."."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`wants` completes "must be ..."; `read` answers the normal form of a value, or raises ValueError."""

    wants: str
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting. `aliases` are other names for it; `one_spider` says whether custom_settings may change it."""

    default: Any
    help: str
    kind: Kind
    unit: str = ""
    aliases: tuple[str, ...] = ()
    group: str = ""
    one_spider: bool = True

    def read(self, value: Any) -> Any:
        """The normal form of a value from settings.py, the environment or the command line; raises ValueError."""
        return self.kind.read(value)

    @property
    def wants(self) -> str:
        unit = {"s": " of seconds", "bytes": " of bytes"}.get(self.unit, "")
        return self.kind.wants.replace("number", f"number{unit}", 1)


# -- single values -----------------------------------------------------------------------------------------------------

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def boolean() -> Kind:
    """True or False, or a word for it."""

    def read(value: Any) -> bool:
        word = str(value).strip().lower()
        if isinstance(value, (bool, int, str)) and word in _TRUE + _FALSE:
            return word in _TRUE
        raise ValueError

    return Kind("True or False", read)


def number(low: float | None = None, high: float | None = None, *, whole: bool = False) -> Kind:
    """A finite number within bounds; a whole one if asked for."""

    def read(value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError
        found = float(value)
        if not math.isfinite(found) or (whole and not found.is_integer()):
            raise ValueError
        if (low is not None and found < low) or (high is not None and found > high):
            raise ValueError
        return int(found) if whole else found

    bounds = "" if low is None else f", {low} or more" if high is None else f" from {low} to {high}"
    return Kind(f"a {'whole ' if whole else ''}number{bounds}", read)


def text(wants: str = "a text") -> Kind:
    """Any string."""

    def read(value: Any) -> str:
        if isinstance(value, str):
            return value
        raise ValueError

    return Kind(wants, read)


def log_format() -> Kind:
    """A format of Python's logging that a record can be put into."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        try:
            logging.Formatter(value).format(logging.makeLogRecord({}))
        except (KeyError, ValueError, TypeError):
            raise ValueError from None
        return value

    return Kind("a format of Python's logging, like '%(levelname)s: %(message)s'", read)


def path() -> Kind:
    """The path of a file, as a string."""

    def read(value: Any) -> str:
        if (isinstance(value, str) and value) or hasattr(value, "__fspath__"):
            return str(value)
        raise ValueError

    return Kind("a path", read)


def choice(*words: str) -> Kind:
    """One of a few words, in any case; answered as it is spelled here."""
    known = {word.lower(): word for word in words}

    def read(value: Any) -> str:
        if isinstance(value, str) and value.strip().lower() in known:
            return known[value.strip().lower()]
        raise ValueError

    return Kind(f"one of {', '.join(map(repr, words))}", read)


def level() -> Kind:
    """The name of a log level; its number (logging.DEBUG) will do."""
    names = choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

    def read(value: Any) -> Any:
        return names.read(logging.getLevelName(value) if isinstance(value, int) else value)

    return Kind(names.wants, read)


def queue_order() -> Kind:
    """fifo, lifo or priority; class names of other frameworks are understood by how they end."""
    endings = {"FifoQueue": "fifo", "LifoQueue": "lifo", "PriorityQueue": "priority", "SpiderQueue": "fifo"}
    endings |= {"FifoMemoryQueue": "fifo", "LifoMemoryQueue": "lifo", "SpiderStack": "lifo"}
    names = choice("fifo", "lifo", "priority")

    def read(value: Any) -> Any:
        word = f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else value
        known = (order for ending, order in endings.items() if isinstance(word, str) and word.endswith(ending))
        return next(known, None) or names.read(word)

    return Kind(f"{names.wants} (or FifoQueue, LifoQueue, PriorityQueue)", read)


def optional(kind: Kind) -> Kind:
    """The same, or None; outside Python an empty word or `none` says it."""

    def read(value: Any) -> Any:
        if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null")):
            return None
        return kind.read(value)

    return Kind(f"{kind.wants}, or None", read)


# -- many values -------------------------------------------------------------------------------------------------------


def _members(value: Any) -> list[Any]:
    """A list of what is listed: JSON or comma-separated words, or any Python collection but a mapping."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [word.strip() for word in value.split(",") if word.strip()]
        value = json.loads(value)
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise ValueError
    return list(value)


def _mapping(value: Any) -> dict[Any, Any]:
    value = json.loads(value) if isinstance(value, str) and value.strip() else value or {}
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError


def listed(kind: Kind, wants: str) -> Kind:
    """A list whose members are all of one kind."""
    return Kind(wants, lambda value: [kind.read(member) for member in _members(value)])


def mapped(wants: str, read_pair: Callable[[Any, Any], tuple[Any, Any]]) -> Kind:
    """A dict; `read_pair` answers the normal form of a key and its value."""
    return Kind(wants, lambda value: dict(read_pair(key, member) for key, member in _mapping(value).items()))


def headers() -> Kind:
    """A dict of header names to values; a value of None leaves that header out."""

    def read(value: Any) -> dict[str, str]:
        return {str(name): str(content) for name, content in _mapping(value).items() if content is not None}

    return Kind("a dict of header names to values", read)


def components() -> Kind:
    """Classes or dotted names of them, in order: a list, or Scrapy's {name: number} (low first, None switches off).

    An object that is made already will do as well.
    """

    def read(value: Any) -> list[Any]:
        if isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("{")):
            numbers = {name: at for name, at in _mapping(value).items() if at is not None}
            value = sorted(numbers, key=lambda name: float(numbers[name]))
        return [_component(member) for member in _members(value)]

    return Kind('a list of classes or of "module.Class" names, or a dict of them to numbers', read)


def _component(value: Any) -> Any:
    is_dotted = isinstance(value, str) and "." in value.strip(".") and " " not in value
    is_plain = value is None or isinstance(value, (str, bytes, int, float, list, tuple, dict))
    if is_dotted or not is_plain:
        return value
    raise Unfit(f'{value!r} is no class and no "module.Class" name')


def fields() -> Kind:
    """Names of fields in order, or a dict of them to the titles that are written; None is all of them."""

    def read(value: Any) -> list[str] | dict[str, str]:
        if isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("{")):
            return {str(name): str(title) for name, title in _mapping(value).items()}
        return [text().read(member) for member in _members(value)]

    return optional(Kind("a list of fields, or a dict of fields to titles", read))


def encoding() -> Kind:
    """The name of a codec that Python has."""
    return Kind("an encoding such as utf-8", lambda value: codecs.lookup(value).name)


FORMATS = {"jsonl": "jsonl", "jl": "jsonl", "ndjson": "jsonl", "jsonlines": "jsonl", "json": "json", "csv": "csv"}
_FEED_KEYS = {
    "format": choice(*FORMATS),
    "fields": fields(),
    "overwrite": boolean(),
    "encoding": optional(encoding()),
}


def feed(target: Any, asked: Any) -> tuple[str, dict[str, Any]]:
    """The normal form of one entry of FEEDS: a path and its options; the format comes from the suffix if not given."""
    where = str(target).removeprefix("file://")
    if "://" in where:
        raise Unfit(f"{where!r}: items are written to local files only")
    given = {"format": asked} if isinstance(asked, str) else dict(asked or {})
    if where == "-":
        given = {"format": "jsonl", **given}
    if unknown := [key for key in given if key not in _FEED_KEYS]:
        raise Unfit(f"{where!r}: {unknown[0]!r} is not among {', '.join(_FEED_KEYS)}")
    word = str(given.pop("format", None) or where.rpartition(".")[2]).lower()
    if word not in FORMATS:
        raise Unfit(f"{where!r}: {word!r} is no format; there are jsonl, json and csv")
    return where, {"format": FORMATS[word], **{key: _part(where, key, value) for key, value in given.items()}}


def _part(where: str, key: str, value: Any) -> Any:
    try:
        return _FEED_KEYS[key].read(value)
    except (ValueError, TypeError, LookupError):
        raise Unfit(f"{where!r}: {key} = {value!r} must be {_FEED_KEYS[key].wants}") from None


def slot(name: Any, asked: Any) -> tuple[str, dict[str, float]]:
    """The normal form of one entry of DOWNLOAD_SLOTS: a domain or site, and its delay and concurrency."""
    reads = {"delay": number(0), "concurrency": number(0, whole=True)}
    if unknown := [key for key in asked if key not in reads]:
        raise Unfit(f"{name!r}: {unknown[0]!r} is not among {', '.join(reads)}")
    return str(name), {key: reads[key].read(value) for key, value in asked.items()}
