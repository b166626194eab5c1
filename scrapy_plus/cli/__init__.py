"""The command line: `scrapy-plus ...` or `python -m scrapy_plus ...`; `python main.py` is `scrapy-plus run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from scrapy_plus.cli.asking import dead_group, forget_command, why_command
from scrapy_plus.cli.base import Command
from scrapy_plus.cli.bench import bench_command
from scrapy_plus.cli.changing import drain_command, set_command
from scrapy_plus.cli.crawling import crawl_command, list_command, run_command, runspider_command
from scrapy_plus.cli.making import genspider_command, startproject_command
from scrapy_plus.cli.operating import (
    doctor_command,
    flush_command,
    pause_command,
    resume_command,
    status_command,
    stop_command,
)
from scrapy_plus.cli.reading import items_command
from scrapy_plus.cli.telling import settings_command, version_command
from scrapy_plus.cli.torture import torture_command

__all__ = ["main", "run"]


@click.group(cls=click.Group, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Crawls sites, and makes projects that do."""


main.command_class = Command
for command in (
    startproject_command,
    genspider_command,
    list_command,
    run_command,
    crawl_command,
    runspider_command,
    items_command,
    status_command,
    why_command,
    dead_group,
    forget_command,
    pause_command,
    resume_command,
    stop_command,
    set_command,
    drain_command,
    flush_command,
    doctor_command,
    settings_command,
    version_command,
    bench_command,
    torture_command,
):
    main.add_command(command)


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """What main.py calls: crawls with the project in its folder, as `scrapy-plus run` does, and exits with the code.

    `argv` are the words behind main.py on the command line: master or slave, names of spiders, options.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    sys.exit(run_command.main(words, prog_name="main.py"))
