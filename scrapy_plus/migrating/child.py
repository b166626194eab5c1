"""The process that reads pickles, as seen from here: bytes in, plain values out, or a reason."""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("unpickle.py")


class Unreadable(ValueError):
    """A pickle that cannot be read as data."""


@dataclass(frozen=True, slots=True)
class Object:
    """What a pickle said of an object whose class was not loaded."""

    name: str
    arguments: list[Any] = field(default_factory=list)
    state: dict[Any, Any] = field(default_factory=dict)


class Unpickler:
    """Reads pickles in a process that knows nothing of Redis; one that a pickle has killed is started again."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def load(self, data: bytes) -> Any:
        """The value. Raises Unreadable."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(struct.pack(">I", len(data)) + data)
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        if not line:
            self.close()
            raise Unreadable("the process that read it died of it")
        word, value = json.loads(line)
        if word != "ok":
            raise Unreadable(value)
        return _value(value)

    def _start(self) -> subprocess.Popen[bytes]:
        # Isolated (-I), and with nothing of our environment: no address or password of a Redis is in it.
        environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        return subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    [(kind, inner)] = value.items()
    if kind == "b":
        return base64.b64decode(inner)
    if kind == "l":
        return [_value(one) for one in inner]
    if kind == "d":
        return {_key(_value(key)): _value(one) for key, one in inner}
    name, arguments, state = inner
    return Object(name, [_value(one) for one in arguments], _value(state))


def _key(key: Any) -> Any:
    return key if isinstance(key, str | bytes | int | float | bool | None) else repr(key)
