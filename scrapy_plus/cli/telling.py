"""settings, version: the commands that only tell."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from importlib import metadata
from typing import Any

import click

from scrapy_plus.cli.base import Command, load_project, settings_option
from scrapy_plus.conf.layers import CANONICAL, OPTIONS
from scrapy_plus.conf.redis_address import Secret, redacted
from scrapy_plus.conf.settings import Settings, unknown
from scrapy_plus.errors import UsageError
from scrapy_plus.version import __version__

PARTS = ("gevent", "greenlet", "requests", "urllib3", "lxml", "w3lib", "parsel", "redis", "click", "rich")
SECRETS = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "API_KEY", "APIKEY")
OWN = "A constant of the project."


@click.command("settings", cls=Command, short_help="Print settings and where they come from.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@settings_option
def settings_command(names: tuple[str, ...], as_json: bool, assignments: Iterable[tuple[str, str]]) -> None:
    """Print the settings (or those that are named): value, where it comes from, what it is for."""
    settings = load_project(assignments)
    asked = [CANONICAL.get(name, name) for name in names]
    if wrong := [name for name in asked if name not in settings]:
        raise UsageError("\n".join(unknown(name, settings.names()) for name in wrong))
    facts = {name: _facts(settings, name, is_asked=bool(asked)) for name in asked or settings.names()}
    if as_json:
        click.echo(json.dumps(facts, indent=2, default=repr, ensure_ascii=False))
        return
    for name, (value, source, sentence) in ((name, fact.values()) for name, fact in facts.items()):
        click.echo(f"{name} = {value!r}")
        click.echo(f"    {source}: {sentence}")


def _facts(settings: Settings, name: str, *, is_asked: bool) -> dict[str, object]:
    option = OPTIONS.get(name)
    value = settings[name]
    if not is_asked and option is None and any(word in name for word in SECRETS):
        value = "***"  # a list of all settings gets pasted into bug reports
    return {"value": _safe(value), "source": settings.source(name), "help": option.help if option else OWN}


def _safe(value: Any) -> Any:
    """The value with its secrets redacted as their repr does: JSON would write the text itself."""
    if isinstance(value, Secret):
        return redacted(value)
    if isinstance(value, dict):
        return {key: _safe(one) for key, one in value.items()}
    return value


@click.command("version", cls=Command)
@click.option("-v", "--verbose", is_flag=True, help="Also Python and the libraries.")
def version_command(verbose: bool) -> None:
    """Print the version."""
    click.echo(f"scrapy_plus {__version__}")
    if verbose:
        click.echo(f"Python {platform.python_version()} ({platform.platform()})")
        for part in PARTS:
            click.echo(f"{part} {_version(part)}")


def _version(part: str) -> str:
    try:
        return metadata.version(part)
    except metadata.PackageNotFoundError:
        return "not installed"
