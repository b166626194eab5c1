"""How many disturbances of which kind, in which rounds; and the whole torture, from the first round to the last."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scrapy_plus.torture.actors import RedisProcess
from scrapy_plus.torture.killer import Killer
from scrapy_plus.torture.site import Site
from scrapy_plus.torture.stage import Cast, Stage
from scrapy_plus.torture.tally import Tally
from scrapy_plus.torture.tiny import play_tiny_crawls
from scrapy_plus.torture.tiny_processes import play_tiny_process_crawls

FSYNC = ("always", "everysec")
STORM = ("kill", "redis_kill", "torn", "stop", "outage")
EVENTS = (*STORM, "cut", "oom", "disk_full", "failover")
"""What a round may have; tiny crawls are played by themselves, undisturbed."""
TINY, TINY_PROCESSES = "tiny_crawl", "tiny_process_crawl"
SMALL: dict[str, int] = {"kill": 30, "redis_kill": 3, "cut": 10, TINY: 50, TINY_PROCESSES: 3}
LONG: dict[str, int] = {
    "kill": 900,
    "redis_kill": 30,
    "torn": 15,
    "stop": 20,
    "outage": 5,
    "cut": 120,
    "oom": 3,
    "disk_full": 3,
    "failover": 5,
    TINY: 2000,
    TINY_PROCESSES: 100,
}
PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """`counts` of each event. Everything random comes from `seed`; all is over after `seconds`, good or not.

    `rounds`: so many at least, the last ones quiet.
    """

    counts: Mapping[str, int]
    seed: int
    binary: str
    pages: int = 4000
    slaves: int = 4
    rounds: int = 1
    seconds: float = 3600.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def site(self) -> Site:
        return Site(self.pages, seeds=max(1, self.pages // 10), unfiltered=self.pages // 20)

    def phases(self, dice: random.Random) -> Iterator[tuple[Cast, list[str]]]:
        """Kinds of rounds, each with its events in their order. Without any event there is one quiet round."""
        cast = Cast(self.binary, slaves=self.slaves, settings=dict(self.settings))
        storm = self._events(*STORM)
        if storm or not any(self.counts.values()) or self.rounds > 1:
            yield cast, dice.sample(storm, len(storm))
        for kind, players in (
            ("cut", replace(cast, is_proxied=True)),
            ("oom", cast),
            ("disk_full", cast),
            ("failover", replace(cast, has_replica=True)),
        ):
            if events := self._events(kind):
                yield players, events

    def _events(self, *kinds: str) -> list[str]:
        return [kind for kind in kinds for _ in range(self.counts.get(kind, 0))]


def torture(plan: Plan, tell: Callable[[str], None]) -> Tally:
    """Plays all rounds; `tell` is given a line for each. The folder of a round that failed is kept, and named.

    If it is ended from outside, what was played until then is told, and is not good.
    """
    tally = Tally(plan.seed)
    began = time.monotonic()
    try:
        _play(plan, tally, tell, began + plan.seconds)
    except (KeyboardInterrupt, SystemExit):
        tally.problems.append("ended from outside, before all was played")
    tally.seconds = time.monotonic() - began
    return tally


def _play(plan: Plan, tally: Tally, tell: Callable[[str], None], until: float) -> None:
    dice = random.Random(plan.seed)
    for cast, events in plan.phases(dice):
        killer = Killer(events)
        is_storm = set(events) <= set(STORM)
        played = 0
        while not played or killer.events or (is_storm and played < plan.rounds):
            fsync = FSYNC[played % 2] if is_storm else "everysec"
            _round(plan, replace(cast, fsync=fsync), killer, tally, dice, tell, until)
            played += 1
            if tally.problems or time.monotonic() > until:
                break
    _tiny_crawls(plan, tally, dice, tell, until)


def _tiny_crawls(plan: Plan, tally: Tally, dice: random.Random, tell: Callable[[str], None], until: float) -> None:
    """Both kinds, each with a Redis of its own. The folder is kept, and named, if one of them failed."""
    for kind in (TINY, TINY_PROCESSES):
        count, wrong = plan.counts.get(kind, 0), len(tally.problems) + len(tally.audit)
        if not count:
            continue
        began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="scrapy-plus-torture-"))
        server = RedisProcess(plan.binary, folder)
        server.start()
        try:
            if kind == TINY:
                play_tiny_crawls(count, dice, server, tally)
            else:
                play_tiny_process_crawls(count, dice, server, folder, tally, until)
        finally:
            server.kill()
        tally.rounds += 1
        is_good = len(tally.problems) + len(tally.audit) == wrong
        if is_good:
            shutil.rmtree(folder, ignore_errors=True)
        played = f"{tally.events[kind]} tiny crawls{' by processes' if kind == TINY_PROCESSES else ''}"
        tell(
            f"{played} in {time.monotonic() - began:.0f} s{'' if is_good else f'; NOT GOOD, the logs are in {folder}'}"
        )


def _round(
    plan: Plan,
    cast: Cast,
    killer: Killer,
    tally: Tally,
    dice: random.Random,
    tell: Callable[[str], None],
    until: float,
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="scrapy-plus-torture-"))
    began, left, wrong = time.monotonic(), len(killer.events), len(tally.problems) + len(tally.audit)
    try:
        with Stage(folder / "project", plan.site, cast, tally, dice) as stage:
            stage.crawl(killer.disturb, until)
            stage.judge()
    finally:
        is_good = len(tally.problems) + len(tally.audit) == wrong
        if is_good:
            shutil.rmtree(folder, ignore_errors=True)
    told = f"{left - len(killer.events)} disturbances in {time.monotonic() - began:.0f} s, fsync {cast.fsync}"
    tell(f"{stage.where}: {told}{'' if is_good else f'; NOT GOOD, its logs are in {folder}'}")
