"""Bytes of RSS that the memory frontier takes for a queued plain GET with a 60-character URL, and for a seen one.

    python benchmarks/micro/memory.py [COUNT]

Prints `queued=… seen=…` (bytes a request), worst over a range of sizes, since hash tables grow in steps.
"""

from __future__ import annotations

import scrapy_plus  # isort: skip

import gc
import os
import subprocess
import sys

from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.frontier.memory import MemoryFrontier
from scrapy_plus.http.request import Request


def rss_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(count: int, *, is_done: bool) -> float:
    scheduler = Scheduler(MemoryFrontier())
    before = rss_bytes()
    for number in range(count):
        scheduler.add_request(Request(f"http://bookshop.example.org/catalogue/books/{number:013d}"))
        if is_done:
            scheduler.delete_request(scheduler.get_request())
    return (rss_bytes() - before) / count


def main() -> None:
    """Each size in a fresh process: memory that an earlier one gave back would hide what a later one takes."""
    if len(sys.argv) == 3:
        print(measure(int(sys.argv[1]), is_done=sys.argv[2] == "seen"))
        return
    top = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    worst = {"queued": 0.0, "seen": 0.0}
    for kind in worst:
        for share in (0.5, 0.62, 0.75, 0.87, 1.0):
            command = [sys.executable, __file__, str(int(top * share)), kind]
            bytes_each = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(f"{kind} {int(top * share):>9,}: {bytes_each:.0f} bytes")
            worst[kind] = max(worst[kind], bytes_each)
    print(f"queued={worst['queued']:.0f} seen={worst['seen']:.0f}")


if __name__ == "__main__":
    assert scrapy_plus.__version__
    main()
