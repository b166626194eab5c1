"""Calls of a bounded size: a script runs alone in the server, and what it is given travels and is held as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from scrapy_plus.frontier import wire
from scrapy_plus.frontier.base import Ask, Child, Known, Page, Record, Token, record_of
from scrapy_plus.frontier.cache import SeenCache
from scrapy_plus.frontier.wire import Argument

RECORDS_A_CALL = 500
KNOWN_A_RECORD = 10
"""So many children that are known count as one record: they are sent only if what was seen may have been lost."""
BYTES_A_CALL = 1 << 20
KNOWN_BYTES = 60
Part = TypeVar("Part")
AnyChild = TypeVar("AnyChild", Record, Child)


def parcels(things: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    """The things, `size` at a time."""
    for start in range(0, len(things), size):
        yield things[start : start + size]


def record_parcels(records: Sequence[AnyChild]) -> Iterator[Sequence[AnyChild]]:
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


def _record_bytes(record: Child) -> int:
    """About what it takes in a call; one that is known is hardly ever sent."""
    return KNOWN_BYTES if isinstance(record, Known) else len(record.payload) + len(record.site) + 60


class Piece:
    """A page, or a part of its children that goes ahead under the same lease, as far as one call carries it."""

    __slots__ = ("children", "is_first", "is_part", "page", "sent", "sent_places")

    def __init__(self, page: Page, children: Sequence[Child], *, is_part: bool, is_first: bool) -> None:
        self.page = page
        self.children = children
        self.is_part = is_part
        self.is_first = is_first
        self.sent: Sequence[Record] = ()
        self.sent_places: list[int] | None = None

    @property
    def weight(self) -> tuple[int, int]:
        """How many records it is worth, and about how many bytes it takes."""
        size = 100 + (0 if self.is_part else sum(map(len, self.page.items)))
        new = [child for child in self.children if isinstance(child, Record)]
        known = len(self.children) - len(new)
        return 1 + len(new) + known // KNOWN_A_RECORD, size + sum(map(_record_bytes, new)) + KNOWN_BYTES * known

    def leave_out(self, cache: SeenCache) -> int:
        """Sends only the children that may be new; how many are left out."""
        places = [place for place, child in enumerate(self.children) if child.id not in cache]
        self.sent = [record_of(self.children[place]) for place in places]
        self.sent_places = places
        return len(self.children) - len(places)

    def read(self, digits: bytes) -> list[bool]:
        """For all children whether they were taken, from the answer for those that were sent."""
        taken = [False] * len(self.children)
        for place, digit in zip(self.sent_places or range(len(self.children)), digits, strict=False):
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
    groups = list(record_parcels(page.children)) or [()]
    last = len(groups) - 1
    for number, children in enumerate(groups):
        yield Piece(page, children, is_part=number < last, is_first=number == 0)
