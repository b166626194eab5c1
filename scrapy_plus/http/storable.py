"""Which values a stored request may carry, and how they are written where JSON has no word for them."""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Callable
from typing import Any

from scrapy_plus.errors import NotStorable
from scrapy_plus.item import Item

MAX_DEPTH = 32
_TAG = "$"

_PLAIN = frozenset({str, int, float, bool, type(None)})
_TO_TAGGED: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode("ascii")),
    tuple: ("tuple", list),
    # In one order: the same request is the same bytes in every process.
    set: ("set", lambda value: sorted(value, key=repr)),
    frozenset: ("frozenset", lambda value: sorted(value, key=repr)),
    datetime.datetime: ("datetime", datetime.datetime.isoformat),
    datetime.date: ("date", datetime.date.isoformat),
    decimal.Decimal: ("decimal", str),
    Item: ("item", lambda item: item.data),
}
_FROM_TAGGED: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "decimal": decimal.Decimal,
    "item": Item,
    "dict": lambda pairs: {_hashable(key): value for key, value in pairs},
}


def check_storable(value: Any, field: str) -> None:
    """Returns if `value` can be stored; raises NotStorable naming the place, as in "meta['lock']"."""
    to_plain(value, field)


def to_plain(value: Any, field: str, depth: int = 0) -> Any:
    """`value` in JSON's words only: what JSON lacks becomes {"$": kind, "v": value}. Raises NotStorable."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if depth > MAX_DEPTH:
        raise NotStorable(f"{field}: nested deeper than {MAX_DEPTH} levels")
    if kind is list:
        return [to_plain(one, f"{field}[{i}]", depth + 1) for i, one in enumerate(value)]
    if kind is dict:
        return _dict_to_plain(value, field, depth)
    for known, (tag, convert) in _TO_TAGGED.items():
        if isinstance(value, known):
            return {_TAG: tag, "v": to_plain(convert(value), field, depth + 1)}
    for known in (str, int, float):  # subclasses, such as the strings that selectors give, are stored as their base
        if isinstance(value, known):
            return known(value)
    if isinstance(value, dict):
        return _dict_to_plain(value, field, depth)
    if isinstance(value, list):
        return to_plain(list(value), field, depth)
    raise NotStorable(f"{field}: a {kind.__module__}.{kind.__qualname__} cannot be stored in a queue; store plain data")


def _dict_to_plain(value: dict[Any, Any], field: str, depth: int) -> dict[str, Any]:
    if _TAG not in value and all(type(key) is str for key in value):
        return {key: to_plain(one, f"{field}[{key!r}]", depth + 1) for key, one in value.items()}
    pairs = [
        [to_plain(key, f"{field} key {key!r}", depth + 1), to_plain(one, f"{field}[{key!r}]", depth + 1)]
        for key, one in value.items()
    ]
    return {_TAG: "dict", "v": pairs}


def from_plain(value: Any) -> Any:
    """What `to_plain` was given. Raises ValueError or TypeError for what it never writes."""
    if type(value) is list:
        return [from_plain(one) for one in value]
    if type(value) is not dict:
        return value
    if _TAG not in value:
        return {key: from_plain(one) for key, one in value.items()}
    tag = value[_TAG]
    if tag not in _FROM_TAGGED or set(value) != {_TAG, "v"}:
        raise ValueError(f"unknown kind of value {tag!r}")
    return _FROM_TAGGED[tag](from_plain(value["v"]))


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
