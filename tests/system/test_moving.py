"""A crawl that is stopped half way and taken to another server: nothing is lost, nothing is asked twice."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from tests.redis.servers import binaries, redis_server
from tests.redis.test_client import KEEPING
from tests.system.test_persistence import Project, shop  # noqa: F401

PAGES = 200
FOUND = binaries()
pytestmark = pytest.mark.skipif(not FOUND, reason="needs redis-server: apt-get install redis-server")


def say(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy_plus", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)


def configure(folder: Path, port: int) -> None:
    text = (folder / "settings.py").read_text("utf-8").partition("REDIS_URL")[0]
    (folder / "settings.py").write_text(
        f'{text}REDIS_URL = "redis://127.0.0.1:{port}"\nPROJECT_NAME = "shop"\n', "utf-8"
    )


@pytest.fixture
def servers(tmp_path):
    binary = next(iter(FOUND.values()))
    with (
        redis_server(binary, tmp_path / "old", *KEEPING) as old,
        redis_server(binary, tmp_path / "new", *KEEPING) as new,
    ):
        yield old, new


@pytest.fixture
def stopped(shop, tmp_path, servers) -> Project:  # noqa: F811
    """A crawl on the old server, stopped half way."""
    project = Project(tmp_path, shop.base, pages=PAGES)
    configure(tmp_path, servers[0])
    process = project.start()
    shop.wait_until_asked(50)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    return project


def test_a_crawl_stopped_half_way_finishes_on_another_server(stopped, shop, tmp_path, servers):  # noqa: F811
    old, new = servers
    dumped = say(tmp_path, "dump", "--items", "crawl.jsonl.gz")
    assert dumped.returncode == 0, dumped.stderr
    with redis.Redis(port=old) as client:
        client.flushall()
    configure(tmp_path, new)
    loaded = say(tmp_path, "load", "crawl.jsonl.gz")
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stderr.replace("from", "in") == dumped.stderr
    assert say(tmp_path, "doctor", "--whole").returncode == 0
    code, errors = stopped.run()
    assert code == 0, errors
    assert sorted(stopped.items()) == list(range(1, PAGES + 1))
    assert len(shop.asked) == len(set(shop.asked)) == PAGES
    with redis.Redis(port=old) as client:
        assert client.dbsize() == 0, "nobody went back"


def test_what_is_wrong_with_a_dump_is_said_in_one_line(stopped, tmp_path, servers):
    assert say(tmp_path, "dump", "crawl.gz").returncode == 0
    again = say(tmp_path, "dump", "crawl.gz")
    assert (again.returncode, again.stderr) == (
        2,
        "dump: crawl.gz is there already; name another file, or say --force\n",
    )
    full = say(tmp_path, "load", "crawl.gz")
    assert full.returncode == 2 and full.stderr.endswith("is not empty; --replace forgets it first\n")
    lines = gzip.decompress((tmp_path / "crawl.gz").read_bytes()).splitlines(keepends=True)
    (tmp_path / "short").write_bytes(b"".join(lines[:-1]))
    (tmp_path / "cut.gz").write_bytes((tmp_path / "crawl.gz").read_bytes()[:-50])
    (tmp_path / "other").write_text(json.dumps({"tea": "green"}), "utf-8")
    for name, words in (("short", "it has no end"), ("cut.gz", "cannot be read to its end"), ("other", "is no dump")):
        said = say(tmp_path, "load", "--replace", name)
        assert said.returncode == 2 and words in said.stderr and said.stderr.count("\n") == 1, said.stderr
    assert say(tmp_path, "load", "--replace", "crawl.gz").returncode == 0
    missing = say(tmp_path, "dump", "none/crawl.gz")
    assert missing.returncode == 2 and "cannot be written" in missing.stderr
    assert sorted(path.name for path in tmp_path.glob("*.part")) == []
