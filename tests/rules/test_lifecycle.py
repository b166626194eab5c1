from __future__ import annotations

import pytest

from scrapy_plus.errors import IllegalMove
from scrapy_plus.rules.lifecycle import TABLE, State, move


def test_a_listed_move_leads_where_the_table_says():
    assert move(State.LEASED, "retry") is State.DELAYED


def test_an_unlisted_move_is_an_error_that_names_verb_and_state():
    with pytest.raises(IllegalMove, match="cannot ack a request that is ready"):
        move(State.READY, "ack")


def test_every_state_but_none_can_be_reached_from_new():
    reached, frontier = {State.NEW}, [State.NEW]
    while frontier:
        for state in TABLE[frontier.pop()].values():
            if state not in reached:
                reached.add(state)
                frontier.append(state)
    assert reached == set(State)
