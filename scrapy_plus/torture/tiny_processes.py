"""Tiny crawls by real processes: a master and one to three slaves, each an interpreter that comes at any time."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from gevent.pool import Pool

from scrapy_plus.frontier.keys import Keys, crawl_prefix
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.torture.actors import Node, RedisProcess, end_all_of
from scrapy_plus.torture.oracle import judge
from scrapy_plus.torture.project import NAME, write_project
from scrapy_plus.torture.site import Site, SiteServer
from scrapy_plus.torture.tally import Tally

MOST_PAGES, MOST_SLAVES = 5, 3
LATE_SECONDS = 2.0
SUPERVISED_SHARE = 0.25
HANG_SECONDS = 90.0
LOOK_SECONDS = 0.05
AT_ONCE = 2
"""Interpreters that start need a core each; more at once would only be late together."""


@dataclass(frozen=True, slots=True)
class Player:
    """The words on the command line of a node, and when it is started."""

    words: tuple[str, ...]
    starts_after: float


@dataclass(frozen=True, slots=True)
class TinyProcessCrawl:
    number: int
    site: Site
    players: tuple[Player, ...]

    @classmethod
    def thrown(cls, number: int, dice: random.Random) -> TinyProcessCrawl:
        site = Site(dice.randint(1, MOST_PAGES), seeds=1, unfiltered=dice.randint(0, 1))
        slaves = dice.randint(1, MOST_SLAVES)
        words = [("master",), *(_slave_words(dice) for _ in range(slaves))]
        return cls(number, site, tuple(Player(some, dice.uniform(0, LATE_SECONDS)) for some in words))

    @property
    def prefix(self) -> str:
        return crawl_prefix(NAME, NAME, str(self.number))


def _slave_words(dice: random.Random) -> tuple[str, ...]:
    return ("slave", "--workers", "2") if dice.random() < SUPERVISED_SHARE else ("slave",)


class Sites:
    """The sites that were asked for, each served by this process from the first time on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bases: dict[Site, str] = {}

    def base(self, site: Site) -> str:
        if site not in self._bases:
            server = SiteServer(site, self._folder / f"fetches{len(self._bases)}.txt")
            self._bases[site] = f"http://127.0.0.1:{server.start()}/"
        return self._bases[site]


def play_tiny_process_crawls(
    count: int, dice: random.Random, server: RedisProcess, folder: Path, tally: Tally, until: float
) -> None:
    """Plays them, two at a time; what is wrong with one is a problem of the tally, and ends the rest."""
    sites, pool, wrong = Sites(folder), Pool(AT_ONCE), len(tally.problems)
    for number in range(count):
        crawl = TinyProcessCrawl.thrown(number, dice)
        pool.wait_available()
        if len(tally.problems) > wrong or time.monotonic() > until:
            break
        pool.spawn(_play, crawl, server, folder / f"tiny{number}", sites.base(crawl.site), tally)
        tally.events["tiny_process_crawl"] += 1
    pool.join()
    if tally.events["tiny_process_crawl"] < count and len(tally.problems) == wrong:
        tally.problems.append(f"out of time after {tally.events['tiny_process_crawl']} tiny crawls by processes")


def _play(crawl: TinyProcessCrawl, server: RedisProcess, folder: Path, base: str, tally: Tally) -> None:
    where = f"tiny crawl {crawl.number} by processes"
    problems = len(tally.problems)
    url = f"redis://127.0.0.1:{server.port}/0"
    write_project(folder, crawl.site, base, url, {"JOB": str(crawl.number)})
    nodes = [
        Node(f"{number}-{player.words[0]}", folder, list(player.words), is_named="--workers" not in player.words)
        for number, player in enumerate(crawl.players)
    ]
    try:
        tally.problems += [f"{where}: {problem}" for problem in run_nodes(crawl, nodes, server, tally.exit_codes)]
    finally:
        for node in nodes:
            node.kill()
        end_all_of(folder)
    frontier = RedisFrontier(server.client, crawl.prefix)
    judge(frontier, crawl.site, [], tally, where)
    frontier.close()
    if len(tally.problems) == problems:
        shutil.rmtree(folder, ignore_errors=True)


def run_nodes(
    crawl: TinyProcessCrawl, nodes: list[Node], server: RedisProcess, exit_codes: Counter[int]
) -> Iterator[str]:
    """Starts each node in its time and waits for all; what is wrong with how they end."""
    began = time.monotonic()
    waiting = sorted(zip(crawl.players, nodes, strict=True), key=lambda pair: pair[0].starts_after, reverse=True)
    running: list[Node] = []
    while waiting or running:
        now = time.monotonic() - began
        while waiting and waiting[-1][0].starts_after <= now:
            running.append(waiting.pop()[1])
            running[-1].start()
        for node in [node for node in running if not node.is_alive]:
            running.remove(node)
            exit_codes[node.exit_code or 0] += 1
            yield from _faults(node, _is_finished(crawl, server))
        if now > HANG_SECONDS:
            yield f"after {HANG_SECONDS:.0f} s there still run: {' '.join(node.name for node in running)}"
            return
        gevent.sleep(LOOK_SECONDS)


def _faults(node: Node, was_finished: bool) -> Iterator[str]:
    if node.exit_code:
        yield f"{node.name} ended with code {node.exit_code}"
    if not was_finished:
        yield f"{node.name} ended before the crawl"
    if "Traceback" in node.log.read_text("utf-8", "replace"):
        yield f"a traceback in {node.log}"


def _is_finished(crawl: TinyProcessCrawl, server: RedisProcess) -> bool:
    state: Any = server.client.hget(Keys(crawl.prefix).meta, "state")
    return bool(state == b"finished")
