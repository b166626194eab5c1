"""What is said of an error in somebody's files: their own lines, not the thirty of the framework around them."""

from __future__ import annotations

import importlib
import os
import traceback
from pathlib import Path

import click

from scrapy_plus.log import printable

# What stands between the command and the line that failed: ourselves, click, and what imports modules.
_FOLDERS = (Path(__file__).parents[1], Path(click.__file__).parent, Path(importlib.__file__).parent)
_BETWEEN = ("<frozen importlib", *(f"{folder}{os.sep}" for folder in _FOLDERS))


def syntax_error(error: SyntaxError) -> str | None:
    """One line with the place, if it is a Python file that does not compile; None for any other text."""
    if not error.filename or not Path(error.filename).is_file():
        return None
    return printable(
        f"{error.filename}, line {error.lineno}: {error.msg}: {(error.text or '').strip()}; mend that line"
    )


def own_traceback(error: BaseException) -> str:
    """The traceback without the lines of the framework; the whole if nothing is left, for then the mistake is ours."""
    told = traceback.TracebackException.from_exception(error)
    if any(is_own(frame) for frame in told.stack):
        _keep_own(told)
    return printable("".join(told.format()), lines=True).rstrip("\n")


def is_own(frame: traceback.FrameSummary) -> bool:
    """Whether the line stands in somebody's own file, or in a library that it called."""
    return not frame.filename.startswith(_BETWEEN)


def _keep_own(told: traceback.TracebackException) -> None:
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if is_own(frame)])
    for other in (told.__cause__, told.__context__):
        if other is not None:
            _keep_own(other)
