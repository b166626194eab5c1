"""A spider that follows links by rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_plus.core.spider import Spider
from scrapy_plus.http.links import Link, LinkExtractor
from scrapy_plus.http.request import Request

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

Method = str | Callable[..., Any]


class Rule:
    """Which links to follow, and which method of the spider gets their pages.

    Methods are given by name, or as functions. `follow` says whether the links of those pages are followed by the
    rules in turn; by default they are if there is no callback. `process_links` gets and returns the list of links,
    `process_request` gets (request, response) and returns the request, or None to leave it out.
    """

    def __init__(
        self,
        link_extractor: LinkExtractor | None = None,
        callback: Method | None = None,
        cb_kwargs: dict[str, Any] | None = None,
        follow: bool | None = None,
        process_links: Method | None = None,
        process_request: Method | None = None,
        errback: Method | None = None,
    ) -> None:
        self.link_extractor = link_extractor or LinkExtractor()
        self.callback = callback
        self.cb_kwargs = cb_kwargs or {}
        self.follow = callback is None if follow is None else follow
        self.process_links = process_links
        self.process_request = process_request
        self.errback = errback


class CrawlSpider(Spider):
    """Follows the links that its `rules` name; a link belongs to the first rule that takes it.

    `parse_start_url` gets the pages of `start_urls`, `process_results` what any callback gave, before it goes on.
    """

    rules: ClassVar[Iterable[Rule]] = ()

    def __init__(self, name: str | None = None, **arguments: Any) -> None:
        super().__init__(name, **arguments)
        self._rules = tuple(self.rules)

    def start_requests(self) -> Iterable[Request]:
        # Not `parse`: a rule may name a method of the spider's own so, and the rules must still see the first pages.
        for request in super().start_requests():
            yield request.replace(parse="_parse_start") if request.parse == "parse" else request

    def parse(self, response: Response, **arguments: Any) -> Any:
        return self._parse_start(response, **arguments)

    def parse_start_url(self, response: Response, **arguments: Any) -> Any:
        """What the first pages give, besides the links that the rules take from them."""
        return None

    def process_results(self, response: Response, results: Iterable[Any]) -> Iterable[Any]:
        """The results of a callback, last seen and changed here."""
        return results

    def _parse_start(self, response: Response, **arguments: Any) -> Iterator[Any]:
        yield from self._results(response, self.parse_start_url(response, **arguments))
        yield from self._follow_rules(response)

    def _parse_rule(self, response: Response, **arguments: Any) -> Iterator[Any]:
        rule = self._rule(response.meta)
        if rule.callback is not None:
            yield from self._results(response, self._call(rule.callback, response, **{**rule.cb_kwargs, **arguments}))
        if rule.follow:
            yield from self._follow_rules(response)

    def _rule_failed(self, failure: Any) -> Any:
        rule = self._rule(failure.request.meta)
        return None if rule.errback is None else self._call(rule.errback, failure)

    def _rule(self, meta: dict[str, Any]) -> Rule:
        index: int = meta["rule"]
        return self._rules[index]

    def _results(self, response: Response, results: Any) -> Iterable[Any]:
        if results is None:
            results = ()
        elif not isinstance(results, list | tuple | set | Iterator):  # a single item, though it may be iterable
            results = (results,)
        return self.process_results(response, results)

    def _follow_rules(self, response: Response) -> Iterator[Request]:
        taken: set[str] = set()
        for index, rule in enumerate(self._rules):
            links: Iterable[Link] = rule.link_extractor.extract_links(response)
            if rule.process_links is not None:
                links = self._call(rule.process_links, links) or ()
            for link in links:
                if link.url not in taken:
                    taken.add(link.url)
                    yield from self._rule_request(index, rule, link, response)

    def _rule_request(self, index: int, rule: Rule, link: Link, response: Response) -> Iterator[Request]:
        """The request carries the number of its rule, so that any process that runs this spider can go on with it."""
        request: Request | None = Request(
            link.url,
            callback="_parse_rule",
            errback=None if rule.errback is None else "_rule_failed",
            meta={"rule": index, "link_text": link.text},
        )
        if rule.process_request is not None:
            request = self._call(rule.process_request, request, response)
        if request is not None:
            yield request

    def _call(self, method: Method, *arguments: Any, **keywords: Any) -> Any:
        called = getattr(self, method) if isinstance(method, str) else method
        return called(*arguments, **keywords)
