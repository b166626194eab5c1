"""Microseconds of CPU a request: its canonical URL, its fingerprint, to bytes and back.

    python benchmarks/micro/requests_cost.py [TIMES]

For a plain URL and for one with a query to be sorted and a fragment; for a plain GET and a request that carries much.
Each is the best of five.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import sys
import time
from collections.abc import Callable

from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.request import Request
from scrapy_plus.http.url import canonicalize
from scrapy_plus.rules.fingerprint import fingerprint

PLAIN = "http://bookshop.example.org/catalogue/books/a-light-in-the-attic-%06d/"
QUERY = "http://bookshop.example.org/search?q=caf%%C3%%A9&page=%06d&lang=en#results"


def best(act: Callable[[int], object], times: int) -> float:
    """Each call gets another number: what is cached for one URL must not make the next one cheap."""
    seconds = []
    for turn in range(5):
        started = time.process_time()
        for number in range(turn * times, (turn + 1) * times):
            act(number)
        seconds.append(time.process_time() - started)
    return min(seconds) / times * 1e6


def rich(number: int) -> Request:
    headers = {"Referer": "http://bookshop.example.org/", "X-Part": "7"}
    return Request(QUERY % number, headers=headers, meta={"depth": 3, "shelf": "poetry"}, priority=5)


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    stored = [encode(Request(PLAIN % 7)), encode(rich(7))]
    parts: dict[str, Callable[[int], object]] = {
        "Request(plain URL)": lambda number: Request(PLAIN % number),
        "canonical, plain": lambda number: canonicalize(PLAIN % number),
        "canonical, with a query": lambda number: canonicalize(QUERY % number),
        "Request and fingerprint, plain": lambda number: fingerprint(Request(PLAIN % number)),
        "Request and fingerprint, with a query": lambda number: fingerprint(Request(QUERY % number)),
        f"Request to bytes, plain ({len(stored[0])})": lambda number: encode(Request(PLAIN % number)),
        f"Request to bytes, much in it ({len(stored[1])})": lambda number: encode(rich(number)),
        "bytes to Request, plain": lambda number: decode(stored[0]),
        "bytes to Request, much in it": lambda number: decode(stored[1]),
    }
    for name, act in parts.items():
        print(f"{name:44}{best(act, times):8.2f} us")


if __name__ == "__main__":
    main()
