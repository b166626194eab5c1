"""How close two names are: for "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str) -> int:
    """Edits that turn one word into the other: letters put in, taken out, replaced, or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, above, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(row[-1] + 1, before[j] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known word that `name` is most likely a slip of, or None.

    Two edits at most, and fewer in short words: DB is no slip of JOB, nor MODE of ROLE.
    """
    near = [(distance(name, word), word) for word in known if abs(len(name) - len(word)) <= 2]
    likely = sorted((edits, word) for edits, word in near if edits <= min(2, (len(word) - 1) // 3))
    return likely[0][1] if likely else None
