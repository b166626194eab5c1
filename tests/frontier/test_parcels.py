"""How much goes into one call of a far store."""

from __future__ import annotations

from scrapy_plus.frontier.base import Known, Page, Record
from scrapy_plus.frontier.parcels import BYTES_A_CALL, Parcel
from tests.frontier.conftest import record


def known(count: int) -> Known:
    names = [f"a{number}" for number in range(count)]
    return Known([record(name).id for name in names], lambda place: record(names[place]))


def calls(pages: list[list[Record]], known: Known | None = None) -> int:
    settled = [
        Page(record(f"p{number}").id, ("w", number), children, known=known) for number, children in enumerate(pages)
    ]
    return len(list(Parcel.cut((), (), (), settled, None)))


def test_pages_whose_links_were_seen_before_go_a_hundred_to_a_call():
    assert calls([[record(f"new{page}")] for page in range(100)], known(19)) == 1


def test_pages_whose_links_are_new_go_as_many_to_a_call_as_it_has_records():
    assert calls([[record(f"{page}-{link}") for link in range(24)] for page in range(100)]) == 5


def test_known_links_weigh_something_so_that_a_call_stays_bounded_if_they_must_be_sent_after_all():
    assert calls([[] for _ in range(100)], known(1000)) > 10


def test_a_page_of_very_many_known_links_goes_in_several_calls():
    assert calls([[record("new")]], known(12_000)) == 3


def test_bytes_are_bounded_as_well():
    large = [[record(f"{page}")._replace(payload=b"x" * (BYTES_A_CALL // 3))] for page in range(9)]
    assert calls(large) >= 3
