"""Which requests a process is working on, told so that it can still be read when the process is dead."""

from __future__ import annotations

import mmap
from pathlib import Path

ID_BYTES = 20
_NOBODY = bytes(ID_BYTES)


class StartedFile:
    """A small file in memory, `slots` ids of 20 bytes: what a killed process was doing stays in it.

    Its supervisor reads it and blames only these requests for the death. More than `slots` at a time are not told.
    """

    def __init__(self, path: Path, slots: int) -> None:
        path.write_bytes(_NOBODY * slots)
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), slots * ID_BYTES)
        self._free = list(range(slots))
        self._slot_of: dict[bytes, int] = {}

    def add(self, id: bytes) -> None:
        """Work on this request begins."""
        if self._free and id not in self._slot_of:
            self._slot_of[id] = slot = self._free.pop()
            self._memory[slot * ID_BYTES : (slot + 1) * ID_BYTES] = id

    def remove(self, id: bytes) -> None:
        """Work on this request is over."""
        slot = self._slot_of.pop(id, None)
        if slot is not None:
            self._memory[slot * ID_BYTES : (slot + 1) * ID_BYTES] = _NOBODY
            self._free.append(slot)


def read_started(path: Path) -> list[bytes]:
    """The ids that were being worked on when the process ended; none if it never began."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    ids = (content[at : at + ID_BYTES] for at in range(0, len(content), ID_BYTES))
    return [id for id in ids if id != _NOBODY]
