"""The Lua scripts: one verb, one file, below `lua/`; loaded once, with what they share before their text."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "lua"
SHARED = ("prelude", "lending", "mending")
# What stands before a verb's text; all others have the prelude only.
_BEFORE = {
    "open": (),
    "lease": ("prelude", "lending"),
    "commit": ("prelude", "lending"),
    **dict.fromkeys(("mend", "mend_sites", "check", "check_sites"), ("prelude", "mending")),
}


class Script(NamedTuple):
    """A verb's whole text and the name under which a server keeps it."""

    name: str
    text: str
    sha: str


@cache
def load(name: str, folder: Path = FOLDER) -> Script:
    """The script of a verb.."""
    parts = [*_BEFORE.get(name, ("prelude",)), name]
    text = "\n".join((folder / f"{part}.lua").read_text("utf-8") for part in parts)
    return Script(name, text, sha1(text.encode()).hexdigest())


def names(folder: Path = FOLDER) -> list[str]:
    """All verbs."""
    return sorted(path.stem for path in folder.glob("*.lua") if path.stem not in SHARED)
