"""Whether a crawl lost or doubled anything: what the store has at the end against what the site is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.torture.site import Site
from scrapy_plus.torture.tally import SHOWN, Tally

ITEMS_A_CALL = 1000


def stored_pages(frontier: RedisFrontier) -> Counter[str]:
    """How often each page's item is in the crawl's item store."""
    pages: Counter[str] = Counter()
    cursor = ""
    while True:
        items, cursor = frontier.items(cursor, ITEMS_A_CALL)
        pages.update(json.loads(item)["page"] for item in items)
        if not items:
            return pages


def judge(
    frontier: RedisFrontier, site: Site, fetches: Iterable[str], tally: Tally, where: str, *, was_torn: bool = False
) -> None:
    """Adds a finished crawl to the tally; what is wrong with it is said with its place `where`.

    A log that is torn within an ack may lack its last writes, which are counters: then these are not looked at.
    """
    expected = site.names()
    stored = stored_pages(frontier)
    missing = sorted(expected - set(stored))
    doubled = sorted(name for name, count in stored.items() if count > 1)
    tally.pages += len(expected)
    tally.once += sum(1 for name in expected if stored[name] == 1)
    tally.lost += len(missing)
    tally.doubled += len(doubled)
    tally.problems += [
        f"{where}: {len(names)} pages {what}: {' '.join(names[:SHOWN])}"
        for names, what in (
            (missing, "without an item"),
            (doubled, "with more than one item"),
            (sorted(set(stored) - expected), "that do not exist"),
        )
        if names
    ]
    _judge_counts(frontier, len(expected), tally, where, was_torn=was_torn)
    tally.refetches += refetches(site, fetches)
    tally.audit += [f"{where}: {line}" for line in frontier.audit()]


def _judge_counts(frontier: RedisFrontier, expected: int, tally: Tally, where: str, *, was_torn: bool) -> None:
    counts = frontier.counts()
    if (counts.pending, counts.done, counts.dead) != (0, expected, 0):
        tally.problems.append(f"{where}: {counts}, though {expected} pages should be done")
    tally.problems += [f"{where}: a dead letter: {letter.reason}" for letter in frontier.dead_letters(0, SHOWN)[0]]
    scraped = frontier.stats().get("item_scraped_count")
    if scraped != expected and not was_torn:
        tally.problems.append(f"{where}: the crawl's own count of items is {scraped}, not {expected}")


def refetches(site: Site, fetches: Iterable[str]) -> int:
    """How many fetches there were beyond the one that a page needs, or two where the first is answered with 503."""
    asked = Counter(fetches)
    return sum(max(0, count - 1 - site.is_flaky(name)) for name, count in asked.items())
