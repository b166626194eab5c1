"""A login by one process opens the pages of all others, and those of a later run; real processes, a real Redis."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest

from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.torture.actors import wait_until
from tests.frontier.conftest import OwnRedis, own_redis  # noqa: F401
from tests.transport.servers import Conversation, Server, serving

PAGES = 60
SECONDS = 60.0
SPIDER = """
import os
from scrapy_plus import Request, Spider

class Pid:
    def process_request(self, request):
        request.headers["X-Pid"] = str(os.getpid())

class Members(Spider):
    name = "members"

    def start_requests(self):
        yield Request(os.environ["SITE"] + ("login" if "AGAIN" not in os.environ else "p/again"))

    def parse(self, response):
        yield {"url": response.url}
        for number in range(PAGES if response.url.endswith("login") else 0):
            yield Request(f"{os.environ['SITE']}p/{number}", parse="parse_page")

    def parse_page(self, response):
        yield {"url": response.url}
""".replace("PAGES", str(PAGES))
MAIN = "from scrapy_plus import run\nrun()\n"


class Members:
    """The site: /login gives a cookie, all else answers 403 without it; `asked` has who asked for what, and how."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []

    def script(self, conversation: Conversation) -> None:
        while head := conversation.hear().decode("latin-1"):
            path = head.split(" ")[1]
            found = re.search(r"^X-Pid: (\d+)", head, re.MULTILINE | re.IGNORECASE)
            has_cookie = "session=secret" in head
            self.asked.append((path, found[1] if found else "", has_cookie))
            gevent.sleep(0.15)  # else one process is done before the other has looked
            if path == "/login":
                conversation.answer(b"in", b"Set-Cookie: session=secret; Path=/; Max-Age=3600")
            else:
                conversation.answer(b"page", status=b"200 OK" if has_cookie else b"403 Forbidden")


@pytest.fixture
def members() -> Iterator[tuple[Members, Server]]:
    site = Members()
    with serving(site.script) as server:
        yield site, server


def write_project(folder: Path, redis: OwnRedis, **settings: object) -> None:
    lines = {
        "SPIDERS": ["members.Members"], "DOWNLOADER_MIDDLEWARES": ["members.Pid"], "PROJECT_NAME": folder.name,
        "REDIS_URL": f"unix://{redis.socket}", "SCHEDULER_PERSIST": True, "CONCURRENT_REQUESTS": 4,
        "PANEL": False, **settings,
    }  # fmt: skip
    (folder / "settings.py").write_text("".join(f"{name} = {value!r}\n" for name, value in lines.items()))
    (folder / "members.py").write_text(SPIDER)
    (folder / "main.py").write_text(MAIN)


def start(folder: Path, url: str, *words: str, **environ: str) -> subprocess.Popen[bytes]:
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "main.py", *words], cwd=folder, stdout=log, stderr=log,
            env={**os.environ, "SITE": url, **environ},
        )  # fmt: skip


def wait(folder: Path, *processes: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while any(process.poll() is None for process in processes) and time.monotonic() < end:
        gevent.sleep(0.05)
    for process in processes:
        if process.poll() is None:
            process.kill()
    codes = [process.wait() for process in processes]
    assert codes == [0] * len(processes), (folder / "log").read_text()[-4000:]


@pytest.mark.parametrize("shares", [True, False])
def test_two_slaves_share_a_login_when_they_are_told_to(shares, members, own_redis, tmp_path):  # noqa: F811
    site, server = members
    write_project(tmp_path, own_redis, COOKIES_SHARED=shares)
    slaves = [start(tmp_path, server.url, "slave"), start(tmp_path, server.url, "slave")]
    store = RedisFrontier(own_redis.client(), f"{{{tmp_path.name}:members}}")
    assert wait_until(lambda: len(store.nodes()) == 2, SECONDS), (tmp_path / "log").read_text()
    wait(tmp_path, start(tmp_path, server.url, "master"), *slaves)
    pages = [one for one in site.asked if one[0].startswith("/p/")]
    assert len(pages) == PAGES
    login = next(pid for path, pid, _ in site.asked if path == "/login")
    by_the_other = [has_cookie for _, pid, has_cookie in pages if pid != login]
    assert by_the_other, "one process did all the work; nothing is shown"
    assert set(by_the_other) == {shares}
    assert all(has_cookie for _, pid, has_cookie in pages if pid == login)


def test_a_later_run_of_the_crawl_has_the_cookies_of_the_first(members, own_redis, tmp_path):  # noqa: F811
    site, server = members
    write_project(tmp_path, own_redis, COOKIES_SHARED=True)
    wait(tmp_path, start(tmp_path, server.url))
    wait(tmp_path, start(tmp_path, server.url, "--again", AGAIN="1"))
    assert [has_cookie for path, _, has_cookie in site.asked if path == "/p/again"] == [True]
