"""redis: a durable Redis for the project, in the foreground."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from scrapy_plus.cli.base import Command, load_project, settings_option
from scrapy_plus.cli.crawling import Pairs
from scrapy_plus.conf.redis_address import RedisAddress
from scrapy_plus.embedded.foreground import serve


@click.command("redis", cls=Command, short_help="Run a durable Redis for the project.")
@click.option("--port", type=click.IntRange(1, 65_535), default=6379, show_default=True)
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--password", metavar="TEXT", help="Default: REDIS_PASSWORD.")
@settings_option
def redis_command(port: int, bind: str, password: str | None, assignments: Pairs) -> None:
    """Run a Redis that keeps what it is told, until Ctrl-C; its data stays in .scrapy_plus/redis-foreground.

    It prints the REDIS_URL for the settings of all who shall use it. Beyond this machine it wants a password.
    """
    settings = load_project(assignments)
    given = password if password is not None else settings.REDIS_PASSWORD
    folder = settings.project_dir or Path.cwd()
    serve(folder, port=port, bind=bind, password=str(given) if given else None, on_ready=_tell)


def _tell(address: RedisAddress) -> None:
    """The password only where a person looks: what is piped is often kept."""
    shown = address
    if address.password is not None and not sys.stdout.isatty():
        shown = replace(address, password="password")
    click.echo(f'REDIS_URL = "{shown.url}"')
    click.echo("Ctrl-C ends it; what it keeps is there at the next start", err=True)
