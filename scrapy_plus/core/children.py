"""What a page leads to: requests, and links of which this process remembers that they were seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from scrapy_plus.frontier.base import Known, Record
from scrapy_plus.http.request import Request, plain_request


class KnownLinks(NamedTuple):
    """Plain requests that are duplicates, as long as nobody has to have them whole."""

    ids: list[bytes]
    urls: list[str]
    callback: str
    depth: int
    from_public: bool

    def request(self, place: int) -> Request:
        made = plain_request(self.urls[place], self.callback)
        made.meta = {"depth": self.depth}
        made.from_public = self.from_public
        return made

    def requests(self) -> Iterator[Request]:
        return map(self.request, range(len(self.ids)))


class Children(NamedTuple):
    """The children of a page in the order in which a frontier answers for them: those with a record, then the known."""

    new: Sequence[Request] = ()
    records: Sequence[Record] = ()
    known: Sequence[tuple[bytes, Request]] = ()
    links: Sequence[KnownLinks] = ()

    def requests(self) -> Iterator[Request]:
        """All of them; the requests of known links are made for it."""
        links = chain.from_iterable(some.requests() for some in self.links)
        return chain(self.new, (request for _, request in self.known), links)

    def as_known(self, record: Callable[[Request, bytes], Record]) -> Known | None:
        """Those without a record, for the frontier; `record` makes one."""
        if not self.known and not self.links:
            return None

        def record_at(place: int) -> Record:
            if place < len(self.known):
                id, request = self.known[place]
                return record(request, id)
            place -= len(self.known)
            for links in self.links:
                if place < len(links.ids):
                    return record(links.request(place), links.ids[place])
                place -= len(links.ids)
            raise IndexError(place)

        ids = [id for id, _ in self.known]
        for links in self.links:
            ids += links.ids
        return Known(ids, record_at)
