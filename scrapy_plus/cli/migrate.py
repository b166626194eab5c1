"""migrate: the queue of a crawl of another framework, taken over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice

import click

from scrapy_plus.cli.base import Command, load_project
from scrapy_plus.cli.crawling import Pairs
from scrapy_plus.cli.operating import crawl_option
from scrapy_plus.conf.redis_address import parse_redis_url
from scrapy_plus.conf.settings import Settings
from scrapy_plus.core.committer import Committer
from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import NotStorable, UsageError
from scrapy_plus.http.request import Request
from scrapy_plus.http.secrets import redact
from scrapy_plus.migrating.child import Unpickler, Unreadable
from scrapy_plus.migrating.requests import Foreign, request_of
from scrapy_plus.migrating.source import entries
from scrapy_plus.redis_client import make_client, redis_errors
from scrapy_plus.redis_store import RedisStore
from scrapy_plus.wiring import build_scheduler, spider_classes

EXIT_LEFT_OUT = 3
REQUESTS_A_CALL = 100
TOLD = 10
FRAMEWORKS = {"scrapy-redis": ("%(spider)s:requests", True), "course": ("", False)}
"""The usual key of the queue, and whether lists are pushed to on the left."""


@click.command("migrate", cls=Command, short_help="Take over the queue of scrapy-redis or of the course framework.")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--from", "framework", type=click.Choice(list(FRAMEWORKS)), required=True, help="Whose queue it is.")
@click.option("--source", metavar="REDIS_URL", help="The Redis it is in, if not that of the crawl.")
@crawl_option
def migrate_command(
    keys: Sequence[str], framework: str, source: str | None, spider: str | None, assignments: Pairs
) -> None:
    """Read the requests that wait in KEYs (NAME:requests for scrapy-redis) and queue them in the crawl of this project.

    Stop the old crawl before. Its keys are read and left as they are, so this may be ended and run again: what is known
    is not queued twice. Pickles are read by a process of its own, as data. What was crawled there is not known here.
    Exit code 3 if a request could not be taken over; each is told, and stays where it is.
    """
    settings = load_project(assignments)
    name = _spider(settings, spider)
    own = settings.for_spider(spider_classes(settings).get(name, object))
    usual, newest_left = FRAMEWORKS[framework]
    wanted = list(keys) or [usual % {"spider": name}]
    if not wanted[0]:
        raise UsageError("say in which key the requests are: REDIS_QUEUE_NAME or REDIS_BACKUP_NAME of the old settings")
    with (
        closing(RedisStore(settings)) as store,
        closing(store.join(name, own)) as frontier,
        closing(Unpickler()) as reader,
    ):
        move = Move(name, build_scheduler(name, own, Committer(frontier), Stats()), reader)
        address = parse_redis_url(source) if source else store.address
        for key in wanted:
            with redis_errors(address), closing(make_client(address, prefix=key)) as client:
                move.take_over(key, entries(client, key, newest_left=newest_left))
    if move.left_out:
        raise click.exceptions.Exit(EXIT_LEFT_OUT)


def _spider(settings: Settings, spider: str | None) -> str:
    names = list(spider_classes(settings))
    if spider or len(names) == 1:
        return spider or names[0]
    raise UsageError("for which spider? Name it with --spider" + (f": {', '.join(names)}" if names else ""))


class Move:
    """Requests on their way into the crawl of one spider."""

    def __init__(self, name: str, scheduler: Scheduler, reader: Unpickler) -> None:
        self.left_out = 0
        self._name = name
        self._scheduler = scheduler
        self._reader = reader

    def take_over(self, key: str, found: Iterator[bytes]) -> None:
        """Queues what is found under a key, and says how much that was."""
        read = queued = others = 0
        before = self.left_out
        while batch := list(islice(found, REQUESTS_A_CALL)):
            requests = [self._request(key, read + number, data) for number, data in enumerate(batch)]
            wanted = [(read + number, *one) for number, one in enumerate(requests) if one is not None]
            mine = [(position, request) for position, request, name in wanted if name in ("", self._name)]
            others += len(wanted) - len(mine)
            queued += self._scheduler.take_over(mine, key.encode())
            read += len(batch)
        left_out = self.left_out - before
        told = [f"{queued:,} queued", f"{read - queued - others - left_out:,} known already"]
        told += [f"{others:,} of other spiders"] * bool(others) + [f"{left_out:,} left out"] * bool(left_out)
        click.echo(f"{self._name}: {read:,} requests in {key}: {', '.join(told)}", err=True)

    def _request(self, key: str, number: int, data: bytes) -> tuple[Request, str] | None:
        try:
            return request_of(self._reader.load(data))
        except (Unreadable, Foreign, NotStorable) as error:
            self.left_out += 1
            if self.left_out <= TOLD:
                more = "; others will be left out unsaid" if self.left_out == TOLD else ""
                click.echo(f"{self._name}: number {number} in {key} is left out: {redact(str(error))}{more}", err=True)
            return None
