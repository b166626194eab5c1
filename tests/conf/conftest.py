"""A fresh start for each test: no settings in use, no project entered, nothing said yet."""

from __future__ import annotations

import sys

import pytest

from scrapy_plus.conf import project
from scrapy_plus.conf import settings as facade


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(project, "_entered", None)
    monkeypatch.setattr(facade, "_active", None)
    monkeypatch.setattr(facade, "_said", set())
    before = set(sys.modules)
    yield
    for name in {"settings", "spiders", "helpers"} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def write(tmp_path):
    """Writes a project: its settings.py and, as keywords, more files; answers the folder."""

    def write(text: str, folder: str = "shop", **files: str):
        path = tmp_path / folder
        path.mkdir(exist_ok=True)
        for name, content in {"settings": text, **files}.items():
            (path / f"{name}.py").write_text(content, "utf-8")
        return path

    return write
