"""Header fields: names without case, values in order, several to a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any


class Headers(MutableMapping[str, str]):
    """Header fields by name in any case. `headers[name]` joins several values by ", "; `getlist` gives them apart.

    Set-Cookie cannot be joined (RFC 9110 §5.3): there `headers[name]` is the last one. None is no value and left out.
    """

    __slots__ = ("_fields", "_is_shared")

    def __init__(self, fields: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        self._fields: dict[str, tuple[str, list[str]]] = {}
        self._is_shared = False
        if not fields:
            return
        if type(fields) is list:
            fields = self._add_texts(fields)
        for name, value in fields.items() if isinstance(fields, Mapping) else fields:
            for one in value if isinstance(value, list | tuple) else (value,):
                if one is not None:
                    self.add(name, one)

    def _add_texts(self, fields: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Adds what is text, as it comes from the wire, without a call for each; the fields from the first on that
        is not."""
        kept = self._fields
        for place, (name, value) in enumerate(fields):
            if type(name) is not str or type(value) is not str:
                return fields[place:]
            key = name.lower()
            if key in kept:
                kept[key][1].append(value)
            else:
                kept[key] = (name, [value])
        return []

    def add(self, name: str, value: Any) -> None:
        """Appends a value to those of `name`."""
        self._own()
        name = _text(name)
        kept = self._fields.get(key := name.lower())
        if kept is None:
            self._fields[key] = (name, [_text(value)])
        else:
            kept[1].append(_text(value))

    def getlist(self, name: str) -> list[str]:
        """All values of `name`, in order; empty if there is none."""
        kept = self._fields.get(_text(name).lower())
        return list(kept[1]) if kept else []

    def pairs(self) -> Iterator[tuple[str, str]]:
        """(name, value) as they were written, a repeated name repeated."""
        for name, values in self._fields.values():
            for value in values:
                yield name, value

    def copy(self) -> Headers:
        """The same fields; whoever is changed first, this one or the copy, gets some of its own."""
        copied = Headers()
        copied._fields = self._fields
        copied._is_shared = self._is_shared = True
        return copied

    @property
    def fixed(self) -> object | None:
        """Something that is the same for headers which have the same fields because they are copies of each other, and
        that stays what it is while somebody holds it; None if there is no copy."""
        return self._fields if self._is_shared else None

    def _own(self) -> None:
        if self._is_shared:
            self._fields = {key: (name, values[:]) for key, (name, values) in self._fields.items()}
            self._is_shared = False

    def __getitem__(self, name: str) -> str:
        key = _text(name).lower()
        values = self._fields[key][1]
        return values[-1] if len(values) == 1 or key == "set-cookie" else ", ".join(values)

    def __setitem__(self, name: str, value: Any) -> None:
        self._own()
        name = _text(name)
        values = value if isinstance(value, list | tuple) else (value,)
        self._fields[name.lower()] = (name, [_text(one) for one in values])

    def __delitem__(self, name: str) -> None:
        self._own()
        del self._fields[_text(name).lower()]

    def __contains__(self, name: object) -> bool:
        if type(name) is str:
            return name.lower() in self._fields
        return isinstance(name, str | bytes) and _text(name).lower() in self._fields

    def get(self, name: str, default: Any = None) -> Any:
        """What `headers[name]` gives, or `default` if there is no such field."""
        kept = self._fields.get(_text(name).lower())
        return default if kept is None else self[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._fields.values())

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            other = Headers(other) if not isinstance(other, Headers) else other
            return {key: kept[1] for key, kept in self._fields.items()} == {
                key: kept[1] for key, kept in other._fields.items()
            }
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Headers({list(self.pairs())!r})"


def _text(value: Any) -> str:
    """Bytes are read as latin-1, the only encoding in which no header byte is lost (RFC 9110 §5.5)."""
    return value.decode("latin-1") if isinstance(value, bytes) else value if type(value) is str else str(value)
