"""What every crawler says of itself, the same for all: items, memory, CPU from the first page to the last item.

The crawler calls `page` as a page is parsed, `item` with the URL of each item that came out of its pipelines, and
`tell` in the end, which prints a line of JSON. The standard library is enough for it, since it runs in the environment
of each framework.
"""

from __future__ import annotations

import json
import platform
import resource
import sys
import time
from contextlib import suppress
from importlib import metadata
from typing import Any

SAMPLES = 10


class Tally:
    def __init__(self, *packages: str) -> None:
        self.job: dict[str, Any] = json.loads(sys.argv[1])
        self.packages = packages
        self.counts = bytearray(self.job["pages"])
        self.items = 0
        self.rss_kb: list[int] = []
        self._every = max(1, self.job["pages"] // SAMPLES)
        self._first = self._last = (0.0, 0.0)

    def page(self) -> None:
        """A page came. CPU is counted from the first: what it took to start is not the page's."""
        if not self._first[0]:
            self._first = self._last = now()

    def item(self, url: str) -> None:
        """An item of the page `.../N.html` was stored."""
        number = int(url[url.rindex("/") + 1 : -5])
        self.counts[number] = min(255, self.counts[number] + 1)
        self.items += 1
        self._last = now()
        if self.items % self._every == 0:
            self.rss_kb.append(rss_kb())

    def tell(self, **more: Any) -> None:
        told = {
            "items": self.items,
            "items_doubled": sum(count > 1 for count in self.counts),
            "items_missing": self.counts.count(0),
            "seconds": self._last[0] - self._first[0],
            "cpu_seconds": self._last[1] - self._first[1],
            "peak_rss_kb": peak_rss_kb(),
            "rss_kb": self.rss_kb,
            "versions": versions(self.packages),
            "python": platform.python_version(),
        }
        print(json.dumps({**told, **more}), flush=True)


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Of those that are installed."""
    found = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def rss_kb() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() // 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak_rss_kb() -> int:
    """Of this program alone: getrusage would count the process that it was started from."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
