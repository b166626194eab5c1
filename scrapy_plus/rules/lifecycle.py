"""The life of a request as a table: frontiers, documentation and displays read the same one."""

from __future__ import annotations

from enum import Enum

from scrapy_plus.errors import IllegalMove


class State(str, Enum):
    """Where a request stands. DONE and NEW are not stored: a done request has left, a new one has not come."""

    NEW = "new"
    READY = "ready"
    LEASED = "leased"
    DELAYED = "delayed"
    DEAD = "dead"
    DONE = "done"

    def __str__(self) -> str:
        return self.value


TABLE: dict[State, dict[str, State]] = {
    State.NEW: {"offer": State.READY},
    State.READY: {"lease": State.LEASED, "discard": State.DONE},
    State.LEASED: {
        "ack": State.DONE,
        "retry": State.DELAYED,
        "bury": State.DEAD,
        "release": State.READY,
        "reap": State.READY,
    },
    State.DELAYED: {"due": State.READY, "discard": State.DONE},
    State.DEAD: {"revive": State.READY, "forget": State.NEW, "discard": State.DONE},
    State.DONE: {"forget": State.NEW},
}


def move(state: State, verb: str) -> State:
    """The state that `verb` leads to. Raises IllegalMove for what the table does not list."""
    try:
        return TABLE[state][verb]
    except KeyError:
        raise IllegalMove(f"cannot {verb} a request that is {state}") from None
