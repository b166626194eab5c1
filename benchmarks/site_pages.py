"""The pages that are crawled: files for nginx, each reached from page 0, their set known."""

from __future__ import annotations

import random
from pathlib import Path

LINKS = 20
SEED = 20
SENTENCES = (
    "What is to be found on a page is mostly this.",
    "It is neither long nor short, and says little.",
    "Between the words there is <em>some</em> markup, as everywhere.",
    "Now and then <b>a word</b> is bold; more often it is not.",
    "A page is read once, and what it leads to is written down.",
)


def path(site: str, number: int) -> str:
    return f"/{site}/{number}.html"


def make_site(root: Path, site: str, pages: int, page_bytes: int, links: int = LINKS) -> None:
    """Files of about `page_bytes`. Page n leads to page n + 1, so that none is left out, and to others by chance."""
    folder = root / site
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(SEED)
    frame = page(site, 0, _linked(0, pages, links, chance), "")
    filling = _filling(max(0, page_bytes - len(frame)))
    for number in range(pages):
        text = page(site, number, _linked(number, pages, links, chance), filling)
        (folder / f"{number}.html").write_text(text, "utf-8")


def page(site: str, number: int, linked: list[int], filling: str) -> str:
    items = "".join(f'<li><a href="{path(site, one)}">Page {one}</a></li>\n' for one in linked)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Page {number}</title></head>\n'
        f"<body><h1>Page {number}</h1>\n{filling}<ul>\n{items}</ul></body></html>\n"
    )


def _linked(number: int, pages: int, links: int, chance: random.Random) -> list[int]:
    return [(number + 1) % pages, *(chance.randrange(pages) for _ in range(links - 1))]


def _filling(size: int) -> str:
    paragraphs: list[str] = []
    length = 0
    while length < size:
        text = " ".join(SENTENCES[(len(paragraphs) + one) % len(SENTENCES)] for one in range(4))
        paragraphs.append(f'<p class="text">{text}</p>\n')
        length += len(paragraphs[-1])
    return "".join(paragraphs)
