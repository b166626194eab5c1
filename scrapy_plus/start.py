"""What the package offers of its command line, loaded when it is called: who makes an engine of his own needs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """What main.py calls: crawls with the project in its folder, as `scrapy-plus run` does, and exits with the code.

    `argv` are the words behind main.py on the command line: master or slave, names of spiders, options.
    """
    from scrapy_plus.cli import run_project

    run_project(argv)


def project_engine() -> dict[str, Any]:
    """The arguments of `Engine()`: those of the project at hand."""
    from scrapy_plus.cli import embedded

    return embedded.project_engine()
