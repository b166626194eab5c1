"""From runs to a page: medians, ratios, what was reached, and on which machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from measure import Measured
from subjects import Subject

if TYPE_CHECKING:
    from goals import Goal
    from steady import Steady

BEGIN, END = "<!-- figures: written by benchmarks/run.py -->", "<!-- /figures -->"


@dataclass
class Row:
    """The medians of a subject's runs; `spread` is the slowest and the fastest."""

    title: str
    pages: int
    runs: int
    pages_per_second: float
    spread: tuple[float, float]
    cpu_ms: float
    rss_mb: float
    redis_us: float
    problem: str
    store: str


def summarize(subjects: Sequence[Subject], runs: Sequence[Measured]) -> dict[str, Row]:
    rows = {}
    for subject in subjects:
        mine = [one for one in runs if one.subject == subject.name]
        if mine:
            rows[subject.name] = _row(subject, mine)
    return rows


def _row(subject: Subject, runs: list[Measured]) -> Row:
    good = [one for one in runs if one.pages_per_second] or runs
    speeds = [one.pages_per_second for one in good]
    return Row(
        subject.title,
        good[0].pages,
        len(good),
        median(speeds),
        (min(speeds), max(speeds)),
        median(one.cpu_ms for one in good),
        max(one.rss_mb for one in good),
        median(one.redis_us for one in good),
        "; ".join(dict.fromkeys(one.problem for one in runs if one.problem)),
        subject.store,
    )


def table(rows: dict[str, Row], goals: Sequence[Goal], steady: Sequence[Steady], facts: Sequence[str]) -> str:
    lines = ["| what is to be reached | goal | found | |", "|---|---|---|---|"]
    marks = {True: "reached", False: "**not reached**", None: ""}
    lines += [f"| {one.title} | {one.asked} | {one.found} | {marks[one.is_reached]} |" for one in goals]
    lines += [
        "",
        "| crawler | pages/s | slowest and fastest | CPU ms a page | RSS MB | Redis us a page | pages, items |",
    ]
    lines += ["|---|---|---|---|---|---|---|", *(_line(row) for row in rows.values())]
    lines += ["", *(f"- {one.title}: {one.value:,.3g} {one.unit}" for one in steady), *(f"- {one}" for one in facts)]
    return "\n".join(lines)


def _line(row: Row) -> str:
    if not row.pages_per_second:
        return f"| {row.title} | | | | | | {row.problem} |"
    low, high = row.spread
    redis = f"{row.redis_us:.0f}" if row.redis_us else ""
    exact = row.problem or f"{row.pages:,} of each, exactly"
    rates = f"{row.pages_per_second:,.0f} | {low:,.0f} to {high:,.0f} | {row.cpu_ms:.3f} | {row.rss_mb:.0f}"
    return f"| {row.title} | {rates} | {redis} | {exact} |"


def facts_of_machine(runs: Sequence[Measured], rounds: int, is_pinned: bool) -> list[str]:
    versions: dict[str, str] = {}
    for one in runs:
        versions |= one.versions
    cores = "the crawler on one core, the servers on another" if is_pinned else "no process bound to a core"
    return [
        f"{date.today():%d %B %Y}, {rounds} round{'s' * (rounds != 1)}, interleaved; {cores}",
        f"{_processor()}, {platform.system()} {platform.release()}, {_version('nginx', '-v')}, "
        f"{_version('redis-server', '--version')}",
        ", ".join(f"{name} {number}" for name, number in sorted(versions.items(), key=lambda one: one[0].lower())),
    ]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{len(names)} cores of {names[0]}" if names else platform.processor() or platform.machine()


def _version(program: str, option: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or program
    done = subprocess.run([found, option], capture_output=True, text=True, check=False)
    words = (done.stdout + done.stderr).replace("/", " ").replace("v=", "").split()
    return f"{program} {next((word for word in words if word[:1].isdigit()), '?')}"


def write_page(page: Path, text: str) -> None:
    """Puts the text between the two marks of the page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{page} has no place for the table: {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")
