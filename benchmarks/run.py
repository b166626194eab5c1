"""Every crawler on the same pages in one run, side by side: python benchmarks/run.py [--quick]; see README.md here."""

from __future__ import annotations

import scrapy_plus  # isort: skip

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import venvs
from goals import goals
from measure import Measured, Place, measure
from report import facts_of_machine, summarize, table, write_page
from servers import far_away, nginx, redis_server
from site_pages import make_site
from steady import idle_percent, memory_growth
from subjects import Subject, subjects

from scrapy_plus.conf import default_settings

SMALL_BYTES = 1_000
HAS_CURL = hasattr(default_settings, "TRANSPORT") and importlib.util.find_spec("pycurl") is not None
AWAY_SECONDS = 0.02
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one round, fewer pages, rivals only if they are installed"
    )
    parser.add_argument("--rounds", type=int, help="how often each crawls (3; with --quick 1)")
    parser.add_argument("--pages", type=int, help="pages of the big and the small site (10,000; with --quick 1,500)")
    parser.add_argument("--slow-pages", type=int, help="pages for the rivals that are slow (2,500; with --quick 300)")
    parser.add_argument("--steady-pages", type=int, help="pages over which memory is watched (100,000; quick 10,000)")
    parser.add_argument("--kb", type=int, default=15, help="size of a page of the big sites (15)")
    parser.add_argument("--long", action="store_true", help="memory is watched over 1,000,000 pages")
    parser.add_argument("--rivals", type=Path, default=Path("build/rivals"), help="the folder of their environments")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these subjects")
    parser.add_argument("--no-rivals", action="store_true", help="only what is ours")
    parser.add_argument("--no-pin", action="store_true", help="leave it to the system which core a process runs on")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where all that was measured is written")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    given = parser.parse_args()
    given.rounds = given.rounds or (1 if given.quick else 3)
    given.pages = given.pages or (1_500 if given.quick else 10_000)
    given.slow_pages = given.slow_pages or (300 if given.quick else 2_500)
    given.steady_pages = given.steady_pages or (1_000_000 if given.long else 10_000 if given.quick else 100_000)
    given.rivals = given.rivals.resolve()
    return given


@contextmanager
def place_of(given: argparse.Namespace) -> Iterator[Place]:
    """The site made and the servers running; crawlers have a core to themselves where there are two."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") and not given.no_pin else []
    crawler, server = (cores[0], cores[1]) if len(cores) > 1 else (None, None)
    pages = {"big": given.pages, "slow": given.slow_pages, "small": given.pages}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        for site, page_bytes in {"big": given.kb * 1000, "slow": given.kb * 1000, "small": SMALL_BYTES}.items():
            make_site(folder / "www", site, pages[site], page_bytes)
        web = stack.enter_context(nginx(folder, folder / "www", server))
        redis = stack.enter_context(redis_server(folder, server))
        yield Place(
            folder,
            given.rivals,
            pages,
            {"near": web, "far": stack.enter_context(far_away(web, AWAY_SECONDS, server))},
            {"near": redis, "far": stack.enter_context(far_away(redis, AWAY_SECONDS, server))},
            crawler,
            server,
        )


def chosen(given: argparse.Namespace) -> tuple[list[Subject], list[Measured]]:
    """What will be measured, and the rivals that cannot be, with the reason."""
    all_of_them = [one for one in subjects(HAS_CURL) if not given.only or one.name in given.only]
    if given.no_rivals:
        return [one for one in all_of_them if not one.environment], []
    missing: dict[str, str] = {}
    for name in {one.environment for one in all_of_them if one.environment}:
        is_there = venvs.python_of(given.rivals, name).exists()
        if why := "not installed" if given.quick and not is_there else venvs.make(given.rivals, name):
            missing[name] = why
    absent = [Measured(one.name, problem=missing[one.environment]) for one in all_of_them if one.environment in missing]
    return [one for one in all_of_them if one.environment not in missing], absent


def main() -> int:
    given = arguments()
    present, runs = chosen(given)
    with place_of(given) as place:
        for number in range(given.rounds):
            # Each round in another order: what runs beside us for a while must not fall on the same one each time.
            turn = number * len(present) // given.rounds
            for subject in [*present[turn:], *present[:turn]]:
                runs.append(measure(place, subject))
                print(f"round {number + 1}: {runs[-1].line()}", flush=True)
        steady = (
            []
            if given.only
            else [idle_percent(place, 4.0 if given.quick else 20.0), *memory_growth(place, given.steady_pages)]
        )
    rows = summarize(subjects(HAS_CURL), runs)
    reached = goals(rows, steady)
    facts = facts_of_machine(runs, given.rounds, not given.no_pin)
    text = table(rows, reached, steady, facts)
    print(text)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in [*runs, *steady]], indent=1))
    if given.write:
        write_page(PAGE, text)
    rivals = {one.name for one in subjects(HAS_CURL) if one.environment}
    return 1 if any(one.problem and one.subject not in rivals for one in runs) else 0


if __name__ == "__main__":
    assert scrapy_plus.__version__
    sys.exit(main())
