"""Whether another HTML parser would give what lxml gives: the same questions to both, on pages whole and broken.

    pip install selectolax
    python benchmarks/html_parsers.py [FOLDER] [--pages 400]

FOLDER (default /usr/share/doc) is searched for HTML files; each is asked as it is, cut off, without some of its
closing tags, with pieces that changed places, and without some characters of its markup. Printed is for how many
pages of a kind the answers differ, and the CPU seconds that parsing took.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from scrapy_plus import Response

CHANCE = random.Random(20)
FIELDS = [("Content-Type", "text/html; charset=utf-8")]


def cut(page: bytes) -> bytes:
    return page[: CHANCE.randrange(len(page) // 4, len(page))]


def unclosed(page: bytes) -> bytes:
    return re.sub(rb"</[a-z0-9]+>", lambda tag: b"" if CHANCE.random() < 0.3 else tag[0], page)


def swapped(page: bytes) -> bytes:
    changed = bytearray(page)
    for _ in range(10):
        one, other = CHANCE.randrange(len(page) - 40), CHANCE.randrange(len(page) - 40)
        changed[one : one + 40], changed[other : other + 40] = changed[other : other + 40], changed[one : one + 40]
    return bytes(changed)


def gnawed(page: bytes) -> bytes:
    places = [place for place, byte in enumerate(page) if byte in b"<>\"'=/"]
    changed = bytearray(page)
    for place in sorted(CHANCE.sample(places, len(places) // 200 + 1), reverse=True):
        del changed[place]
    return bytes(changed)


BREAK: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda page: page,
    "cut": cut,
    "unclosed": unclosed,
    "swapped": swapped,
    "gnawed": gnawed,
}
QUESTIONS: dict[str, tuple[Callable[[Response], Any], Callable[[LexborHTMLParser], Any]]] = {
    "links": (
        lambda lxml: lxml.css("a[href]::attr(href)").getall(),
        lambda lexbor: [one.attributes["href"] or "" for one in lexbor.css("a[href]")],
    ),
    "title": (
        lambda lxml: lxml.css("title::text").get() or "",
        lambda lexbor: one.text() if (one := lexbor.css_first("title")) else "",
    ),
    "p": (lambda lxml: len(lxml.css("p")), lambda lexbor: len(lexbor.css("p"))),
    "ul > li": (lambda lxml: len(lxml.css("ul > li")), lambda lexbor: len(lexbor.css("ul > li"))),
    "text of td": (
        lambda lxml: ["".join(one.itertext()) for one in lxml.css("td")],
        lambda lexbor: [one.text() for one in lexbor.css("td")],
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("/usr/share/doc"))
    parser.add_argument("--pages", type=int, default=400)
    options = parser.parse_args()
    files = sorted(one for one in options.folder.rglob("*.html") if 500 < one.stat().st_size < 200_000)
    pages = [one.read_bytes() for one in CHANCE.sample(files, min(options.pages, len(files)))]
    seconds: Counter[str] = Counter()
    print(f"{len(pages)} pages; of how many the answers differ:", ", ".join(QUESTIONS))
    for kind, change in BREAK.items():
        differ: Counter[str] = Counter()
        for page in pages:
            compare(change(page).decode("utf-8", "replace"), differ, seconds)
        print(f"{kind:10}", *(f"{differ[name]:5}" for name in QUESTIONS))
    print(f"CPU seconds of parsing: lxml {seconds['lxml']:.2f}, lexbor {seconds['lexbor']:.2f}")


def compare(text: str, differ: Counter[str], seconds: Counter[str]) -> None:
    response = Response("http://h.test/", 200, FIELDS, text.encode())
    started = time.process_time()
    _ = response.root
    between = time.process_time()
    lexbor = LexborHTMLParser(text)
    seconds["lxml"] += between - started
    seconds["lexbor"] += time.process_time() - between
    for name, (ask_lxml, ask_lexbor) in QUESTIONS.items():
        differ[name] += ask_lxml(response) != ask_lexbor(lexbor)


if __name__ == "__main__":
    main()
