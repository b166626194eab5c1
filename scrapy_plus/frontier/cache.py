"""What is certainly seen, remembered in this process: most links of a page lead to pages that are known already."""

from __future__ import annotations

from collections.abc import Iterable


class SeenCache:
    """At most `size` ids, valid for one stamp of the store: its epoch and the version of its `seen`.

    Two generations: when the younger is half of the size it becomes the older, and that one is dropped. So what comes
    again and again stays, for the price of a set.
    """

    def __init__(self, size: int = 100_000) -> None:
        self._half = max(1, size // 2)
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self.stamp = b""

    def __len__(self) -> int:
        return len(self._young | self._old)

    def __contains__(self, id: bytes) -> bool:
        if id in self._young:
            return True
        if id not in self._old:
            return False
        self._add(id)
        return True

    def contains(self, ids: Iterable[bytes]) -> list[bool]:
        """Whether each is among them."""
        young = self._young
        return [id in young or id in self for id in ids]

    def learn(self, ids: Iterable[bytes], stamp: bytes) -> None:
        """These were seen when the store's stamp was this; another stamp than before empties the cache."""
        self.heed(stamp)
        for id in ids:
            self._add(id)

    def heed(self, stamp: bytes) -> None:
        """The store's stamp is this: what was learnt under another is forgotten."""
        if stamp != self.stamp:
            self._young, self._old, self.stamp = set(), set(), stamp

    def _add(self, id: bytes) -> None:
        self._young.add(id)
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()
