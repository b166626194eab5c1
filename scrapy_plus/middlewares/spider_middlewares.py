"""What stands between the engine and the callbacks: the base class, and the policies that come with the framework."""

from __future__ import annotations

from typing import Any

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.depth import Depth
from scrapy_plus.middlewares.extensions import Extensions
from scrapy_plus.middlewares.httperror import HttpErrors
from scrapy_plus.middlewares.offsite import Offsite
from scrapy_plus.middlewares.url_length import UrlLength

BUILT_IN = (HttpErrors, Offsite, UrlLength, Depth, Extensions)
"""The order of the built-ins; the user's middlewares come after them in the list."""


class SpiderMiddleware:
    """The hooks of a spider middleware; every one may be left out, `spider` too, and so may this base class.

    It is named in SPIDER_MIDDLEWARES and made without arguments, or by its class method `from_settings(settings)` if it
    has one; each spider gets one of its own. What the built-ins refuse does not come here: a request that is offsite,
    too deep, too long or of a kind that is not wanted. What they would refuse of the responses does come: they are
    asked after these.

    Requests and items that come out of callbacks go through in list order, responses that go in in reverse. The
    requests of a page go through when its callback is done. A middleware that also has `passes_all(urls, depth)` is
    spared the look at each of them where that is true, and so are links that were followed before.
    """

    def process_request(self, request: Request, spider: Any) -> Request | None:
        """A request that a callback or start_requests yielded. Return it or another one (None: go on with it); raise
        DropRequest to refuse it."""
        return request

    def process_response(self, response: Response, spider: Any) -> Response:
        """A response on its way to a callback. Return it or another one; what is raised spares the callback."""
        return response

    def process_item(self, item: Any, spider: Any) -> Any:
        """An item that a callback yielded. Return it or another one."""
        return item


__all__ = ["BUILT_IN", "Depth", "Extensions", "HttpErrors", "Offsite", "SpiderMiddleware", "UrlLength"]
