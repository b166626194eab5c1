"""bench: how fast this machine crawls, beside what a bare loop does on it."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from scrapy_plus.cli.base import Command
from scrapy_plus.version import __version__


@click.command("bench", cls=Command, short_help="Measure how fast this machine crawls, and what limits it.")
@click.option(
    "--seconds", type=click.FloatRange(1, 3600), default=20, show_default=True, help="About how long it takes in all."
)
@click.option("-c", "--concurrency", type=click.IntRange(1, 1000), default=32, show_default=True, help="At a time.")
@click.option("--kb", type=click.IntRange(1, 10_000), default=15, show_default=True, help="Size of a page.")
@click.option("--transport", type=click.Choice(["auto", "curl", "requests"]), default="auto", show_default=True)
@click.option(
    "--redis", "redis_url", metavar="URL", help="A Redis to measure with; else one is started, if it is there."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def bench_command(
    seconds: float, concurrency: int, kb: int, transport: str, redis_url: str | None, as_json: bool
) -> None:
    """Crawl a site that a process beside this one serves, and tell how many pages a second that is.

    Four crawls take turns, twice: pages that are only fetched; a bare loop, which parses them by lxml and follows their
    links, and nothing more; the framework in memory; the framework with Redis. What limits the last two is told.
    """
    from scrapy_plus.bench.rounds import Bench, parse_ms
    from scrapy_plus.bench.verdict import limit, parts_of_page

    bench = Bench(
        seconds=seconds, concurrency=concurrency, page_bytes=kb * 1000, transport=transport, redis_url=redis_url
    )
    figures = bench.run()
    parse = parse_ms(kb * 1000)
    cores = _cores()
    told: dict[str, Any] = {
        "version": __version__,
        "transport": bench.transport_used,
        "concurrency": concurrency,
        "page_bytes": kb * 1000,
        "cores": cores,
        "figures": {one.kind: {name: getattr(one, name) for name in one.FIELDS} for one in figures},
        "parts_cpu_ms": dict(parts_of_page({one.kind: one for one in figures}, parse)),
        "limits": {
            one.kind: limit(one, parse, bench.transport_used, cores)
            for one in figures
            if one.kind in ("memory", "redis")
        },
        "notes": bench.notes,
    }
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    _print(told, figures)


def _print(told: dict[str, Any], figures: Any) -> None:
    from scrapy_plus.bench.verdict import TITLES, table

    where = f"{told['cores']} core{'s' * (told['cores'] != 1)}"
    what = f"{told['concurrency']} at a time, pages of {told['page_bytes'] // 1000} kB with 20 links"
    click.echo(f"scrapy-plus {told['version']}: {told['transport']}, {what}, {where}\n")
    for line in table(figures):
        click.echo(line)
    by_kind = told["figures"]
    share = by_kind["memory"]["pages_per_second"] / by_kind["bare"]["pages_per_second"]
    click.echo(f"\nthe framework does {share:.0%} of the bare loop's pages")
    parts = ", ".join(f"{name} {value:.3f}" for name, value in told["parts_cpu_ms"].items())
    click.echo(f"CPU ms a page: {parts}")
    for kind, sentence in told["limits"].items():
        click.echo(f"{TITLES[kind]} is limited by {sentence}")
    for note in told["notes"]:
        click.echo(note)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
