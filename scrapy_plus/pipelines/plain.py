"""Values as files can hold them: dates, decimals, bytes, sets and nested items as JSON; one value as a CSV cell."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import logging
import math
import pathlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any

from scrapy_plus.item import Item, as_dict

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d+)*|\.\d+)(?:[eE][+-]?\d+)?%?").fullmatch
# What a spreadsheet takes for a formula (OWASP, "CSV Injection"), the full-width forms of East Asian input included.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
_warned: set[type] = set()


def to_json(fields: Mapping[str, Any]) -> str:
    """One line of JSON. NaN and infinity, which JSON does not know, become null."""
    try:
        return json.dumps(fields, ensure_ascii=False, allow_nan=False, default=plain)
    except (ValueError, TypeError):
        # Rare, hence not done at once: a NaN, or a mapping with keys that JSON cannot have.
        return json.dumps(_plain_throughout(fields), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """The nearest thing that JSON has a word for; its members may need the same again."""
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, decimal.Decimal | uuid.UUID | pathlib.PurePath):
        return str(value)  # a float would change the digits of a price
    return _plain_container(value)


def _plain_container(value: Any) -> Any:
    if isinstance(value, Item | Mapping) or hasattr(value, "__attrs_attrs__") or hasattr(value, "model_dump"):
        return as_dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_dict(value)
    if isinstance(value, Set):
        return sorted(value, key=repr)  # equal items become equal lines
    if isinstance(value, Sequence | Iterator | ValuesView):
        return list(value)
    if type(value) not in _warned:
        _warned.add(type(value))
        kind = type(value).__name__
        log.warning("items hold values of type %s, stored as their text; give a string, number, list or dict", kind)
    return str(value)


def _plain_throughout(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(plain_key): _plain_throughout(one) for plain_key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_throughout(one) for one in value]
    return _plain_throughout(plain(value))


def to_cell(value: Any, *, safe: bool) -> str:
    """A CSV cell: text as it is, nothing for None, JSON for what is nested. `safe`: no text is run as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    if not isinstance(value, str):
        value = plain(value)
        if not isinstance(value, str):
            return json.dumps(_plain_throughout(value), ensure_ascii=False, allow_nan=False)
    if "\0" in value:
        value = value.replace("\0", "\ufffd")  # few readers of CSV take a NUL, and Python 3.10 cannot write it
    if safe and value.startswith(_FORMULA) and not _NUMBER(value):
        return f"'{value}"
    return value
