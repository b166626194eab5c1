"""What the commands share: clean errors, -s NAME=VALUE, and the settings of the project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from scrapy_plus.conf.project import find_project
from scrapy_plus.conf.settings import Settings, load_settings, use
from scrapy_plus.errors import UsageError

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
NO_PROJECT = (
    "there is no settings.py here or in a folder above; make a project with `scrapy-plus startproject NAME`, "
    "or run a single file with `scrapy-plus runspider FILE.py`"
)
Function = TypeVar("Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose user's mistakes are printed as lines, with exit code 2; a traceback is for ours."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            for line in str(error).splitlines():
                click.echo(f"{ctx.info_name}: {line}", err=True)
            ctx.exit(EXIT_USAGE)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)


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
