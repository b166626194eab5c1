"""Projects that a test writes into an empty folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


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
