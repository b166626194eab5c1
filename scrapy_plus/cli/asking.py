"""why, forget, dead: the commands about single requests of a crawl kept in Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

import click

from scrapy_plus.cli.base import Command
from scrapy_plus.cli.crawling import Pairs
from scrapy_plus.cli.operating import crawl_option, opened
from scrapy_plus.conf.settings import Settings
from scrapy_plus.errors import Undecodable, UsageError
from scrapy_plus.figures import show_duration
from scrapy_plus.frontier.base import DeadLetter, Location
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.http.codec import decode
from scrapy_plus.http.request import Request
from scrapy_plus.http.secrets import redact
from scrapy_plus.http.url import canonicalize, site
from scrapy_plus.rules.lifecycle import State
from scrapy_plus.web_policies import scope
from scrapy_plus.wiring import identify_by, spider_classes

LETTERS_A_CALL = 200


def id_of(word: str, settings: Settings) -> bytes:
    """The id that a URL has in the crawl, or that 40 hexadecimal digits say. Raises UsageError for neither."""
    if len(word) == 40 and set(word) <= set("0123456789abcdef"):
        return bytes.fromhex(word)
    try:
        return identify_by(settings)(Request(word))
    except ValueError as error:
        raise UsageError(str(error)) from None


# -- one URL -----------------------------------------------------------------------------------------------------------


@click.command("why", cls=Command, short_help="Say where a URL stands in a crawl.")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@crawl_option
def why_command(url: str, as_json: bool, spider: str | None, assignments: Pairs) -> None:
    """Say where URL (or a request's id) stands: queued, leased, delayed, dead, done or never seen, and since when.

    Meant is the plain GET of the URL, as links lead to it; for another request give the id that `dead list` shows.
    """
    with opened(spider, assignments) as (frontier, crawl, settings):
        id = id_of(url, settings)
        where = frontier.locate(id)
        bounds = scope(settings, spider_classes(settings).get(crawl))
        refusal = bounds.why_not(url) if where.state is State.NEW and "://" in url else None
        if as_json:
            facts = {"id": id.hex(), "state": str(where.state), **_details(where, frontier.now())}
            click.echo(json.dumps({**facts, "out_of_bounds": refusal}, ensure_ascii=False))
            return
        for line in _lines(url, where, frontier):
            click.echo(line)
        if refusal:
            click.echo(f"  no link to it is followed: {refusal}")


def _details(where: Location, now: float) -> dict[str, Any]:
    return {
        "at": where.at or None,
        "in_seconds": round(where.at - now, 1) if where.at else None,
        "node": where.worker or None,
        "retries": where.attempt,
        "lost": where.lost,
        "reason": redact(where.reason) or None,
        "site": where.site or None,
    }


def _lines(url: str, where: Location, frontier: RedisFrontier) -> Iterator[str]:
    yield f"{redact(url)}: {_sentence(where, frontier.now())}"
    if where.attempt or where.lost:
        yield f"  retries: {where.attempt}, workers that died with it: {where.lost}"
    if where.state is State.NEW and "://" in url:
        yield f"  as it is compared: {redact(canonicalize(url))}"
    if where.state is State.READY and "://" in url:
        facts = frontier.site_facts(site(url))
        yield f"  its site has {facts.ready:,} queued and {facts.in_flight:,} in flight" + _pause(facts, frontier.now())


def _pause(facts: Any, now: float) -> str:
    left = facts.pace.paused_until - now
    return f", and is paused for {show_duration(left)}" if left > 0 else ""


def _sentence(where: Location, now: float) -> str:
    if where.state is State.READY:
        return "ready: it waits for its turn"
    if where.state is State.LEASED:
        left = show_duration(max(0.0, where.at - now))
        return f"leased: node {where.worker[:8]} works on it; given back in {left} if that dies"
    if where.state is State.DELAYED:
        return f"delayed: tried again in {show_duration(max(0.0, where.at - now))}"
    if where.state is State.DEAD:
        return f"dead since {_moment(where.at)}: {redact(where.reason)}"
    if where.state is State.DONE:
        return "done: it was crawled, or filtered as a duplicate of what was"
    return "new: the crawl never met it"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")


@click.command("forget", cls=Command, short_help="Let a crawl meet URLs anew.")
@click.argument("urls", nargs=-1, required=True)
@crawl_option
def forget_command(urls: Sequence[str], spider: str | None, assignments: Pairs) -> None:
    """Take URLS that are done or dead out of what was seen, so that they are crawled when they are met again."""
    with opened(spider, assignments) as (frontier, crawl, settings):
        for url in urls:
            id = id_of(url, settings)
            state = frontier.locate(id).state
            if frontier.forget([id]):
                click.echo(f"{redact(url)}: forgotten; it was {state}", err=True)
            else:
                told = "was never seen" if state is State.NEW else f"is {state}, and will be crawled"
                click.echo(f"{redact(url)}: nothing to forget, it {told}", err=True)


# -- dead letters ------------------------------------------------------------------------------------------------------


@click.group("dead")
def dead_group() -> None:
    """List, show, revive and purge the requests that a crawl gave up."""


dead_group.command_class = Command


@dead_group.command("list")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one a line.")
@crawl_option
def list_dead(limit: int, as_json: bool, spider: str | None, assignments: Pairs) -> None:
    """List dead letters, the oldest first: id, tries, status, reason, URL."""
    with opened(spider, assignments) as (frontier, _, _settings):
        shown = 0
        for letter in _letters(frontier):
            if shown >= limit:
                break
            shown += 1
            facts = _facts(letter)
            line = f"{facts['id']}  {facts['tries']} tries  {facts['status'] or '-'}  {facts['reason']}  {facts['url']}"
            click.echo(json.dumps(facts, ensure_ascii=False) if as_json else line)
        count = frontier.counts().dead
        if count > shown and not as_json:
            click.echo(f"{count - shown:,} more (--limit)", err=True)


@dead_group.command("show")
@click.argument("word", metavar="ID|URL")
@crawl_option
def show_dead(word: str, spider: str | None, assignments: Pairs) -> None:
    """Show one dead letter whole, as JSON: reason, tries, time and the request."""
    with opened(spider, assignments) as (frontier, _, settings):
        letter = frontier.dead_letter(id_of(word, settings))
        if letter is None:
            raise UsageError(f"no dead letter is {redact(word)}; `scrapy-plus dead list` shows them")
        whole = {**_facts(letter), "request": _request(letter)}
        click.echo(json.dumps(whole, indent=2, ensure_ascii=False))


@dead_group.command("revive")
@click.argument("words", nargs=-1, metavar="[ID|URL]...")
@click.option("--all", "is_all", is_flag=True, help="All of them.")
@click.option("--reason", metavar="TEXT", help="Those whose reason has TEXT in it.")
@crawl_option
def revive_dead(
    words: Sequence[str], is_all: bool, reason: str | None, spider: str | None, assignments: Pairs
) -> None:
    """Queue dead letters again, with fresh counts."""
    with opened(spider, assignments) as (frontier, crawl, settings):
        chosen = _chosen(frontier, settings, words, is_all=is_all, reason=reason)
        click.echo(f"{crawl}: {sum(map(frontier.revive, chosen)):,} queued again", err=True)


@dead_group.command("purge")
@click.argument("words", nargs=-1, metavar="[ID|URL]...")
@click.option("--all", "is_all", is_flag=True, help="All of them.")
@click.option("--reason", metavar="TEXT", help="Those whose reason has TEXT in it.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@crawl_option
def purge_dead(
    words: Sequence[str],
    is_all: bool,
    reason: str | None,
    is_sure: bool,
    spider: str | None,
    assignments: Pairs,
) -> None:
    """Throw dead letters away for good. Their URLs stay seen: `forget` lets them be crawled again."""
    with opened(spider, assignments) as (frontier, crawl, settings):
        if not is_sure and not click.confirm(f"Throw away {_what(words, reason)}?", err=True):
            raise UsageError("nothing was done; --yes does not ask")
        chosen = _chosen(frontier, settings, words, is_all=is_all, reason=reason)
        click.echo(f"{crawl}: {sum(map(partial(_purge, frontier), chosen)):,} thrown away", err=True)


def _what(words: Sequence[str], reason: str | None) -> str:
    if words:
        return f"{len(words)} dead letters"
    return f"the dead letters whose reason has {reason!r}" if reason else "all dead letters"


def _purge(frontier: RedisFrontier, ids: Sequence[bytes]) -> int:
    """Only what is dead: what waits stays."""
    return sum(frontier.discard(id) for id in ids if frontier.locate(id).state is State.DEAD)


def _chosen(
    frontier: RedisFrontier, settings: Settings, words: Sequence[str], *, is_all: bool, reason: str | None
) -> list[list[bytes]]:
    """The ids that are meant, some at a time. Raises UsageError if nothing says which."""
    if sum((bool(words), is_all, reason is not None)) != 1:
        raise UsageError("say which: ids or URLs, or --reason TEXT, or --all")
    ids = [id_of(word, settings) for word in words] or [
        letter.id for letter in _letters(frontier) if reason is None or reason in letter.reason
    ]
    return [ids[start : start + LETTERS_A_CALL] for start in range(0, len(ids), LETTERS_A_CALL)]


def _letters(frontier: RedisFrontier) -> Iterator[DeadLetter]:
    """All dead letters, the oldest first, read some at a time."""
    cursor = 0
    while True:
        found, cursor = frontier.dead_letters(cursor, LETTERS_A_CALL)
        yield from found
        if not cursor:
            return


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id.hex(),
        "url": _url(letter),
        "reason": redact(letter.reason),
        "tries": letter.attempts,
        "lost": letter.lost,
        "status": letter.status,
        "at": _moment(letter.at),
    }


def _url(letter: DeadLetter) -> str:
    try:
        return redact(decode(letter.payload).full_url)
    except Undecodable:
        return "(unreadable)"


def _request(letter: DeadLetter) -> Any:
    """The request as it is stored, without its version; what cannot be read is shown as it is."""
    try:
        return json.loads(redact(letter.payload[1:].decode("utf-8")))
    except ValueError:
        return redact(repr(letter.payload))
