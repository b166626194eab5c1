"""Which site may be asked now: each site's queue in order, and the sites in the order of their best request.

A site stands in one place: idle (nothing waits), open (in a heap by its best key), waiting (in a heap by time) or full
(only a finished request opens it). So a site that must wait costs nothing until its time, and never blocks another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush, nlargest
from typing import Any

from scrapy_plus.rules.pace import Pace, next_start, wait_seconds

IDLE, OPEN, WAITING, FULL = "idle", "open", "waiting", "full"


class Site:
    """One site's queue (a heap of keys), pace, slots in use and facts."""

    __slots__ = ("facts", "in_flight", "is_limited", "name", "next_at", "pace", "place", "queue", "wakes_at")

    def __init__(self, name: str, pace: Pace) -> None:
        self.name = name
        self.pace = pace
        self.is_limited = pace.is_limited
        self.queue: list[bytes] = []
        self.next_at = 0.0
        self.in_flight = 0
        self.place = IDLE
        self.wakes_at = 0.0
        self.facts: dict[str, str] = {}

    def change_pace(self, default: Pace, **changes: Any) -> None:
        """Changes what is given (not None); the very default again if nothing differs from it."""
        pace = replace(self.pace, **{name: value for name, value in changes.items() if value is not None})
        self.pace = default if pace == default else pace
        self.is_limited = self.pace.is_limited

    def is_forgettable(self, default: Pace, now: float) -> bool:
        """Whether nothing would change if this site were met for the first time again."""
        return (
            self.place == IDLE
            and self.in_flight == 0
            and self.next_at <= now
            and self.pace is default
            and not self.facts
        )


class SiteQueues:
    """The ready requests of all sites. Keys are bytes that sort in the order of the crawl; O(log n) a step."""

    def __init__(self, pace: Pace, dice: Callable[[], float]) -> None:
        self._pace = pace
        self._dice = dice
        self._sites: dict[str, Site] = {}
        self._open: list[tuple[bytes, str]] = []
        self._waiting: list[tuple[float, str]] = []
        self.size = 0

    def get(self, name: str) -> Site | None:
        return self._sites.get(name)

    def site(self, name: str) -> Site:
        """The site, made with the default pace when it is met for the first time."""
        site = self._sites.get(name)
        if site is None:
            site = self._sites[name] = Site(name, self._pace)
        return site

    def push(self, name: str, key: bytes, now: float) -> None:
        """Puts a request in its place among those of its site."""
        site = self.site(name)
        heappush(site.queue, key)
        self.size += 1
        if site.place == IDLE:
            self.place(site, now)
        elif site.place == OPEN and site.queue[0] is key:
            heappush(self._open, (key, name))

    def pop(self, now: float, *, limited: bool = True) -> tuple[bytes, Site] | None:
        """The best request whose site may be asked now, and its site; a slot is taken and its next start is set.

        Without `limited`, sites with a delay or a limit are passed over.
        """
        if self._waiting:
            self.wake(now)
        passed: list[tuple[bytes, str]] = []
        found = None
        while self._open and found is None:
            key, name = heappop(self._open)
            site = self._sites.get(name)
            if site is None or site.place != OPEN or site.queue[0] != key:
                continue  # an older entry of a site whose best request, pace or place has changed since
            if site.is_limited and not limited:
                passed.append((key, name))
                continue
            found = self._take(site, now), site
        for entry in passed:
            heappush(self._open, entry)
        return found

    def _take(self, site: Site, now: float) -> bytes:
        key = heappop(site.queue)
        self.size -= 1
        self.take_slot(site, now)
        return key

    def remove(self, id: bytes, now: float) -> None:
        """Takes the request out of its site's queue, if one has it; looks through all, for it is a verb by hand."""
        for site in self._sites.values():
            kept = [key for key in site.queue if key[8:] != id]
            if len(kept) < len(site.queue):
                heapify(kept)
                site.queue = kept
                self.size -= 1
                self.place(site, now)

    def opens_in(self, site: Site, now: float) -> float | None:
        """0 if the site may be asked now, the seconds until it may, or None if only a finished request can open it."""
        if not site.is_limited and not site.pace.paused_until and site.next_at <= now:
            return 0.0
        return wait_seconds(now, site.pace, site.next_at, site.in_flight)

    def take_slot(self, site: Site, now: float) -> None:
        """A request of this site goes on the wire."""
        site.in_flight += 1
        if site.is_limited and site.pace.gap_seconds:
            site.next_at = next_start(now, site.pace, self._dice())
        self.place(site, now)

    def free_slot(self, name: str, now: float) -> None:
        """A request of this site is off the wire."""
        site = self._sites[name]
        site.in_flight -= 1
        if site.place == FULL:
            self.place(site, now)
        elif site.is_forgettable(self._pace, now):
            del self._sites[name]

    def place(self, site: Site, now: float) -> None:
        """Puts a site where its queue and pace say that it belongs."""
        if not site.queue:
            site.place = IDLE
            return
        wait = self.opens_in(site, now)
        if wait is None:
            site.place = FULL
        elif wait > 0:
            site.place = WAITING
            site.wakes_at = now + wait
            heappush(self._waiting, (site.wakes_at, site.name))
        else:
            site.place = OPEN
            heappush(self._open, (site.queue[0], site.name))

    def wake(self, now: float) -> None:
        """Opens the sites whose time has come."""
        while self._waiting and self._waiting[0][0] <= now:
            at, name = heappop(self._waiting)
            site = self._sites.get(name)
            if site is not None and site.place == WAITING and site.wakes_at == at:
                self.place(site, max(now, at))

    def next_wake(self) -> float | None:
        """When the next waiting site may be asked, or None."""
        while self._waiting:
            at, name = self._waiting[0]
            site = self._sites.get(name)
            if site is not None and site.place == WAITING and site.wakes_at == at:
                return at
            heappop(self._waiting)
        return None

    def most_waiting(self, limit: int) -> list[Site]:
        return nlargest(limit, self._sites.values(), key=lambda site: (len(site.queue), site.in_flight))

    def waiting(self) -> Iterator[tuple[str, bytes]]:
        """Every (site, key) that waits, in no order."""
        for site in self._sites.values():
            for key in site.queue:
                yield site.name, key
