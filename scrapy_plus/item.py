"""Items: what a spider yields that is no request."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


class Item:
    """A wrapper around whatever was scraped; `data` gives it back, and a mapping inside can be read like a dict."""

    __slots__ = ("_data",)

    def __init__(self, data: Any = None, **fields: Any) -> None:
        self._data = {**(data or {}), **fields} if fields else data

    @property
    def data(self) -> Any:
        return self._data

    def __getitem__(self, key: Any) -> Any:
        return self._data[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value

    def get(self, key: Any, default: Any = None) -> Any:
        return self._data.get(key, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Item({self._data!r})"


def as_dict(item: Any) -> dict[str, Any]:
    """The item as a dict of field names to values: dict, Item, dataclass, attrs or pydantic; else {"data": item}."""
    if isinstance(item, Item):
        item = item.data
    if isinstance(item, Mapping):
        return {str(key): value for key, value in item.items()}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return dataclasses.asdict(item)
    if hasattr(item, "__attrs_attrs__"):
        return {field.name: getattr(item, field.name) for field in item.__attrs_attrs__}
    if hasattr(item, "model_dump"):
        return dict(item.model_dump())
    return {"data": item}
