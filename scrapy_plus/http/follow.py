"""The links of a page as requests: one by one, or what is left of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from scrapy_plus.http.request import Request, method_name, plain_request
from scrapy_plus.http.selector import SelectorList
from scrapy_plus.http.url import joined, place_of

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

_LINK_TAGS = ("a", "link", "area")


class Links:
    """A request for each http(s) link of a page: an iterator of them.

    A crawl that meets it in a `yield from` takes the `urls` of all that are left instead: most of them lead to pages
    that are known, and need no request. That is all there is to know of them if they are plain: requests with no more
    than a URL and a callback, whose name is `parse`.
    """

    __slots__ = ("_arguments", "_callback", "_response", "_urls", "parse")

    def __init__(
        self,
        response: Response,
        links: Iterable[Any],
        callback: str | Callable[..., Any] | None,
        arguments: dict[str, Any],
    ) -> None:
        self._response = response
        self._callback = callback
        self._arguments = arguments
        self._urls = self._find(links)
        self.parse = "" if arguments else method_name(callback or "parse", "callback")

    @property
    def is_plain(self) -> bool:
        return not self._arguments

    def __iter__(self) -> Links:
        return self

    def __next__(self) -> Request:
        url = next(self._urls)
        if self._arguments:
            return self._response.request_for(url, self._callback, self._arguments)
        return plain_request(url, self.parse)

    def urls(self) -> list[str]:
        """The URLs of all that are left, clean."""
        return list(self._urls)

    def _find(self, links: Iterable[Any]) -> Iterator[str]:
        place = place_of(self._response.base_url)
        for link in links:
            try:
                reference = link if isinstance(link, str) else reference_of(link)
                yield joined(place, reference) or self._response.link_url(reference)
            except ValueError:  # mailto:, javascript:, tel:, an element without href: pages are full of them
                continue


def reference_of(link: Any) -> str:
    """What the page wrote as the link's target. Raises ValueError for what has none."""
    if isinstance(link, str):
        return link
    if isinstance(link, SelectorList):
        raise ValueError("follow wants one link; for a list there is follow_all")
    tag = getattr(link, "tag", None)
    if tag is None and isinstance(url := getattr(link, "url", None), str):
        return url
    href = link.get("href") if isinstance(tag, str) and tag.rpartition("}")[2] in _LINK_TAGS else None
    if not isinstance(href, str):
        raise ValueError(f"not a link: {link!r}; give a URL, an <a href> element or a Link")
    return href
