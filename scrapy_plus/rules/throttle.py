"""How slowly a site is asked, by how it answers: pure arithmetic; times in seconds, the clock is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timezone
from email.utils import parsedate_to_datetime

OVERLOADED = frozenset({429, 503})
"""Statuses by which a site says that it is asked too much."""
FIRST_STEP_SECONDS = 0.25
UP, DOWN = 2.0, 0.9
FORGIVEN, ENOUGH = 0.2, 3.0
"""A good answer outweighs so much of a 503; so many that are not outweighed are the site's, not those of some pages."""
NOTHING_SECONDS = 0.05
"""A delay below this is none."""
NOTICEABLE = 0.2
"""The part of a delay by which it must change before others are told of it."""
CRAWL_DELAY, LATENCY, OVERLOAD = "crawl_delay", "latency_delay", "overload_delay"
"""The facts of a site that slow it down: its robots.txt, its latency, its refusals. The largest counts."""


def retry_after(value: str | None, now: float, limit_seconds: float) -> float:
    """The wait that a Retry-After header asks for, a number of seconds or a date; at most the limit.

    0 for none, for what cannot be read and for what is over. `now` is the wall clock. Source: RFC 9110 §10.2.3, §5.6.7.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), limit_seconds)
    try:
        date = parsedate_to_datetime(text)
        at = date.replace(tzinfo=date.tzinfo or timezone.utc).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0
    return min(max(0.0, at - now), limit_seconds)


def is_sure(status: int, wait_seconds: float) -> bool:
    """Whether a single refusal tells that the site is asked too much; a 503 without Retry-After may be of one page."""
    return status == 429 or wait_seconds > 0


def slower(delay: float, max_seconds: float) -> float:
    """The delay after an answer that says: too much."""
    return min(max_seconds, max(FIRST_STEP_SECONDS, delay * UP))


def faster(delay: float) -> float:
    """The delay after a good answer: a little less, and nothing in the end."""
    less = delay * DOWN
    return less if less >= NOTHING_SECONDS else 0.0


@dataclass(frozen=True, slots=True)
class AutoThrottle:
    """A delay by latency: so that about `target_concurrency` requests are under way to a site at a time."""

    start_seconds: float = 5.0
    max_seconds: float = 60.0
    target_concurrency: float = 1.0

    def next_delay(self, delay: float, latency: float, *, is_good: bool) -> float:
        """The delay after an answer that took `latency`: half-way to what that latency asks for, at once up to it.

        An answer that is not 200 never makes a site faster: error pages come quickly.
        """
        target = latency / self.target_concurrency
        new = min(max(target, (delay + target) / 2.0), self.max_seconds)
        return new if is_good or new > delay else delay


def is_noticeable(old: float, new: float) -> bool:
    """Whether a change of a delay is worth a call to the store."""
    if (old == 0.0) != (new == 0.0):
        return True
    return abs(new - old) > NOTICEABLE * max(old, new)


def learned(facts: Mapping[str, str], start_seconds: float = 0.0) -> float:
    """The least time between two starts that a site's facts ask for; `start_seconds` while its latency is unknown."""
    latency = number(facts[LATENCY]) if LATENCY in facts else start_seconds
    return max(latency, number(facts.get(CRAWL_DELAY, "")), number(facts.get(OVERLOAD, "")))


def number(text: str) -> float:
    """A delay as a fact says it; none if it says nothing that can be read."""
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def written(delay: float) -> str:
    """A delay as a fact; none is an empty text, which takes the fact away."""
    return f"{delay:.3f}" if delay else ""
