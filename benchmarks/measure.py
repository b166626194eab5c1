"""One crawl of one subject: what it fetched by nginx's log, what it made and took by its own tally."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from servers import HOST, popen, redis_cpu_seconds
from site_pages import path
from subjects import Subject
from venvs import python_of

HERE = Path(__file__).parent
MAX_SECONDS = 900.0


@dataclass
class Measured:
    """One run: rates, and whether it was right. `problem` says in a few words what was not."""

    subject: str
    pages: int = 0
    pages_per_second: float = 0.0
    cpu_ms: float = 0.0
    rss_mb: float = 0.0
    redis_us: float = 0.0
    problem: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        rates = f"{self.pages_per_second:8,.0f} pages/s {self.cpu_ms:8.3f} ms CPU/page {self.rss_mb:6.0f} MB"
        return f"{self.subject:18} {rates}  {self.problem or 'exact'}"


@dataclass
class Place:
    """Where everything stands: folders, ports, cores."""

    folder: Path
    rivals: Path
    pages: dict[str, int]
    web: dict[str, int]
    redis: dict[str, int]
    crawler_core: int | None = None
    server_core: int | None = None

    @property
    def access_log(self) -> Path:
        return self.folder / "access.log"


def measure(place: Place, subject: Subject) -> Measured:
    client = redis.Redis(HOST, place.redis["near"])
    client.flushall()
    before, cpu = place.access_log.stat().st_size, redis_cpu_seconds(client)
    measured = Measured(subject.name, place.pages[subject.site])
    try:
        told = _crawl(place, subject)
    except (subprocess.SubprocessError, ValueError) as error:
        measured.problem = f"failed: {error}"
        return measured
    fetched, seconds = read_log(place.access_log, before)
    pages = max(1, sum(fetched.values()))
    measured.pages_per_second = pages / seconds if seconds else 0.0
    measured.cpu_ms = sum(one["cpu_seconds"] for one in told) / pages * 1000
    measured.rss_mb = max(one["peak_rss_kb"] for one in told) / 1024
    measured.redis_us = (redis_cpu_seconds(client) - cpu) / pages * 1e6 if subject.store == "redis" else 0.0
    measured.versions = told[-1]["versions"] | {"Python": told[-1]["python"]}
    measured.problem = problem_of(subject, fetched, measured.pages, told)
    return measured


def problem_of(subject: Subject, fetched: Counter[str], pages: int, told: list[dict[str, Any]]) -> str:
    """What was not exactly one fetch and one item a page, and a good end."""
    wanted = {path(subject.site, number) for number in range(pages)}
    items = sum(one["items"] for one in told)
    facts = {
        "pages missing": len(wanted - fetched.keys()),
        "fetched more than once": sum(count - 1 for count in fetched.values()),
        "strange pages": len(fetched.keys() - wanted),
        "items missing": max(0, pages - items),
        "items too many": max(0, items - pages),
        "items doubled": sum(one["items_doubled"] for one in told),
    }
    return ", ".join(f"{count} {name}" for name, count in facts.items() if count)


def read_log(log: Path, offset: int) -> tuple[Counter[str], float]:
    """How often each path was asked for since `offset`, and the seconds from the first answer to the last."""
    fetched: Counter[str] = Counter()
    first = last = 0.0
    with log.open() as lines:
        lines.seek(offset)
        for line in lines:
            moment, target, status = line.split()
            fetched[target if status == "200" else f"{target} ({status})"] += 1
            last = max(last, float(moment))
            first = min(first or last, float(moment))
    return fetched, last - first


def _crawl(place: Place, subject: Subject) -> list[dict[str, Any]]:
    """Runs it to its end; what each of its processes told. Raises SubprocessError, ValueError."""
    origin = f"http://{HOST}:{place.web[subject.web]}"
    job = {
        "origin": origin,
        "url": origin + path(subject.site, 0),
        "site": subject.site,
        "pages": place.pages[subject.site],
        "concurrency": subject.concurrency,
        "store": subject.store,
        "redis": f"redis://{HOST}:{place.redis[subject.redis]}/0",
        **subject.more,
    }
    jobs = [job]
    if subject.slaves:
        settings = {**job.get("settings", {}), "PROJECT_NAME": "bench"}
        roles = ["master", *["slave"] * subject.slaves]
        jobs = [{**job, "settings": {**settings, "ROLE": role, "SCHEDULER_PERSIST": True}} for role in roles]
    python = str(python_of(place.rivals, subject.environment)) if subject.environment else sys.executable
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_process(place, [python, str(HERE / "crawlers" / subject.program), json.dumps(one)]))
            for one in jobs
        ]
        return [_told(process, place.folder / "crawler.err") for process in processes]


@contextmanager
def _process(place: Place, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A crawler on its core, in an empty folder of its own, killed if it is left behind."""
    home = tempfile.mkdtemp(dir=place.folder)
    with (place.folder / "crawler.err").open("w") as errors:
        process = popen(command, place.crawler_core, stdout=subprocess.PIPE, stderr=errors, cwd=home)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _told(process: subprocess.Popen[str], errors: Path) -> dict[str, Any]:
    out, _ = process.communicate(timeout=MAX_SECONDS)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        said = (errors.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise ValueError(f"exit code {process.returncode}: {said[:200]}")
    told: dict[str, Any] = json.loads(lines[-1])
    return told
