"""Calls of a bounded size: a script runs alone in the server, and what it is given travels and is held as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from scrapy_plus.frontier import wire
from scrapy_plus.frontier.base import Ask, Page, Record, Token
from scrapy_plus.frontier.cache import SeenCache
from scrapy_plus.frontier.wire import Argument

RECORDS_A_CALL = 500
KNOWN_A_RECORD = 10
"""So many children that are known count as one record: they are sent only if what was seen may have been lost."""
BYTES_A_CALL = 1 << 20
KNOWN_BYTES = 60
Part = TypeVar("Part")


def parcels(things: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    """The things, `size` at a time."""
    for start in range(0, len(things), size):
        yield things[start : start + size]


def record_parcels(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """The records in as many calls as they need."""
    start = total = 0
    for end, record in enumerate(records):
        size = _record_bytes(record)
        if end > start and (end - start >= RECORDS_A_CALL or total + size > BYTES_A_CALL):
            yield records[start:end]
            start, total = end, 0
        total += size
    if start < len(records):
        yield records[start:]


def _record_bytes(record: Record) -> int:
    """About what it takes in a call."""
    return len(record.payload) + len(record.site) + 60


class Piece:
    """A page, or a part of its children that goes ahead under the same lease, as far as one call carries it."""

    __slots__ = ("children", "is_first", "is_part", "known", "page", "sent", "sent_places")

    def __init__(
        self, page: Page, children: Sequence[Record], known: range, *, is_part: bool, is_first: bool
    ) -> None:
        self.page = page
        self.children = children
        self.known = known
        self.is_part = is_part
        self.is_first = is_first
        self.sent: list[Record] = []
        self.sent_places: list[int] = []

    @property
    def weight(self) -> tuple[int, int]:
        """How many records it is worth, and about how many bytes it takes."""
        size = 100 + (0 if self.is_part else sum(map(len, self.page.items)))
        known = len(self.known)
        return (
            1 + len(self.children) + known // KNOWN_A_RECORD,
            size + sum(map(_record_bytes, self.children)) + KNOWN_BYTES * known,
        )

    def leave_out(self, cache: SeenCache) -> int:
        """Sends only the children that may be new; how many are left out."""
        seen = cache.contains([child.id for child in self.children])
        self.sent_places = [place for place, is_seen in enumerate(seen) if not is_seen]
        self.sent = [self.children[place] for place in self.sent_places]
        if self.page.known is not None:
            ids, record = self.page.known
            seen = cache.contains(ids[self.known.start : self.known.stop])
            for place, is_seen in enumerate(seen):
                if not is_seen:
                    self.sent_places.append(len(self.children) + place)
                    self.sent.append(record(self.known[place]))
        return len(self) - len(self.sent)

    def __len__(self) -> int:
        return len(self.children) + len(self.known)

    def read(self, digits: bytes) -> list[bool]:
        """For all children whether they were taken, from the answer for those that were sent."""
        taken = [False] * len(self)
        for place, digit in zip(self.sent_places, digits, strict=True):
            taken[place] = digit == 49
        return taken


class Parcel:
    """What goes into one call of `commit`."""

    def __init__(self) -> None:
        self.fetched: list[tuple[bytes, Token]] = []
        self.retries: list[tuple[bytes, Token, float]] = []
        self.releases: list[tuple[bytes, Token]] = []
        self.pieces: list[Piece] = []
        self.ask: Ask | None = None
        self._records = self._bytes = 0

    @classmethod
    def cut(
        cls,
        fetched: Sequence[tuple[bytes, Token]],
        retries: Sequence[tuple[bytes, Token, float]],
        releases: Sequence[tuple[bytes, Token]],
        pages: Sequence[Page],
        ask: Ask | None,
    ) -> list[Parcel]:
        """One parcel mostly; the lease goes with the last."""
        cut = [cls()]
        for pair in fetched:
            cls._room(cut, 1, 100).fetched.append(pair)
        for retry in retries:
            cls._room(cut, 1, 100).retries.append(retry)
        for pair in releases:
            cls._room(cut, 1, 100).releases.append(pair)
        for page in pages:
            for piece in pieces(page):
                cls._room(cut, *piece.weight).pieces.append(piece)
        cut[-1].ask = ask
        return cut

    @classmethod
    def _room(cls, cut: list[Parcel], records: int, size: int) -> Parcel:
        """The last parcel, or a new one if it is full."""
        last = cut[-1]
        if last._records and (last._records + records > RECORDS_A_CALL + 1 or last._bytes + size > BYTES_A_CALL):
            last = cls()
            cut.append(last)
        last._records += records
        last._bytes += size
        return last

    def leave_out(self, cache: SeenCache) -> int:
        return sum(piece.leave_out(cache) for piece in self.pieces)

    def packed(self) -> list[Argument]:
        packed = [
            *wire.pack_leases(self.fetched),
            *wire.pack_retries(self.retries),
            *wire.pack_leases(self.releases),
            len(self.pieces),
        ]
        for piece in self.pieces:
            packed += wire.pack_page(piece.page, piece.sent, is_part=piece.is_part)
        return packed

    def learnt(self, answers: Sequence[bytes]) -> list[bytes]:
        """The ids that are certainly seen, now that the call was answered."""
        pairs = zip(self.pieces, answers, strict=True)
        return [child.id for piece, digits in pairs if digits != b"-" for child in piece.sent]

    def settle(self, answers: Sequence[bytes], settled: list[list[bool] | None]) -> None:
        """Adds the answer for each page; a page in pieces is refused if any piece was."""
        for piece, digits in zip(self.pieces, answers, strict=True):
            taken = None if digits == b"-" else piece.read(digits)
            if piece.is_first:
                settled.append(taken)
                continue
            before = settled[-1]
            settled[-1] = None if before is None or taken is None else before + taken


def pieces(page: Page) -> Iterator[Piece]:
    """The page as it is, or with most of its children ahead if they are too many for one call."""
    groups = [(group, range(0)) for group in record_parcels(page.children)]
    size = RECORDS_A_CALL * KNOWN_A_RECORD
    count = 0 if page.known is None else len(page.known.ids)
    known = [range(start, min(start + size, count)) for start in range(0, count, size)]
    if known and len(groups) < 2:
        groups = [(groups[0][0] if groups else (), known.pop(0))]
    groups += [((), some) for some in known]
    last = max(0, len(groups) - 1)
    for number, (children, some) in enumerate(groups or [((), range(0))]):
        yield Piece(page, children, some, is_part=number < last, is_first=number == 0)
