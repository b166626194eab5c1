"""What happened in a torture, and what it led to: sums over all rounds, and the lines and the JSON that are printed."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SHOWN = 5


@dataclass(slots=True)
class Tally:
    """All that is counted. `problems` are the lines that make the whole a failure."""

    seed: int
    rounds: int = 0
    pages: int = 0
    once: int = 0
    lost: int = 0
    doubled: int = 0
    refetches: int = 0
    events: Counter[str] = field(default_factory=Counter)
    cuts: Counter[str] = field(default_factory=Counter)
    exit_codes: Counter[int] = field(default_factory=Counter)
    refused_late: int = 0
    given_back: int = 0
    buried: int = 0
    resumed: int = 0
    torn_bytes: int = 0
    takeovers: list[float] = field(default_factory=list)
    quick_takeovers: list[float] = field(default_factory=list)
    first_acks: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    audit: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.audit or self.problems) and self.rounds > 0

    def as_json(self) -> str:
        """One line for machines."""
        return json.dumps(
            {
                "ok": self.is_good,
                "seed": self.seed,
                "rounds": self.rounds,
                "pages": {"all": self.pages, "once": self.once, "lost": self.lost, "doubled": self.doubled},
                "refetches": self.refetches,
                "events": dict(self.events),
                "cuts": dict(self.cuts),
                "torn_bytes": self.torn_bytes,
                "late_results_refused": self.refused_late,
                "given_back": self.given_back,
                "buried": self.buried,
                "resumed": self.resumed,
                "takeover_seconds": _figures(self.takeovers),
                "supervised_takeover_seconds": _figures(self.quick_takeovers),
                "first_ack_seconds": _figures(self.first_acks),
                "end_seconds": _figures(self.ends),
                "exit_codes": {str(code): count for code, count in sorted(self.exit_codes.items())},
                "audit": self.audit,
                "problems": self.problems,
                "seconds": round(self.seconds, 1),
            }
        )

    def lines(self) -> Iterator[str]:
        """The same for people."""
        yield f"pages           {self.pages} in {self.rounds} rounds, {self.seconds:.0f} s"
        yield f"  with an item  {self.once} once, {self.lost} never, {self.doubled} more than once"
        yield f"  fetched again {self.refetches}, late results refused {self.refused_late}"
        yield f"disturbances    {_counted(self.events)}" + (f" (cuts: {_counted(self.cuts)})" if self.cuts else "")
        yield f"takeover        {_spread(self.takeovers)}; under a supervisor {_spread(self.quick_takeovers)}"
        yield f"first ack       {_spread(self.first_acks)} after the start of a process"
        yield f"end             {_spread(self.ends)} after the last ack; exit codes {_counted(self.exit_codes)}"
        yield f"audit           {'; '.join(self.audit) or 'nothing is broken'}"
        for problem in self.problems:
            yield f"PROBLEM         {problem}"
        yield "GOOD            nothing lost, nothing doubled" if self.is_good else f"FAILED          --seed {self.seed}"


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "not measured"
    return f"{statistics.median(seconds):.1f} s (at most {max(seconds):.1f} s, {len(seconds)} times)"


def _figures(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    return {
        "median": round(statistics.median(seconds), 2),
        "max": round(max(seconds), 2),
        "count": len(seconds),
    }
