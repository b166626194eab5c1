"""When a site may be asked next: pure arithmetic on the clock that the store gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How a site wants to be asked: seconds between starts, requests at a time (0 = any number), pause until.

    `delay_seconds` is what somebody configured, and `jitter` spreads it; `slow_seconds` is what the crawl has learned
    of the site: the least time between two starts. A gated site is asked by one at a time, until its rules are known.
    """

    delay_seconds: float = 0.0
    limit: int = 0
    paused_until: float = 0.0
    jitter: float = 0.0
    slow_seconds: float = 0.0
    is_gated: bool = False

    @property
    def gap_seconds(self) -> float:
        """Seconds between two starts, jitter aside."""
        return max(self.delay_seconds, self.slow_seconds)

    @property
    def slots(self) -> int:
        """How many requests may be on the wire now; 0 is any number."""
        return 1 if self.is_gated else self.limit

    @property
    def is_limited(self) -> bool:
        """Whether requests of this site must not be fetched ahead of their time."""
        return self.delay_seconds > 0 or self.limit > 0 or self.slow_seconds > 0 or self.is_gated


def next_start(now: float, pace: Pace, dice: float = 0.5) -> float:
    """The earliest moment for the next request of a site that was asked at `now`.

    With jitter j the delay varies evenly between (1 - j) and (1 + j) times itself; `dice` is in [0, 1).
    """
    return now + max(pace.delay_seconds * (1.0 + pace.jitter * (2.0 * dice - 1.0)), pace.slow_seconds)


def wait_seconds(now: float, pace: Pace, next_at: float, in_flight: int) -> float | None:
    """0 if the site may be asked now, the seconds until it may, or None if only a finished request can open it."""
    if pace.slots and in_flight >= pace.slots:
        return None
    return max(0.0, next_at - now, pace.paused_until - now)
