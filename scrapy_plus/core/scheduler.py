"""The scheduler: requests on one side, the frontier's records and leases on the other.

A request that came from `get_request` is handed in again exactly once: by `delete_request` when its page is done, by
`fail_request` when it failed, or by `release_request` when the crawl stops before it was worked on.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter

from scrapy_plus.core.children import Children, KnownLinks
from scrapy_plus.core.committer import Committer
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import NotStorable, Undecodable
from scrapy_plus.frontier.base import Frontier, Lease, Page, Record
from scrapy_plus.http.codec import decode, encode, encode_refused, is_plain
from scrapy_plus.http.follow import Links
from scrapy_plus.http.request import PRIORITY_LIMIT, Request, plain_request
from scrapy_plus.http.url import site
from scrapy_plus.rules.fingerprint import SEED, fingerprint, occurrence_id, of_plain_get
from scrapy_plus.rules.judge import Bury, Retry, Verdict
from scrapy_plus.rules.pace import Pace

log = logging.getLogger("scrapy_plus.scheduler")

REFUSED_SITE = "feed"
"""Where entries wait that are no requests; no site is asked for them."""


_is_filtered = attrgetter("filter")


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
        committer: Committer | None = None,
        lease_seconds: float = float("inf"),
    ) -> None:
        self.frontier = frontier
        self.stats = stats or Stats()
        self.spider_name = spider_name
        self.committer = committer or Committer(frontier)
        self._dupefilter = dupefilter
        self._log_all_duplicates = log_all_duplicates
        self._identify = identify
        self._paces = dict(paces or {})
        self._paced: set[str] = set()
        self.lease_seconds = lease_seconds
        self._added = 0
        self._warned: set[str] = set()

    # -- taking in ----------------------------------------------------------------------------------------------------

    def add_request(self, request: Request) -> bool:
        """Takes the request in unless it was seen; says whether it was taken."""
        self._added += 1
        records = self._records([request], self.committer.worker.encode(), self._added)
        return self._count_taken([request], self.frontier.offer(records))[0]

    def seed(self, requests: Sequence[Request], start: int = 0) -> int:
        """Takes in the seeds from position `start` of `start_requests` on; how many were new.

        Those before the store's cursor were taken in by an earlier run, unless it was cut off in between: `seen` tells.
        Raises CursorMoved if the store stands before `start`, or moved meanwhile.
        """
        cursor, _ = self.frontier.seed_cursor()
        records = self._records(requests, SEED, start, by_position=True)
        again = min(max(0, cursor - start), len(records))
        taken = self.frontier.offer(records[:again]) if again else []
        if again < len(records):
            taken = taken + self.frontier.seed(start + again, start + len(records), records[again:])
        return self._count_taken(requests, taken).count(True)

    def take_over(
        self,
        requests: Sequence[tuple[int, Request]],
        place: bytes,
        refused: Sequence[tuple[int, bytes, str]] = (),
    ) -> int:
        """Takes in what stands at positions of `place` elsewhere; how many requests were new.

        `refused` are raw entries that are no requests, with the reason: they become dead letters. Done again it takes
        in nothing twice, unfiltered requests neither.
        """
        records = [
            record
            for position, request in requests
            for record in self._records([request], place, position, by_position=True)
        ]
        for position, raw, reason in refused:
            id = occurrence_id(hashlib.sha1(raw).digest(), place, position)
            records.append(Record(id, REFUSED_SITE, encode_refused(raw, reason)))
        taken = self.frontier.offer(records) if records else []
        return self._count_taken([request for _, request in requests], taken[: len(requests)]).count(True)

    def end_seeding(self, position: int) -> None:
        """All of `start_requests`, `position` seeds, has been taken in."""
        cursor, _ = self.frontier.seed_cursor()
        end = max(cursor, position)
        self.frontier.seed(position if cursor < position else cursor, end, [], finished=True)

    def hold_seeding(self) -> bool:
        """Whether this process is the one that seeds, for a lease's time; it asks again before that is over."""
        return self.frontier.hold_seeding(self.committer.worker, self.lease_seconds)

    def has_been_seeded(self) -> bool:
        return self.frontier.seed_cursor()[1]

    def sort_links(self, links: Links, depth: int, *, from_public: bool) -> tuple[list[Request], KnownLinks]:
        """The requests of all links that are left, but for those which are plain and known as duplicates: of these no
        more than it takes to make them, should anybody ask for them."""
        known_ids: list[bytes] = []
        known_urls: list[str] = []
        known = KnownLinks(known_ids, known_urls, links.parse, depth, from_public)
        if not links.is_plain or not self._dupefilter or self._identify is not fingerprint:
            return list(links), known
        urls, parse = links.urls(), links.parse
        ids = [of_plain_get(url) for url in urls]
        new: list[Request] = []
        for url, id, is_known in zip(urls, ids, self.frontier.knows(ids), strict=True):
            if is_known:
                known_ids.append(id)
                known_urls.append(url)
            else:
                new.append(plain_request(url, parse))
        return new, known

    def _children(self, requests: Sequence[Request], links: Sequence[KnownLinks], parent_id: bytes) -> Children:
        """Like `_records`, but what is known as a duplicate costs no more than to find that out."""
        if not requests:
            return Children(links=links)
        if not self._dupefilter or not all(map(_is_filtered, requests)):
            return Children(requests, self._records(requests, parent_id), links=links)
        ids = list(map(self._identify, requests))
        new: list[Request] = []
        records: list[Record] = []
        known: list[tuple[bytes, Request]] = []
        for request, id, is_known in zip(requests, ids, self.frontier.knows(ids), strict=True):
            # One that is not plain is encoded at once: if it cannot be stored its page must hear of it.
            if is_known and is_plain(request):
                known.append((id, request))
            else:
                new.append(request)
                records.append(self._record(request, id))
        return Children(new, records, known, links)

    def _records(
        self, requests: Sequence[Request], parent_id: bytes, first: int = 0, *, by_position: bool = False
    ) -> list[Record]:
        """What the frontier stores; equal unfiltered requests of one parent are told apart by which of them it is."""
        occurrences: Counter[bytes] = Counter()
        records = []
        for position, request in enumerate(requests, first):
            id = self._identify(request)
            if not (request.filter and self._dupefilter):
                occurrences[id] += 1
                id = occurrence_id(id, parent_id, position if by_position else first + occurrences[id])
            records.append(self._record(request, id))
        return records

    def _record(self, request: Request, id: bytes) -> Record:
        place = site(request.url)
        if self._paces and place not in self._paced:
            self._set_pace(place)
        return Record(id, place, encode(request), self._priority(request))

    def _set_pace(self, place: str) -> None:
        self._paced.add(place)
        pace = self._paces.get(place) or self._paces.get(place.partition("://")[2].rpartition(":")[0])
        if pace is not None:
            self.frontier.set_site(place, delay_seconds=pace.delay_seconds, limit=pace.limit, jitter=pace.jitter)

    def _priority(self, request: Request) -> int:
        if not isinstance(request.priority, int):  # set by a middleware; the constructor refuses it
            raise NotStorable(f"priority: {request.priority!r} is no whole number")
        if -PRIORITY_LIMIT <= request.priority <= PRIORITY_LIMIT:
            return request.priority
        self._warn_once(
            "priority", "priority %r of %r is cut to ±%d; others will be too", request.priority, request, PRIORITY_LIMIT
        )
        return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT, request.priority))

    def _count_taken(self, requests: Iterable[Request], taken: list[bool]) -> list[bool]:
        if new := taken.count(True):
            self.stats.inc("scheduler/enqueued", new)
        if len(taken) > new:
            self.stats.inc("dupefilter/filtered", len(taken) - new)
            if self._log_all_duplicates or "duplicate" not in self._warned:
                for request, is_taken in zip(requests, taken, strict=True):
                    if not is_taken:
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

    @property
    def wait_seconds(self) -> float | None:
        """How long after an empty answer it is worth asking again; None: not before something moves."""
        return self.committer.wait_seconds

    def get_request(self) -> Request | None:
        """The next request that may be asked now, or None."""
        while True:
            lease = self.committer.take()
            if lease is None:
                return None
            self.stats.inc("scheduler/dequeued")
            request = self._request(lease)
            if request is not None:
                return request

    def _request(self, lease: Lease) -> Request | None:
        try:
            request = decode(lease.payload)
        except Undecodable as error:
            log.error("a stored request cannot be read and is buried: %s", error)
            page = Page(lease.id, lease.token, reason=f"Undecodable: {error}")
            self.committer.settle(page, lambda taken: None)
            return None
        request.lease = lease
        request.fp = lease.id
        request.retry_time = lease.attempt
        request.spider_name = self.spider_name
        return request

    def fetched(self, request: Request) -> None:
        """The answer's body is read: the site may be asked again, though the page is still worked on.

        Nobody waits for a site without a delay or a limit, so nothing is sent of it: that would be a call more a page.
        """
        if request.lease.is_limited:
            self.committer.fetched(request.lease.id, request.lease.token)

    def is_ours(self, request: Request) -> bool:
        """Whether nobody else was given this request meanwhile; what it led to must not be written then."""
        return self.committer.is_ours(request.lease.id, request.lease.token, within_seconds=self.lease_seconds / 2)

    # -- settling -----------------------------------------------------------------------------------------------------

    def delete_request(
        self,
        request: Request,
        children: Sequence[Request] = (),
        items: Sequence[bytes] = (),
        links: Sequence[KnownLinks] = (),
    ) -> None:
        """The page is done: its children in, its items stored, itself out, in one step; refused whole if not ours.

        `links` are those of `sort_links`.
        """
        self._settle(request, children, links, items, None, 0)

    def fail_request(
        self,
        request: Request,
        verdict: Verdict,
        *,
        status: int = 0,
        children: Sequence[Request] = (),
        items: Sequence[bytes] = (),
        links: Sequence[KnownLinks] = (),
    ) -> None:
        """Carries out the verdict: later again, dead letter, or done."""
        if isinstance(verdict, Retry):
            self.committer.retry(request.lease.id, request.lease.token, verdict.delay_seconds)
        else:
            reason = verdict.reason if isinstance(verdict, Bury) else None
            self._settle(request, children, links, items, reason, status)

    def _settle(
        self,
        request: Request,
        requests: Sequence[Request],
        links: Sequence[KnownLinks],
        items: Sequence[bytes],
        reason: str | None,
        status: int,
    ) -> None:
        lease: Lease = request.lease
        children = self._children(requests, links, lease.id)
        known = children.as_known(self._record)
        counters = self.stats.take_increments()
        page = Page(lease.id, lease.token, children.records, items, reason, status, counters, known)
        self.committer.settle(page, partial(self._settled, request, children))

    def _settled(self, request: Request, children: Children, taken: list[bool] | None) -> None:
        if taken is None:
            self.drop_request(request)
        else:
            self._count_taken(children.requests(), taken)

    def drop_request(self, request: Request) -> None:
        """Another process has this request since: what it led to here is that one's to write."""
        self.stats.inc("scheduler/lost")
        log.warning("%r was given to another worker meanwhile; its results are dropped", request)
        self.committer.forget(request.lease.id)

    def release_request(self, request: Request) -> None:
        """Gives the request back as it was, uncounted: the crawl stops before it was worked on."""
        self.committer.release(request.lease.id, request.lease.token)

    def add_lost_requests(self) -> int:
        """Gives back what workers held that are dead or silent; how many requests that were."""
        ready, dead = self.frontier.reap()
        return len(ready) + len(dead)

    # -- the crawl as a whole -----------------------------------------------------------------------------------------

    def finish(self) -> bool:
        """Whether the crawl is finished, as the store decides."""
        return self.committer.finish()

    def is_finished(self) -> bool:
        """Whether the store of an earlier run says that the crawl is finished."""
        return self.committer.is_remote and self.frontier.finish()

    def has_pending_requests(self) -> bool:
        return self.frontier.counts().pending > 0

    def __len__(self) -> int:
        counts = self.frontier.counts()
        return counts.ready + counts.delayed

    def open(self, spider: object = None) -> None:
        """Says what is left of an earlier run."""
        pending = self.frontier.counts().pending  # what a killed process held comes back by itself
        if pending:
            log.info("Resuming crawl (%d requests scheduled)", pending)

    def close(self, reason: str = "") -> None:
        """Leaves the crawl and lets go of the store; what is stored stays."""
        self.committer.leave()
        self.frontier.close()

    enqueue_request = add_request
    next_request = get_request
