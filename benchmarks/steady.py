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

HERE = Path(__file__).parent
OURS = str(HERE / "crawlers" / "ours.py")
SETTLE_SECONDS = 3.0
PAGE_BYTES = 1_000
FIRST_SHARE = 0.2
"""Of the pages: as they come, what is made once is made, and is no growth."""


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


def idle_percent(place: Place, seconds: float) -> Steady:
    """A slave that waits for a master: what it takes of a core."""
    job = _job(place, "redis", {"ROLE": "slave", "SCHEDULER_PERSIST": True, "PROJECT_NAME": "idle"})
    process = popen([sys.executable, OURS, job], place.crawler_core, stdout=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE_SECONDS)
        before = cpu_seconds(process.pid)
        time.sleep(seconds)
        spent = cpu_seconds(process.pid) - before
        assert process.poll() is None, "the idle slave has ended"
    finally:
        process.kill()
        process.wait()
    return Steady("idle", "a slave without work", spent / seconds * 100, "% of a core")


def cpu_seconds(pid: int) -> float:
    """Of all threads so far, to the nanosecond; /proc/PID/stat counts in hundredths."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def memory_growth(place: Place, pages: int) -> list[Steady]:
    """Bytes of RSS a page between a fifth of the pages and all of them: the queue is short, so what grows is `seen`."""
    over = f"over {pages:,} pages"
    in_memory, seen = _growth(place, "memory", pages), _seen_bytes(pages)
    return [
        Steady("growth_memory", f"RSS {over}, memory", in_memory, "bytes a page"),
        Steady("growth_seen", f"of these what `seen` takes, {over} in a store alone", seen, "bytes a page"),
        Steady("growth_beyond", f"RSS {over}, memory, beyond `seen`", in_memory - seen, "bytes a page"),
        Steady("growth_redis", f"RSS {over}, Redis", _growth(place, "redis", pages), "bytes a page"),
    ]


def _growth(place: Place, store: str, pages: int) -> float:
    with ExitStack() as stack:
        port = stack.enter_context(endless_site(PAGE_BYTES, place.server_core, pages))
        urls = [f"http://{HOST}:{port}{one}" for one in start_paths()[:pages]]
        job = _job(place, store, {"PROJECT_NAME": "growth"}, start_urls=urls, pages=pages)
        command = [sys.executable, OURS, job]
        process = popen(command, place.crawler_core, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = process.communicate(timeout=MAX_SECONDS)
    if process.returncode:
        raise RuntimeError(f"the crawl of {pages} pages ended with {process.returncode}: {errors[-300:]}")
    told = json.loads(out.splitlines()[-1])
    if told["items"] != pages or told["items_missing"]:
        raise RuntimeError(f"{told['items']} items of {pages} pages, {told['items_missing']} missing")
    samples = told["rss_kb"]
    first = round(len(samples) * FIRST_SHARE) - 1
    return (samples[-1] - samples[first]) * 1024 / (pages * (1 - FIRST_SHARE))


def _seen_bytes(pages: int) -> float:
    """Bytes a page that the memory store takes for pages that are done, between a fifth of them and all."""
    command = [sys.executable, str(HERE / "micro" / "memory.py")]
    whole = [
        count * float(subprocess.run([*command, str(count), "seen"], capture_output=True, text=True, check=True).stdout)
        for count in (round(pages * FIRST_SHARE), pages)
    ]
    return (whole[1] - whole[0]) / (pages * (1 - FIRST_SHARE))
