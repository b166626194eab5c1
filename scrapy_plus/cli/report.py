"""Where a crawl stands, as one record for programs and some lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy_plus.figures import show_duration
from scrapy_plus.frontier.base import Frontier, Node, SiteFacts
from scrapy_plus.frontier.redis import RedisFrontier

SITES_SHOWN = 10


def report(spider: str, frontier: RedisFrontier) -> dict[str, Any]:
    """The crawl of `spider`: state, counts, sites with most waiting, nodes, rate, and its statistics."""
    counts = frontier.counts()
    cursor, is_seeded = frontier.seed_cursor()
    nodes = [_node(node) for node in frontier.nodes()]
    now = frontier.now()
    delay, limit = frontier.overridden_pace()
    return {
        "spider": spider,
        "crawl": frontier.keys.prefix,
        "state": frontier.state(),
        "seeds": cursor,
        "seeding_ended": is_seeded,
        "queued": counts.ready,
        "leased": counts.leased,
        "delayed": counts.delayed,
        "dead": counts.dead,
        "seen": counts.seen,
        "done": counts.done,
        "pages_per_minute": sum(node["pages_per_minute"] for node in nodes),
        "set_delay_seconds": delay,
        "set_concurrency": limit,
        "sites": [_site(name, facts, now) for name, facts in _sites(frontier)],
        "nodes": nodes,
        "stats": frontier.stats(),
    }


def _sites(frontier: Frontier) -> list[tuple[str, SiteFacts]]:
    return [(name, facts) for name, facts in frontier.sites(SITES_SHOWN) if facts.ready or facts.in_flight]


def _site(name: str, facts: SiteFacts, now: float) -> dict[str, Any]:
    return {
        "site": name,
        "queued": facts.ready,
        "in_flight": facts.in_flight,
        "delay_seconds": facts.pace.gap_seconds,
        "limit": facts.pace.slots,
        "paused_seconds": round(max(0.0, facts.pace.paused_until - now), 1),
    }


def _node(node: Node) -> dict[str, Any]:
    facts = node.facts
    return {
        "node": node.worker,
        "role": facts.get("role", ""),
        "host": facts.get("host", ""),
        "pid": int(facts.get("pid", 0)),
        "heard_seconds_ago": round(node.age_seconds, 1),
        "leased": int(facts.get("leased", 0)),
        "oldest_seconds": int(facts.get("oldest_seconds", 0)),
        "pages_per_minute": int(facts.get("pages_per_minute", 0)),
    }


def report_lines(one: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    seeding = "all seeds in" if one["seeding_ended"] else f"seeding, {one['seeds']:,} so far"
    yield f"{one['spider']}: {one['state']}, {seeding}, {one['pages_per_minute']:,} pages/min"
    places = ("queued", "leased", "delayed", "dead", "seen", "done")
    yield "  " + ", ".join(f"{one[place]:,} {place}" for place in places)
    if one["set_delay_seconds"] is not None or one["set_concurrency"] is not None:
        yield f"  set for all sites: {show_pace(one['set_delay_seconds'], one['set_concurrency'])}"
    for site in one["sites"]:
        yield f"  site {site['site']}: {', '.join(_of_site(site))}"
    for node in one["nodes"]:
        age = show_duration(node["heard_seconds_ago"])
        held = f"{node['leased']:,} leased" + (f", oldest {node['oldest_seconds']} s" if node["leased"] else "")
        who = f"{node['node'][:8]} ({node['role']}, {node['host']}, pid {node['pid']})"
        yield f"  node {who}: heard of {age} ago, {held}, {node['pages_per_minute']:,} pages/min"


def show_pace(delay_seconds: float | None, limit: int | None) -> str:
    """ "one every 2 s, 4 at a time"; None is not mentioned, 0 is no limit."""
    parts = []
    if delay_seconds is not None:
        parts.append(f"one every {delay_seconds:g} s" if delay_seconds else "no delay")
    if limit is not None:
        parts.append(f"{limit} at a time" if limit else "any number at a time")
    return ", ".join(parts)


def _of_site(site: dict[str, Any]) -> Iterator[str]:
    yield f"{site['queued']:,} queued"
    if site["in_flight"]:
        yield f"{site['in_flight']:,} in flight" + (f" of {site['limit']}" if site["limit"] else "")
    if site["delay_seconds"]:
        yield f"one every {site['delay_seconds']:g} s"
    if site["paused_seconds"]:
        yield f"paused for {show_duration(site['paused_seconds'])}"
