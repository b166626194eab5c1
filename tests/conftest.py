"""What all tests share. The framework comes first: it patches the standard library for gevent."""

from __future__ import annotations

import scrapy_plus  # noqa: F401

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_plus.conf import project
from scrapy_plus.conf import settings as facade

if os.environ.get("WITHOUT_HIREDIS"):
    sys.modules["hiredis"] = None  # type: ignore[assignment]  # redis-py then reads and writes by itself

DOCS = (Path("/usr/share/doc/python3-doc/html"), *sorted(Path("/usr/share/doc").glob("python3.*/html")))


def documentation_folder() -> Path | None:
    """Where Debian's python3-doc has its pages."""
    return next((folder for folder in DOCS if (folder / "index.html").exists()), None)


@pytest.fixture(autouse=True)
def outside_of_projects(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fresh start for each test: no settings in use, no project entered, nothing of an earlier one imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(project, "_entered", None)
    monkeypatch.setattr(facade, "_active", None)
    monkeypatch.setattr(facade, "_said", set())
    before = set(sys.modules)
    yield
    for name in {"settings", "spiders", "hashspiders", "helpers"} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def hears_signals() -> Iterator[None]:
    """Processes that are started hear of the end of their terminal and of Ctrl-C, also where these tests were told not
    to: by nohup, or in the background of a script."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, hangup)
    signal.signal(signal.SIGINT, interrupt)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `system` run where nginx and python3-doc are; elsewhere they are skipped, but never in CI."""
    if item.get_closest_marker("system") is None:
        return
    missing = [] if shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") else ["nginx"]
    missing += [] if documentation_folder() else ["python3-doc"]
    if missing:
        reason = f"needs {' and '.join(missing)}: apt-get install {' '.join(missing)}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.fixture(scope="session")
def python_docs() -> Path:
    """The folder of a real documentation site, with index.html at its top (mark the test `system`)."""
    folder = documentation_folder()
    assert folder is not None, "python3-doc is not installed; is the test marked `system`?"
    return folder
