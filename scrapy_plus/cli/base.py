"""What the commands share: clean errors, -s NAME=VALUE, and the settings of the project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from scrapy_plus.cli.mistakes import own_traceback, syntax_error
from scrapy_plus.conf.project import find_project
from scrapy_plus.conf.settings import Settings, load_settings, use
from scrapy_plus.errors import UsageError

EXIT_CRASHED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
NO_PROJECT = (
    "there is no settings.py here or in a folder above; make a project with `scrapy-plus startproject NAME`, "
    "or run a single file with `scrapy-plus runspider FILE.py`"
)
Function = TypeVar("Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose user's mistakes are printed as lines, with exit code 2.

    What else fails is code: the project's is told by a traceback of its own lines, ours by a whole one.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        except Exception as error:
            ctx.exit(tell(error, str(ctx.info_name)))


def tell(error: Exception, program: str) -> int:
    """Prints what a user needs to know of an error that ends the program, and answers the exit code."""
    line = syntax_error(error) if isinstance(error, SyntaxError) else None
    if line is not None or isinstance(error, UsageError):
        for one in (line or str(error)).splitlines():
            click.echo(f"{program}: {one}", err=True)
        return EXIT_USAGE
    click.echo(own_traceback(error), err=True)
    return EXIT_CRASHED


class Assignment(click.ParamType):
    """NAME=VALUE as a pair."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, sign, content = str(value).partition("=")
        if not sign or not name:
            self.fail(f"{value!r} is not of the form NAME=VALUE", param, ctx)
        return name, content


def settings_option(function: Function) -> Function:
    """Adds -s NAME=VALUE, given as `assignments`."""
    return click.option(
        "-s", "assignments", type=Assignment(), multiple=True, help="Set a setting, above all other sources of it."
    )(function)


def load_project(assignments: Iterable[tuple[str, str]], *, more: Mapping[str, Any] | None = None) -> Settings:
    """The settings of the project at hand, which from now on are those that `scrapy_plus.conf.settings` answers.

    Outside a project they are the defaults. Raises SettingsError with all mistakes.
    """
    settings = load_settings(find_project(parents=True), overrides=[dict(assignments), more or {}])
    use(settings)
    return settings


def need_project(settings: Settings) -> None:
    """Raises UsageError if there is no project, saying what to do."""
    if settings.project_dir is None:
        raise UsageError(NO_PROJECT)
