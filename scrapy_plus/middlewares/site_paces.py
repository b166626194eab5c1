"""How slowly each site is asked, learned from how it answers and told to all processes of the crawl by the store.

The store is called only when something noticeable has changed; what is in between each process keeps for itself.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy_plus.errors import NotNow
from scrapy_plus.frontier.base import Frontier, SiteFacts
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import site
from scrapy_plus.middlewares.statuses import wait_of
from scrapy_plus.rules import throttle
from scrapy_plus.rules.throttle import LATENCY, OVERLOAD, OVERLOADED, AutoThrottle, written

REMEMBERED = 4096
STEP_SECONDS = 1.0
"""A site is slowed down once at most in this time: many refusals that come together are of one and the same pace."""
TOLD_SECONDS = 0.001
"""The store keeps delays by the millisecond."""
LOOK_SECONDS = 0.5
"""So old may be what is known of a site, before requests go back because of it."""


class Learned:
    """A delay that all processes change: as the store has it (`told`), and as this one would have it (`here`)."""

    __slots__ = ("here", "told")

    def __init__(self, delay: float = 0.0) -> None:
        self.told = self.here = delay

    def hear(self, stored: float) -> bool:
        """What the store has now: if others changed it, that counts, and what this process made of the old is void."""
        is_news = abs(stored - self.told) > TOLD_SECONDS
        if is_news:
            self.told = self.here = stored
        return is_news

    @property
    def is_to_tell(self) -> bool:
        return throttle.is_noticeable(self.told, self.here)

    def tell(self) -> float:
        self.told = self.here
        return self.here


@dataclass(slots=True)
class Known:
    """What this process knows of a site; its clock is monotonic."""

    latency: Learned
    overload: Learned
    slow: float = 0.0
    refusals: float = 0.0
    rests_until: float = 0.0
    stepped_at: float = float("-inf")
    looked_at: float = float("-inf")


def tell(
    frontier: Frontier, place: str, known: SiteFacts, facts: Mapping[str, str], start: float, **pace: Any
) -> float:
    """Writes `facts` of a site, and the delay that follows from all of them; returns it. `start`: see `learned`."""
    slow = throttle.learned({name: text for name, text in {**known.facts, **facts}.items() if text}, start)
    frontier.set_site(place, slow_seconds=slow, facts=facts, **pace)
    return slow


class SitePaces:
    """What is known of the sites. `auto` slows them down by latency, `overload_max_seconds` (0: not) for refusals."""

    def __init__(
        self,
        frontier: Frontier,
        *,
        auto: AutoThrottle | None = None,
        overload_max_seconds: float = 60.0,
        rest_max_seconds: float = 600.0,
        statuses: Iterable[int] = (),
    ) -> None:
        self.start_seconds = auto.start_seconds if auto else 0.0
        self.auto = auto
        self.statuses = OVERLOADED | frozenset(statuses)
        self._frontier = frontier
        self._overload_max_seconds = overload_max_seconds
        self._rest_max_seconds = rest_max_seconds
        self._sites: OrderedDict[str, Known] = OrderedDict()

    def known(self, place: str) -> Known | None:
        return self._sites.get(place)

    @property
    def is_empty(self) -> bool:
        return not self._sites

    def _meet(self, place: str) -> Known:
        known = self._sites.get(place)
        if known is None:
            known = self._sites[place] = Known(Learned(self.start_seconds), Learned())
            while len(self._sites) > REMEMBERED:
                self._sites.popitem(last=False)
            self._look(place, known)
        return known

    def _look(self, place: str, known: Known) -> SiteFacts:
        """What all processes know of the site: it counts more than what this one had noted."""
        facts = self._frontier.site_facts(place)
        known.looked_at = time.monotonic()
        known.slow = facts.pace.slow_seconds
        known.overload.hear(throttle.number(facts.facts.get(OVERLOAD, "")))
        if LATENCY in facts.facts:
            known.latency.hear(throttle.number(facts.facts[LATENCY]))
        return facts

    def must_wait(self, place: str, known: Known, *, was_paced: bool) -> bool:
        """Whether a request that was handed out before its site was slowed down or paused goes back."""
        now = time.monotonic()
        if known.rests_until > now:
            return True
        if was_paced or not known.slow:
            return False
        if now - known.looked_at > LOOK_SECONDS:
            self._look(place, known)
        return known.slow > 0

    def refused(self, place: str, status: int, wait_seconds: float = 0.0) -> None:
        """The site says that it is asked too much, and perhaps for how long it wants none of it.

        A 503 now and then, as big sites give for single pages, is no reason to ask all of the site slowly.
        """
        before = self._sites[place].overload.told if place in self._sites else 0.0
        known = self._meet(place)
        now = time.monotonic()
        rests = wait_seconds > 0 and known.rests_until < now + wait_seconds - LOOK_SECONDS
        known.refusals += 1.0
        is_meant = throttle.is_sure(status, wait_seconds) or known.refusals >= throttle.ENOUGH
        steps = self._overload_max_seconds > 0 and is_meant and now - known.stepped_at >= STEP_SECONDS
        if not rests and not steps:
            return
        facts = self._look(place, known)
        changes: dict[str, str] = {}
        if steps:
            known.stepped_at = now
            if known.overload.told <= before:  # else another process was told the same, and did it
                known.overload.here = throttle.slower(known.overload.here, self._overload_max_seconds)
                changes[OVERLOAD] = written(known.overload.tell())
        pause: dict[str, float] = {}
        if rests:
            known.rests_until = now + wait_seconds
            pause["paused_until"] = max(facts.pace.paused_until, self._frontier.now() + wait_seconds)
        known.slow = tell(self._frontier, place, facts, changes, self.start_seconds, **pause)

    def answered(self, place: str, status: int, latency: float | None) -> None:
        """The site answered: a little faster from now on, or by its latency if that is asked for."""
        known = self._sites.get(place)
        if known is None:
            if self.auto is None or latency is None:
                return
            known = self._meet(place)
        if status < 400:
            known.refusals = max(0.0, known.refusals - throttle.FORGIVEN)
            if known.overload.here:
                known.overload.here = throttle.faster(known.overload.here)
        if self.auto is not None and latency is not None:
            known.latency.here = self.auto.next_delay(known.latency.here, latency, is_good=status == 200)
        if known.overload.is_to_tell or known.latency.is_to_tell:
            self._tell_change(place, known)

    def _tell_change(self, place: str, known: Known) -> None:
        facts = self._look(place, known)
        changes: dict[str, str] = {}
        if known.overload.is_to_tell:
            changes[OVERLOAD] = written(known.overload.tell())
        if known.latency.is_to_tell:
            changes[LATENCY] = f"{known.latency.tell():.3f}"  # none is known as well: else it was the first delay
        if changes:
            known.slow = tell(self._frontier, place, facts, changes, self.start_seconds)

    def wait_of(self, response: Response) -> float:
        """Seconds that the answer asks to wait, as long as is allowed."""
        return wait_of(response, self._rest_max_seconds)


class Rests:
    """Gives requests back whose site is not to be asked now although they were handed out: raises NotNow."""

    def __init__(self, paces: SitePaces) -> None:
        self._paces = paces

    def process_request(self, request: Request) -> None:
        if self._paces.is_empty or request.lease is None:
            return
        place = site(request.url)
        known = self._paces.known(place)
        if known is not None and self._paces.must_wait(place, known, was_paced=request.lease.is_limited):
            raise NotNow(f"{place} is not to be asked now")


class Manners:
    """Nearest to the network: hears how each site answers, and how fast. What the cache answers tells nothing."""

    def __init__(self, paces: SitePaces) -> None:
        self._paces = paces
        self._started: dict[int, float] = {}

    def process_request(self, request: Request) -> None:
        if self._paces.auto is not None:
            self._started[id(request)] = time.monotonic()

    def process_response(self, request: Request, response: Response) -> Response:
        paces = self._paces
        started = self._started.pop(id(request), None) if self._started else None
        if response.status_code in paces.statuses:
            wait = paces.wait_of(response)
            if wait or response.status_code in OVERLOADED:
                paces.refused(site(request.url), response.status_code, wait)
        elif (started is not None or not paces.is_empty) and "cached" not in response.flags:
            latency = None if started is None else time.monotonic() - started
            paces.answered(site(request.url), response.status_code, latency)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._started.pop(id(request), None)
