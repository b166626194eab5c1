"""torture: the proof that nothing is lost, to be run by whoever doubts it."""

from __future__ import annotations

import logging
import random
import signal
from typing import Any

import click
import gevent

from scrapy_plus.cli.base import Command

HELP = {
    "kill": ("--kills", "kill -9 of slaves, workers and the master"),
    "redis_kill": ("--redis-kills", "kill -9 of Redis, with appendfsync always and everysec in turn"),
    "torn": ("--torn", "Redis dies, the end of its log is cut off, and it dies again soon"),
    "stop": ("--stops", "A slave stands still for longer than its leases"),
    "outage": ("--outages", "Redis stands still for longer than a lease"),
    "cut": ("--cuts", "Connections end before a request, in it, or before its answer"),
    "oom": ("--oom", "Redis has no memory for more"),
    "disk_full": ("--disk-full", "The disk of Redis is full"),
    "failover": ("--failover", "A replica takes over that lacks the last half second"),
    "tiny_crawl": ("--tiny-crawls", "Undisturbed crawls of one to five pages by several nodes of this process"),
    "tiny_process_crawl": ("--tiny-process-crawls", "The same by a process for each node"),
}


def event_options(function: Any) -> Any:
    for name, (option, sentence) in reversed(HELP.items()):
        kind = click.IntRange(0, 100_000)
        function = click.option(option, name, type=kind, metavar="N", help=f"{sentence}, N times.")(function)
    return function


@click.command("torture", cls=Command, short_help="Break a crawl in every way, and count what it lost.")
@event_options
@click.option("--small", is_flag=True, help="A minute or two: 30 kills, 3 of Redis, 10 cuts, some tiny crawls.")
@click.option("--seed", type=int, help="What decides everything random; one is made and printed.")
@click.option("--pages", type=click.IntRange(1), metavar="N", help="Pages of the site that each round crawls.")
@click.option("--slaves", type=click.IntRange(1, 64), default=4, show_default=True, metavar="N", help="Slaves.")
@click.option(
    "--rounds", type=click.IntRange(1), default=1, metavar="N", help="At least N crawls, the last ones quiet."
)
@click.option("--seconds", type=click.IntRange(1), default=5400, show_default=True, help="After so long it has failed.")
@click.option("--redis-server", metavar="PATH", help="The redis-server to use; else one of the PATH.")
def torture_command(
    small: bool,
    seed: int | None,
    pages: int | None,
    slaves: int,
    rounds: int,
    seconds: int,
    redis_server: str | None,
    **asked: int | None,
) -> None:
    """Crawl a site of our own with a Redis, a master and slaves of our own, and break them all the while.

    Counts what is lost, doubled and fetched again; the last line is JSON. Exit code 1 if anything was lost or doubled.
    Without counts it is the long one: 900 kills of processes, 45 of Redis, 120 cuts and the rest, for about an hour.
    """
    from scrapy_plus.embedded.binary import find_binary
    from scrapy_plus.torture.plan import LONG, SMALL, Plan, torture

    logging.getLogger("scrapy_plus").setLevel(logging.ERROR)  # what breaks here is broken on purpose
    main = gevent.getcurrent()
    gevent.signal_handler(signal.SIGTERM, lambda: gevent.kill(main, SystemExit()))  # with its processes
    given = {name: count for name, count in asked.items() if count is not None}
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    plan = Plan(
        given or (SMALL if small else LONG),
        seed,
        redis_server or find_binary(),
        pages=pages or (2500 if small else 12_000),
        slaves=slaves,
        rounds=rounds,
        seconds=seconds,
    )
    click.echo(f"seed {seed}: {', '.join(f'{count} {name}' for name, count in plan.counts.items())}")
    tally = torture(plan, click.echo)
    for line in tally.lines():
        click.echo(line)
    click.echo(tally.as_json())
    raise SystemExit(0 if tally.is_good else 1)
