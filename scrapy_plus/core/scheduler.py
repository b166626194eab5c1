"""The scheduler: requests on one side, the frontier's records and leases on the other.

A request that came from `get_request` is handed in again exactly once: by `delete_request` when its page is done, by
`fail_request` when it failed, or by `release_request` when the crawl stops before it was worked on.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import Undecodable
from scrapy_plus.frontier.base import Frontier, Lease, Page, Record
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.request import PRIORITY_LIMIT, Request
from scrapy_plus.http.url import site
from scrapy_plus.rules.fingerprint import SEED, fingerprint, occurrence_id
from scrapy_plus.rules.judge import Bury, Retry, Verdict
from scrapy_plus.rules.pace import Pace

log = logging.getLogger("scrapy_plus.scheduler")


class Scheduler:
    """Takes requests in, hands them out, and settles them; all state is in the frontier.

    `dupefilter=False` crawls every request however often its URL comes. `paces` are those of single hosts or sites.
    """

    def __init__(
        self,
        frontier: Frontier,
        *,
        spider_name: str = "",
        dupefilter: bool = True,
        log_all_duplicates: bool = False,
        identify: Callable[[Request], bytes] = fingerprint,
        paces: Mapping[str, Pace] | None = None,
        stats: Stats | None = None,
    ) -> None:
        self.frontier = frontier
        self.stats = stats or Stats()
        self.spider_name = spider_name
        self.wait_seconds: float | None = None
        self._dupefilter = dupefilter
        self._log_all_duplicates = log_all_duplicates
        self._identify = identify
        self._paces = dict(paces or {})
        self._paced: set[str] = set()
        self._worker = uuid.uuid4().hex
        self._base = 0
        self._added = 0
        self._warned: set[str] = set()

    # -- taking in ----------------------------------------------------------------------------------------------------

    def add_request(self, request: Request) -> bool:
        """Takes the request in unless it was seen; says whether it was taken."""
        self._added += 1
        records = self._records([request], self._worker.encode(), self._added)
        return self._count_taken([request], self.frontier.offer(records))[0]

    def seed(self, request: Request | None) -> bool:
        """Takes in the next request of `start_requests`, or with None: ends the seeding."""
        cursor, _ = self.frontier.seed_cursor()
        if request is None:
            self.frontier.seed(cursor, cursor, [], finished=True)
            return False
        records = self._records([request], SEED, cursor)
        return self._count_taken([request], self.frontier.seed(cursor, cursor + 1, records))[0]

    def _records(self, requests: Sequence[Request], parent_id: bytes, first: int = 0) -> list[Record]:
        """What the frontier stores; equal unfiltered requests of one parent are told apart by which of them it is."""
        occurrences: Counter[bytes] = Counter()
        records = []
        for request in requests:
            id = self._identify(request)
            if not (request.filter and self._dupefilter):
                occurrences[id] += 1
                id = occurrence_id(id, parent_id, first + occurrences[id])
            place = site(request.url)
            if self._paces and place not in self._paced:
                self._set_pace(place)
            records.append(Record(id, place, encode(request), self._priority(request)))
        return records

    def _set_pace(self, place: str) -> None:
        self._paced.add(place)
        pace = self._paces.get(place) or self._paces.get(place.partition("://")[2].rpartition(":")[0])
        if pace is not None:
            self.frontier.set_site(place, delay_seconds=pace.delay_seconds, limit=pace.limit, jitter=pace.jitter)

    def _priority(self, request: Request) -> int:
        if -PRIORITY_LIMIT <= request.priority <= PRIORITY_LIMIT:
            return request.priority
        self._warn_once(
            "priority", "priority %r of %r is cut to ±%d; others will be too", request.priority, request, PRIORITY_LIMIT
        )
        return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT, request.priority))

    def _count_taken(self, requests: Sequence[Request], taken: list[bool]) -> list[bool]:
        if taken:
            self.stats.inc("scheduler/enqueued", taken.count(True))
        for request, is_taken in zip(requests, taken, strict=True):
            if not is_taken:
                self.stats.inc("dupefilter/filtered")
                self._log_duplicate(request)
        return taken

    def _log_duplicate(self, request: Request) -> None:
        if self._log_all_duplicates:
            log.info("filtered duplicate request %r", request)
        elif "duplicate" not in self._warned:
            self._warned.add("duplicate")
            log.debug("filtered duplicate request %r; DUPEFILTER_DEBUG = True shows all of them", request)

    def _warn_once(self, topic: str, message: str, *values: object) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            log.warning(message, *values)

    # -- handing out --------------------------------------------------------------------------------------------------

    def get_request(self) -> Request | None:
        """The next request that may be asked now, or None; then `wait_seconds` says when to come again, if known."""
        while True:
            answer = self.frontier.lease(self._worker, self._base, 1)
            self.wait_seconds = answer.wait_seconds
            if not answer.leases:
                return None
            self._base += len(answer.leases)
            self.stats.inc("scheduler/dequeued")
            request = self._request(answer.leases[0])
            if request is not None:
                return request

    def _request(self, lease: Lease) -> Request | None:
        try:
            request = decode(lease.payload)
        except Undecodable as error:
            log.error("a stored request cannot be read and is buried: %s", error)
            self.frontier.bury(lease.id, lease.token, f"Undecodable: {error}")
            return None
        request.lease = lease
        request.fp = lease.id
        request.retry_time = lease.attempt
        request.spider_name = self.spider_name
        return request

    def fetched(self, request: Request) -> None:
        """The answer's body is read: the site may be asked again, though the page is still worked on."""
        self.frontier.fetched([(request.lease.id, request.lease.token)])

    # -- settling -----------------------------------------------------------------------------------------------------

    def delete_request(self, request: Request, children: Sequence[Request] = (), items: Sequence[bytes] = ()) -> bool:
        """The page is done: its children in, its items stored, itself out, in one step. False if no longer ours."""
        return self._settle(request, children, items, None, 0)

    def fail_request(
        self,
        request: Request,
        verdict: Verdict,
        *,
        status: int = 0,
        children: Sequence[Request] = (),
        items: Sequence[bytes] = (),
    ) -> bool:
        """Carries out the verdict: later again, dead letter, or done. False if the request was not ours any more."""
        if isinstance(verdict, Retry):
            return self.frontier.retry(request.lease.id, request.lease.token, verdict.delay_seconds)
        reason = verdict.reason if isinstance(verdict, Bury) else None
        return self._settle(request, children, items, reason, status)

    def _settle(
        self, request: Request, children: Sequence[Request], items: Sequence[bytes], reason: str | None, status: int
    ) -> bool:
        lease: Lease = request.lease
        records = self._records(children, lease.id) if children else []
        taken = self.frontier.ack([Page(lease.id, lease.token, records, items, reason, status)])[0]
        if taken is None:
            log.warning("%r was given to another worker meanwhile; its results are dropped", request)
            return False
        self._count_taken(children, taken)
        return True

    def release_request(self, request: Request) -> None:
        """Gives the request back as it was, uncounted: the crawl stops before it was worked on."""
        self.frontier.release([(request.lease.id, request.lease.token)])

    def add_lost_requests(self) -> int:
        """Gives back what workers held that are dead or silent; how many requests that were."""
        ready, dead = self.frontier.reap()
        return len(ready) + len(dead)

    # -- the crawl as a whole -----------------------------------------------------------------------------------------

    def finish(self) -> bool:
        """Whether the crawl is finished, as the store decides."""
        return self.frontier.finish()

    def has_pending_requests(self) -> bool:
        return self.frontier.counts().pending > 0

    def __len__(self) -> int:
        counts = self.frontier.counts()
        return counts.ready + counts.delayed

    def open(self, spider: object = None) -> None:
        """Says what is left of an earlier run."""
        if len(self):
            log.info("Resuming crawl (%d requests scheduled)", len(self))

    def close(self, reason: str = "") -> None:
        self.frontier.close()

    enqueue_request = add_request
    next_request = get_request
