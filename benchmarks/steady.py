"""What a crawler takes while little happens, and while much does for long: idle CPU, and memory over many pages."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from measure import MAX_SECONDS, Place
from servers import HOST, endless_site, popen

from scrapy_plus.bench.pages import start_paths

OURS = str(Path(__file__).parent / "crawlers" / "ours.py")
IDLE_SECONDS = 10.0
SETTLE_SECONDS = 3.0
PAGE_BYTES = 1_000
SEEN_CACHE = 100_000
"""At how many pages the cache of what is seen in Redis has grown to its bound."""


@dataclass
class Steady:
    """One figure that is no rate."""

    name: str
    title: str
    value: float
    unit: str


def _job(place: Place, store: str, settings: dict[str, object], **more: object) -> str:
    job = {"store": store, "concurrency": 32, "redis": f"redis://{HOST}:{place.redis['near']}/0", "settings": settings}
    return json.dumps({**job, "url": f"http://{HOST}:{place.web['near']}/slow/0.html", "pages": 1, **more})


def idle_percent(place: Place) -> Steady:
    """A slave that waits for a master: what it takes of a core."""
    job = _job(place, "redis", {"ROLE": "slave", "SCHEDULER_PERSIST": True, "PROJECT_NAME": "idle"})
    process = popen([sys.executable, OURS, job], place.crawler_core, stdout=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE_SECONDS)
        before = cpu_seconds(process.pid)
        time.sleep(IDLE_SECONDS)
        spent = cpu_seconds(process.pid) - before
        assert process.poll() is None, "the idle slave has ended"
    finally:
        process.kill()
        process.wait()
    return Steady("idle", "a slave without work", spent / IDLE_SECONDS * 100, "% of a core")


def cpu_seconds(pid: int) -> float:
    """Of all threads so far, to the nanosecond; /proc/PID/stat counts in hundredths."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def memory_growth(place: Place, pages: int) -> list[Steady]:
    """Bytes of RSS a page between a fifth of the pages and all of them: the queue is short, so what grows is `seen`."""
    return [_growth(place, store, pages) for store in ("memory", "redis")]


def _growth(place: Place, store: str, pages: int) -> Steady:
    with ExitStack() as stack:
        port = stack.enter_context(endless_site(PAGE_BYTES, place.server_core, pages))
        urls = [f"http://{HOST}:{port}{one}" for one in start_paths()]
        job = _job(place, store, {"PROJECT_NAME": "growth"}, start_urls=urls, pages=pages)
        done = subprocess.run(
            [sys.executable, OURS, job], capture_output=True, text=True, timeout=MAX_SECONDS, check=False
        )
    if done.returncode:
        raise RuntimeError(f"the crawl of {pages} pages ended with {done.returncode}: {done.stderr[-300:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if told["items"] != pages or told["items_missing"]:
        raise RuntimeError(f"{told['items']} items of {pages} pages, {told['items_missing']} missing")
    samples = told["rss_kb"]
    start = len(samples) // 5
    grown = (samples[-1] - samples[start]) * 1024 / (pages * (len(samples) - 1 - start) / len(samples))
    return Steady(f"growth_{store}", f"RSS over {pages:,} pages, {store}", grown, "bytes a page")
