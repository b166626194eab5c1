"""What is said when a crawl has ended: one table a spider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from scrapy_plus.errors import Undecodable
from scrapy_plus.figures import SHORTEST_SECONDS, counted, figures, show_bytes, show_counts, show_duration, show_rate
from scrapy_plus.http.codec import decode
from scrapy_plus.http.secrets import redact
from scrapy_plus.log import printable

if TYPE_CHECKING:
    from scrapy_plus.core.outcome import CrawlSnapshot
    from scrapy_plus.frontier.base import DeadLetter

SHOWN_GROUPS = 10
Row = tuple[str, str]


def summary(crawl: CrawlSnapshot, elapsed_seconds: float) -> Table:
    """The end of one crawl: why, how long, how much, what went wrong, and where the items are."""
    table = Table(box=SIMPLE_HEAD, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column(Text(printable(crawl.spider)), style="bold", no_wrap=True)
    table.add_column(Text(printable(crawl.finish_reason or "stopped")), overflow="fold")
    for label, value in rows(crawl, elapsed_seconds):
        table.add_row(label, Text(printable(value)))
    return table


def log_summary(stats: dict[str, Any]) -> Text | None:
    """What was logged for several spiders together; None if nothing worth a look was."""
    return Text(f"log of all spiders  {show_counts(_troubles(stats))}", style="bold") if _troubles(stats) else None


def rows(crawl: CrawlSnapshot, elapsed_seconds: float) -> Iterator[Row]:
    """Label and text of each line; what is zero and good is left out."""
    stats, now = crawl.stats, figures([crawl])
    seconds = stats.get("elapsed_time_seconds", elapsed_seconds)
    yield "duration", show_duration(seconds)
    rate = f"  ({show_rate(now.pages / seconds)})" if seconds >= SHORTEST_SECONDS else ""
    yield "pages", f"{now.pages:,}{rate}"
    yield "items", _items(now.items, stats)
    yield "bytes", show_bytes(now.bytes)
    yield from _counts("status codes", dict(now.statuses))
    yield from _counts("retries", counted(stats, "retry/reason_count/"))
    yield from _counts("no answer", counted(stats, "downloader/exception_type_count/"))
    yield from _counts("spider errors", counted(stats, "spider_exceptions/"))
    yield from _number("duplicates", stats.get("dupefilter/filtered", 0))
    yield from _counts("dropped", counted(stats, "request_dropped_reasons_count/"))
    yield from _dropped_items(stats)
    yield from _counts("log", _troubles(stats))
    yield from _number("left in queue", crawl.counts.pending)
    yield from _failures(crawl)
    yield from _dead_letters(crawl.counts.dead, crawl.dead)


def _items(count: int, stats: dict[str, Any]) -> str:
    places = counted(stats, "item_stored_count/")
    shown = ", ".join("standard output" if place == "-" else place for place in places)
    return f"{count:,}" + (f"  in {shown}" if shown else "")


def _dropped_items(stats: dict[str, Any]) -> Iterator[Row]:
    """The messages of the exceptions that dropped them, most frequent first."""
    messages = sorted(counted(stats, "item_dropped_messages_count/").items(), key=lambda one: (-one[1], one[0]))
    for message, count in messages[:SHOWN_GROUPS]:
        yield "dropped items", f"{count:,} x {message}"
    others = stats.get("item_dropped_count", 0) - sum(count for _, count in messages[:SHOWN_GROUPS])
    if others > 0:
        yield "dropped items", f"{others:,} x other reasons"


def _counts(label: str, counts: dict[str, int]) -> Iterable[Row]:
    return [(label, show_counts(counts))] if counts else []


def _troubles(stats: dict[str, Any]) -> dict[str, int]:
    levels = counted(stats, "log_count/")
    return {level: count for level, count in levels.items() if level not in ("DEBUG", "INFO")}


def _number(label: str, count: int) -> Iterable[Row]:
    return [(label, f"{count:,}")] if count else []


def _failures(crawl: CrawlSnapshot) -> Iterator[Row]:
    for group in crawl.errors[:SHOWN_GROUPS]:
        yield "errors", f"{group.count:,} x {group.reason}, as {redact(group.sample_url)}"
    more = len(crawl.errors) - SHOWN_GROUPS
    if more > 0:
        yield "errors", f"and {more:,} other reasons"


def _dead_letters(count: int, letters: Iterable[DeadLetter]) -> Iterator[Row]:
    shown = list(letters)[:SHOWN_GROUPS]
    for letter in shown:
        yield "dead letter", f"{_url(letter)}  ({letter.reason}, tries: {letter.attempts})"
    if count > len(shown):
        yield "dead letters", f"{count:,} in all"


def _url(letter: DeadLetter) -> str:
    try:
        return redact(decode(letter.payload).full_url)
    except Undecodable as error:
        return f"an unreadable request: {error}"
