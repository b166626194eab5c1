"""The command line: `scrapy-plus ...` or `python -m scrapy_plus ...`; `python main.py` is `scrapy-plus run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from scrapy_plus.cli.base import Command
from scrapy_plus.cli.crawling import run_command

__all__ = ["main", "run_project"]

PLACES = """making: startproject genspider
crawling: list run crawl runspider
reading: items
operating: status
asking: why dead forget
operating: pause resume stop
changing: set drain
operating: flush doctor
moving: dump load
serving: redis
migrate: migrate
telling: settings version
bench: bench
torture: torture"""
"""The modules of this package and their commands, in the order in which --help lists them."""
MODULES = {
    name: module
    for module, _, names in (line.partition(": ") for line in PLACES.splitlines())
    for name in names.split()
}


class Commands(click.Group):
    """Loads a command when it is asked for: who crawls needs no tools for Redis, and who asks no panel."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in MODULES:
            return None
        module = import_module(f"{__name__}.{MODULES[name]}")
        return next(one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Crawls sites, and makes projects that do."""


def run_project(argv: Sequence[str] | None = None) -> NoReturn:
    """`scrapy-plus run` with the words of `argv`, or those behind main.py on the command line; exits with its code."""
    words = sys.argv[1:] if argv is None else list(argv)
    sys.exit(run_command.main(words, prog_name="main.py"))
