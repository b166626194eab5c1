"""set, drain: changes to a crawl that runs."""

from __future__ import annotations

import time

import click

from scrapy_plus.cli.base import Command
from scrapy_plus.cli.crawling import Pairs
from scrapy_plus.cli.operating import crawl_option, opened
from scrapy_plus.cli.report import show_pace
from scrapy_plus.errors import UsageError
from scrapy_plus.frontier.base import Node
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.url import canonicalize, site

LIVING_SECONDS = 60.0
LOOK_SECONDS = 0.2


@click.command("set", cls=Command, short_help="Change the pace of a crawl while it runs.")
@click.option("--delay", type=click.FloatRange(0), metavar="SECONDS", help="Between two requests to a site.")
@click.option("--concurrency", type=click.IntRange(0), metavar="N", help="Requests to a site at a time; 0: any.")
@click.option("--site", "url", metavar="URL", help="Only this site: scheme, host and port count.")
@click.option("--reset", "resets", is_flag=True, help="What is not given is as the settings say again.")
@crawl_option
def set_command(
    delay: float | None, concurrency: int | None, url: str | None, resets: bool, spider: str | None, assignments: Pairs
) -> None:
    """Change the delay and the concurrency of all sites, or of one, at once and for all processes of the crawl.

    It holds until it is changed or reset, whatever the settings of processes that join. Sites that have a pace of
    their own (DOWNLOAD_SLOTS, or set with --site) keep it when that of all sites is changed.
    """
    if delay is None and concurrency is None and not resets:
        raise UsageError("say what to set: --delay SECONDS, --concurrency N or --reset")
    with opened(spider, assignments) as (frontier, crawl, _):
        if url is None:
            frontier.set_pace(delay_seconds=delay, limit=concurrency, resets=resets)
            where, told = "all sites", show_pace(*frontier.overridden_pace()) or "as the settings say"
        else:
            where, told = _set_site(frontier, url, delay, concurrency, resets=resets)
        click.echo(f"{crawl}: {where}: {told}", err=True)


def _set_site(
    frontier: RedisFrontier, url: str, delay: float | None, concurrency: int | None, *, resets: bool
) -> tuple[str, str]:
    try:
        place = site(canonicalize(url))
    except ValueError as error:
        raise UsageError(str(error)) from None
    if resets:
        usual = frontier.site_facts("").pace  # that of a site which was never met
        delay = usual.delay_seconds if delay is None else delay
        concurrency = usual.limit if concurrency is None else concurrency
    frontier.set_site(place, delay_seconds=delay, limit=concurrency)
    pace = frontier.site_facts(place).pace
    return place, show_pace(pace.delay_seconds, pace.limit)


@click.command("drain", cls=Command, short_help="Let a process leave a crawl.")
@click.argument("name", metavar="NODE")
@click.option("--wait", "waits", is_flag=True, help="Until it has gone.")
@crawl_option
def drain_command(name: str, waits: bool, spider: str | None, assignments: Pairs) -> None:
    """Let process NODE, as `status` names it, finish its pages in flight and end; the others go on with the rest.

    A supervisor (--workers) takes its workers with it. Its exit code is that of the crawl so far.
    """
    with opened(spider, assignments) as (frontier, crawl, _):
        node = _node(frontier, name)
        frontier.drain(node.worker)
        who = f"{node.worker[:8]} ({node.facts.get('host', '')}, pid {node.facts.get('pid', '')})"
        click.echo(f"{crawl}: {who} ends when its pages in flight are finished", err=True)
        while waits and _is_there(frontier, node.worker):
            time.sleep(LOOK_SECONDS)
        if waits:
            click.echo(f"{crawl}: {who} has gone", err=True)


def _node(frontier: RedisFrontier, name: str) -> Node:
    living = [node for node in frontier.nodes() if node.age_seconds < LIVING_SECONDS]
    found = [node for node in living if node.worker.startswith(name)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(node.worker[:8] for node in living) or "none"
    raise UsageError(f"{'several nodes begin' if found else 'no node begins'} with {name!r}; there are: {there}")


def _is_there(frontier: RedisFrontier, worker: str) -> bool:
    return any(node.worker == worker and node.age_seconds < LIVING_SECONDS for node in frontier.nodes())
