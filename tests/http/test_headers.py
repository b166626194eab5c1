"""Copies of header fields share what nobody has changed, and nothing that somebody has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scrapy_plus.http.headers import Headers

CHANGES: dict[str, Callable[[Headers], object]] = {
    "set": lambda headers: headers.__setitem__("accept", "b"),
    "added": lambda headers: headers.add("Accept", "b"),
    "another added": lambda headers: headers.add("X", "b"),
    "deleted": lambda headers: headers.__delitem__("ACCEPT"),
    "popped": lambda headers: headers.pop("Accept"),
    "updated": lambda headers: headers.update({"Accept": "b"}),
    "cleared": lambda headers: headers.clear(),
    "set by default": lambda headers: headers.setdefault("Y", "c"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_one_leaves_its_copies_as_they_were(change):
    before = [("Accept", "a"), ("Accept", "z"), ("User-Agent", "u")]
    original = Headers(before)
    first = original.copy()
    second, third = original.copy(), first.copy()
    change(first)
    assert list(first.pairs()) != before
    assert [list(one.pairs()) for one in (original, second, third)] == [before] * 3
    change(original)
    assert list(original.pairs()) == list(first.pairs())
    assert [list(one.pairs()) for one in (second, third)] == [before] * 2


def test_copies_are_known_to_be_the_same_until_they_are_changed():
    original = Headers({"Accept": "a"})
    assert original.fixed is None, "it may change without notice"
    copied = original.copy()
    assert copied.fixed is not None and copied.fixed is original.fixed is copied.copy().fixed
    copied["Accept"] = "b"
    assert copied.fixed is None and original.fixed is not None
    assert Headers({"Accept": "a"}).copy().fixed is not original.fixed, "the same only by having been copied"
