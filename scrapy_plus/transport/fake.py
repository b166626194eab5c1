"""A transport that answers from a table: spiders are tested with it, without a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scrapy_plus.errors import BodyTooLarge
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import canonicalize
from scrapy_plus.transport.base import Transport

Page = Response | bytes | str | Exception | Callable[[Request], Any]


class FakeTransport(Transport):
    """Answers each URL with its page; `requests` holds every request that came, in order.

        transport = FakeTransport({"http://shop.test/": "<h1>tea</h1>", "http://shop.test/old": Response("", 503)})
        assert crawl(ShopSpider, transport).items == [{"title": "tea"}]
        assert [request.url for request in transport.requests][0] == "http://shop.test/"

    A page is a Response, a body (bytes; str is HTML in UTF-8), an exception to raise, or a function of the request that
    returns one of these; a list is one of them for each visit, the last for all that follow. The URL of a Response is
    replaced by the one that was asked for. URLs are compared in canonical form. Other URLs get the status `missing`.
    """

    network = False

    def __init__(self, pages: Mapping[str, Page | list[Page]], *, missing: int = 404) -> None:
        self.requests: list[Request] = []
        self._missing = missing
        self._pages: dict[str, list[Page]] = {
            canonicalize(url): list(page) if isinstance(page, list) else [page] for url, page in pages.items()
        }

    def fetch(
        self, request: Request, *, timeout_seconds: float, max_bytes: int, fail_on_dataloss: bool = True
    ) -> Response:
        self.requests.append(request)
        pages = self._pages.get(canonicalize(request.full_url))
        page: Any = None
        if pages:
            page = pages.pop(0) if len(pages) > 1 else pages[0]
        response = self._answer(request, page)
        if len(response.body) > max_bytes:
            raise BodyTooLarge(f"{request!r}: {len(response.body)} bytes, over {max_bytes}")
        return response

    def _answer(self, request: Request, page: Any) -> Response:
        url = request.full_url
        if isinstance(page, Response):
            return page.replace(url=url, request=request)
        if page is None:
            return Response(url, self._missing, request=request)
        if isinstance(page, bytes):
            return Response(url, 200, body=page, request=request)
        if isinstance(page, str):
            return Response(url, 200, {"Content-Type": "text/html; charset=utf-8"}, page.encode(), request=request)
        if isinstance(page, BaseException) or (isinstance(page, type) and issubclass(page, BaseException)):
            raise page
        if callable(page):
            return self._answer(request, page(request))
        raise TypeError(f"a page of FakeTransport is no {type(page).__name__}: {page!r}")
