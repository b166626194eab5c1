"""An environment for each rival, made once: `python benchmarks/venvs.py FOLDER` makes them all beforehand."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = {
    "scrapy": ("scrapy", "lxml"),
    "scrapy_redis": ("scrapy", "scrapy-redis", "hiredis", "lxml"),
    "feapder": ("feapder", "packaging", "lxml"),  # which it imports and does not ask for
    "crawlee": ("crawlee[parsel,httpx]", "lxml"),
    "ruia": ("ruia", "aiohttp==3.8.6", "uvloop", "lxml"),  # it does not work with a newer aiohttp
}


def python_of(folder: Path, name: str) -> Path:
    return folder / name / "bin" / "python"


def make(folder: Path, name: str) -> str:
    """Makes the environment of a rival if it is not there; answers why it could not be, or nothing."""
    if python_of(folder, name).exists():
        return ""
    venv.create(folder / name, with_pip=True)
    command = [str(python_of(folder, name)), "-m", "pip", "install", "--quiet", *PACKAGES[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    python_of(folder, name).unlink()
    return f"not installed: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}"


if __name__ == "__main__":
    for one in PACKAGES:
        print(one, make(Path(sys.argv[1]), one) or "is there", flush=True)
