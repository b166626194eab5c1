"""The base class of spiders: where a crawl starts, and what is taken from each page."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_plus.http.request import Request
from scrapy_plus.item import Item

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_plus.http.response import Response


class Spider:
    """Where a crawl starts, and what is taken from each page. Subclass it, name it, and write `parse`.

    Keyword arguments (`-a name=value` on the command line) become attributes. `start_url`, one URL or a list, is read
    as well as `start_urls`, and a method `start_request` as well as `start_requests`.

    Class attributes that say more: `allowed_domains`, which with their subdomains are all that links are followed to;
    `custom_settings`, a dict of settings for this spider; `handle_httpstatus_list`, the statuses other than 2xx whose
    answers the callbacks want. While it crawls there are `settings` (`self.settings.DOWNLOAD_DELAY`), `stats`
    (`self.stats.inc("shop/sold_out")`) and `logger`.
    """

    name: str = ""
    start_urls: Iterable[str] = ()
    start_url: str | Iterable[str] = ()
    allowed_domains: Iterable[str] = ()
    custom_settings: ClassVar[Mapping[str, Any] | None] = None
    handle_httpstatus_list: Iterable[int] = ()
    settings: Any = None
    stats: Any = None

    def __init__(self, name: str | None = None, **arguments: Any) -> None:
        self.name = name or self.name or type(self).__name__
        self.__dict__.update(arguments)

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger(f"scrapy_plus.spider.{self.name}")

    def log(self, message: object, level: int = logging.DEBUG, *arguments: object) -> None:
        """The same as `self.logger.log(level, message)`."""
        self.logger.log(level, message, *arguments)

    def start_requests(self) -> Iterable[Request]:
        """The first requests: one for each of `start_urls`, or what Scrapy's `async def start(self)` yields.

        It is pulled as the crawl needs it, so it may be a generator without end.
        """
        if (start_request := getattr(self, "start_request", None)) is not None:
            given = start_request()
            yield from (given,) if isinstance(given, Request) else given or ()
            return
        start = getattr(self, "start", None)
        if inspect.isasyncgenfunction(start):
            yield from _pull(start())
            return
        wrong = []
        for url in (*_as_urls(self.start_urls), *_as_urls(self.start_url)):
            try:
                yield Request(url)
            except (ValueError, TypeError) as error:
                wrong.append(str(error))
        if wrong:  # told when the others are taken in: one slip among thousands must not cost them
            raise ValueError(f"start_urls: {'; '.join(wrong[:5])}{' ...' if len(wrong) > 5 else ''}")

    def parse(self, response: Response) -> Any:
        """What a page gives: items and requests, as a generator, a list, one of them, or None."""
        yield Item(response.body)

    def on_idle(self) -> Iterable[Request] | None:
        """Asked when nothing is left: more requests, or None to end. Raise DontCloseSpider to be asked again."""
        return None

    def closed(self, reason: str) -> None:
        """Called once, after the last page."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def _as_urls(urls: str | Iterable[str]) -> Iterable[str]:
    """A single URL stands for a list of it: letters are never meant."""
    return (urls,) if isinstance(urls, str) else urls


def _pull(requests: AsyncIterator[Request]) -> Iterator[Request]:
    """The requests of an async generator that awaits nothing: there is no event loop here, gevent switches."""
    while True:
        step = requests.__anext__()
        try:
            step.__await__().__next__()
        except StopIteration as done:
            yield done.value
        except StopAsyncIteration:
            return
        else:
            raise TypeError("start() awaits something; here it may only yield requests")
