"""A program of its own that reads pickles as data: no class is loaded and nothing in them is called.

Each pickle comes on standard input behind its length (4 bytes, big endian), and leaves as a line of JSON: ["ok", value]
or ["bad", reason]. It needs the standard library alone, has no connection to anything, and little memory and time; one
that is killed by a pickle takes no more than itself with it.
"""

from __future__ import annotations

import base64
import io
import json
import pickle
import resource
import signal
import struct
import sys
from typing import Any

MEMORY_BYTES = 1 << 30
SECONDS_EACH = 5
DEPTH = 50


class Stand:
    """Stands for an object of a class that is not loaded: its name, what it was made with, and its state."""

    name = ""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Stand:
        made = super().__new__(cls)
        made.arguments = list(arguments)
        made.state = dict(keywords)
        return made

    arguments: list[Any]
    state: dict[Any, Any]

    def __setstate__(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                self.state.update(part)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.state[key] = value

    def append(self, value: Any) -> None:
        self.arguments.append(value)

    def extend(self, values: Any) -> None:
        self.arguments.extend(values)


class Reader(pickle.Unpickler):
    """Whatever class or function a pickle names, it gets a stand-in."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        return type("Stand", (Stand,), {"name": f"{module_name}.{global_name}"})

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of itself")


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON, with what JSON has not in objects of one letter: b bytes, l list, d pairs, o stand-in."""
    if depth > DEPTH:
        raise ValueError("it is nested too deeply")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return {"b": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {"d": [[plain(key, depth + 1), plain(one, depth + 1)] for key, one in value.items()]}
    if isinstance(value, list | tuple | set | frozenset):
        return {"l": [plain(one, depth + 1) for one in value]}
    if isinstance(value, Stand):
        parts = [plain(one, depth + 1) for one in value.arguments], plain(value.state, depth + 1)
        return {"o": [value.name, *parts]}
    return {"o": [getattr(value, "name", type(value).__name__), [], {"d": []}]}


def read(data: bytes) -> list[Any]:
    signal.alarm(SECONDS_EACH)
    try:
        return ["ok", plain(Reader(io.BytesIO(data), encoding="bytes").load())]
    except MemoryError:
        return ["bad", "it takes too much memory"]
    except Exception as error:  # whatever a broken pickle leads to is its fault
        return ["bad", f"{type(error).__name__}: {error}"[:200]]
    finally:
        signal.alarm(0)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while len(head := sys.stdin.buffer.read(4)) == 4:
        data = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
        sys.stdout.write(json.dumps(read(data)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
