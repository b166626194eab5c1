"""The command line as people meet it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def python(*words: object, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs python with these words; the framework is that of the repository."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_PLUS_")}
    env = {**clean, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environ}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def cli(tmp_path: Path) -> Run:
    """Runs `scrapy-plus` with these words, in `cwd` or in a folder that is no project."""

    def cli(*words: object, cwd: Path = tmp_path, **environ: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "scrapy_plus", *words, cwd=cwd, **environ)

    return cli


DEMO = (ROOT / "scrapy_plus" / "templates" / "project" / "demo_site.py").read_text("utf-8")
SPIDERS = """
from scrapy_plus import Request, Spider
from scrapy_plus.conf.settings import GREETING

class First(Spider):
    name = "first"
    start_urls = ["http://demo.test/"]
    word = GREETING

    def parse(self, response):
        print("printed by a spider")
        yield {"spider": self.name, "word": self.word}

class Second(First):
    name = "second"

class Broken(First):
    name = "broken"

    def parse(self, response):
        raise ValueError("no such luck")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with three spiders and a site that answers without a network."""
    folder = tmp_path / "shop"
    (folder / "site").mkdir(parents=True)
    (folder / "site" / "index.html").write_text("<p>hello</p>", "utf-8")
    (folder / "demo_site.py").write_text(DEMO, "utf-8")
    (folder / "all_spiders.py").write_text(SPIDERS, "utf-8")
    (folder / "main.py").write_text("from scrapy_plus import run\nrun()\n", "utf-8")
    (folder / "settings.py").write_text(
        'SPIDERS = ["all_spiders.First", "all_spiders.Second", "all_spiders.Broken"]\n'
        'DOWNLOADER_MIDDLEWARES = ["demo_site.DemoSite"]\n'
        'GREETING = "hello"\n',
        "utf-8",
    )
    return folder
