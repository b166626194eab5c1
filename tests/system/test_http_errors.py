"""Which answers reach the callback and which the errback, with the crawl in memory and in Redis; a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import gevent
import pytest

from tests.frontier.conftest import OwnRedis, own_redis  # noqa: F401
from tests.transport.servers import Conversation, serving

SPIDER = """
import os
from scrapy_plus import Request, Spider

class Asks(Spider):
    name = "asks"

    def start_requests(self):
        for path, meta in ROWS:
            key = {"key": path + repr(meta)}
            yield Request(os.environ["SITE"] + path, errback="failed", meta=meta, filter=False, cb_kwargs=key)

    def parse(self, response, key):
        yield {"key": key, "to": "callback", "status": response.status}

    def failed(self, failure):
        yield {
            "key": failure.request.cb_kwargs["key"], "to": "errback",
            "status": failure.response.status if failure.response is not None else 0,
        }
"""
# path (its first three letters are the status), meta, who gets the answer, how often it is asked
ROWS = [
    ("200", {}, "callback", 1),
    ("204", {}, "callback", 1),
    ("404", {}, "errback", 1),
    ("500", {}, "errback", 2),
    ("503", {"dont_retry": True}, "errback", 1),
    ("404x", {"handle_httpstatus_list": [404]}, "callback", 1),
    ("403", {"handle_httpstatus_list": [404]}, "errback", 1),
    ("500x", {"handle_httpstatus_all": True}, "callback", 1),
    ("500y", {"handle_httpstatus_list": [500]}, "callback", 1),
    ("302", {"handle_httpstatus_list": [302]}, "callback", 1),
    ("302x", {"dont_redirect": True}, "errback", 1),
    ("410", {}, "callback", 1),
    ("502", {}, "callback", 2),
    ("502x", {"max_retry_times": 0}, "callback", 1),
]
SETTINGS = {
    "SPIDERS": ["asks.Asks"], "HTTPERROR_ALLOWED_CODES": [410, 502], "MAX_RETRY_TIMES": 1, "PANEL": False,
    "RETRY_BACKOFF_SECONDS": 0.01, "FEEDS": {"out.jsonl": {"format": "jsonl"}},
}  # fmt: skip


def answer(conversation: Conversation) -> None:
    while head := conversation.hear():
        status = head.split(b" ")[1][1:4]
        conversation.answer(b"" if status == b"204" else b"body", b"Location: /200", status=status + b" Said")


def run(folder: Path, url: str) -> list[dict]:
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "main.py"], cwd=folder, stdout=log, stderr=log, env={**os.environ, "SITE": url}
        )
    with gevent.Timeout(60):
        process.wait()
    assert process.returncode == 3, (folder / "log").read_text()  # those that were retried in vain are dead letters
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("place", ["memory", "redis"])
def test_an_error_reaches_the_callback_only_when_it_is_asked_for(place, own_redis, tmp_path):  # noqa: F811
    more: dict[str, object] = {"PROJECT_NAME": tmp_path.name}
    if place == "redis":
        more |= {"SCHEDULER_PERSIST": True, "REDIS_URL": f"unix://{own_redis.socket}"}
    settings = "".join(f"{name} = {value!r}\n" for name, value in {**SETTINGS, **more}.items())
    (tmp_path / "settings.py").write_text(settings)
    (tmp_path / "asks.py").write_text(f"{SPIDER}\nROWS = {[row[:2] for row in ROWS]!r}\n")
    (tmp_path / "main.py").write_text("from scrapy_plus import run\nrun()\n")
    with serving(answer) as server:
        items = run(tmp_path, server.url)
        asked = [request.split(b" ")[1].decode()[1:] for request in server.requests]
    told = {item["key"]: (item["to"], item["status"]) for item in items}
    assert told == {path + repr(meta): (to, int(path[:3])) for path, meta, to, _ in ROWS}
    assert len(items) == len(ROWS)
    assert {path: asked.count(path) for path, *_ in ROWS} == {path: times for path, _, _, times in ROWS}
