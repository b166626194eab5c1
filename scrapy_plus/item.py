"""Items: what a spider yields that is no request."""

from __future__ import annotations

import dataclasses
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class Item:
    """A wrapper around whatever was scraped; `data` gives it back, and a mapping inside can be read like a dict.

    A plain dict or a dataclass serves as well, and is the better choice for a new spider: this class is for those who
    are used to it, and for what is no set of fields, as in Item("text"). `Item(name="tea")` makes the mapping.
    """

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
        return self._mapping().get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._mapping()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())

    def __bool__(self) -> bool:
        # As a dict: false when empty. Without this, `if item` would ask for the length of what has none.
        return not isinstance(self._data, Mapping) or bool(self._data)

    def keys(self) -> KeysView[Any]:
        return self._mapping().keys()

    def values(self) -> ValuesView[Any]:
        return self._mapping().values()

    def items(self) -> ItemsView[Any, Any]:
        return self._mapping().items()

    def _mapping(self) -> Mapping[Any, Any]:
        if not isinstance(self._data, Mapping):
            raise TypeError(f"this Item holds a {type(self._data).__name__}, which has no fields; read it as item.data")
        return self._data

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
