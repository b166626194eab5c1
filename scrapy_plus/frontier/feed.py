"""The contract of a feed: entries that other programs bring, moved batch by batch, removed when they are taken in."""

from __future__ import annotations

from typing import NamedTuple, Protocol

MOST_ENTRIES = 1000
"""In one batch."""


class Batch(NamedTuple):
    """Entries on their way from a feed into the frontier; `token` names the batch for good."""

    token: bytes
    entries: list[bytes]


class Feed(Protocol):
    """Where a batch comes from; whoever moves one that was not removed gets it again, under its first token."""

    def move(self, token: bytes, count: int) -> Batch | None:
        """Up to `count` entries, or the batch that an earlier node left. None: there is nothing now."""

    def remove(self, batch: Batch) -> bool:
        """The batch has been taken in. False if it is not there any more, or must be removed again."""

    def close(self) -> None:
        """Lets go of the connection; what is stored stays."""
