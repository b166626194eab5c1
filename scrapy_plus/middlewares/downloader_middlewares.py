"""What stands between the engine and the network: the base class, and the policies that come with the framework."""

from __future__ import annotations

from typing import Any

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.compression import Compression
from scrapy_plus.middlewares.cookies import Cookies
from scrapy_plus.middlewares.default_headers import DefaultHeaders
from scrapy_plus.middlewares.http_auth import HttpAuth
from scrapy_plus.middlewares.meta_refresh import MetaRefresh
from scrapy_plus.middlewares.proxies import Proxies
from scrapy_plus.middlewares.redirect import Redirect
from scrapy_plus.middlewares.retry import RetryStatuses

BUILT_IN = (
    DefaultHeaders,  # after the user's own, so that what they set is not overwritten
    Redirect,  # outside Cookies: what a hop sets is stored, and the next one carries no header of the jar
    RetryStatuses,  # outside Compression, so that an errback can read the answer
    Compression,
    Cookies,  # next to the network: it hears every answer, those that are redirected or retried too
)
"""The order of the built-ins, outermost first. The user's middlewares stand before them, and see finished answers.

MetaRefresh stands inside Redirect, which takes leave of a chain at its end; HttpAuth and Proxies, if they are asked
for, inside Cookies, which gives the callback the request without what these put on it.
"""


class DownloaderMiddleware:
    """The hooks of a downloader middleware; every one may be left out, `spider` too, and so may this base class.

    It is named in DOWNLOADER_MIDDLEWARES and made without arguments, or by its class method `from_settings(settings)`
    if it has one; each spider gets one of its own. The built-ins (`BUILT_IN`) stand between these and the network: a
    request comes here before it has default headers and cookies, a response when it is inflated, and one that is
    redirected or retried does not come.

    `process_request` is called in list order, the other two in reverse, so that the first in the list is the first to
    see a request and the last to see what became of it.
    """

    def process_request(self, request: Request, spider: Any) -> Request | Response | None:
        """Before the network. Return None or the request to go on, another Request to go on with that one instead, or a
        Response, which answers the request without the network. Raise DropRequest to give it up silently."""
        return None

    def process_response(self, request: Request, response: Response, spider: Any) -> Response | Request:
        """After an answer. Return it, another one, or a Request to be fetched instead. An exception goes on as one."""
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any) -> Response | Request | None:
        """After a failure of the network, or of a middleware. Return None to let it go on, a Response in its place, or
        a Request to be fetched instead."""
        return None


__all__ = [
    "BUILT_IN",
    "Compression",
    "Cookies",
    "DefaultHeaders",
    "DownloaderMiddleware",
    "HttpAuth",
    "MetaRefresh",
    "Proxies",
    "Redirect",
    "RetryStatuses",
]
