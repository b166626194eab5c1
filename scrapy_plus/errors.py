"""Every exception of the framework, in one tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response


class ScrapyPlusError(Exception):
    """The root: `except ScrapyPlusError` catches whatever the framework itself raises."""


# -- what a user got wrong ---------------------------------------------------------------------------------------------


class UsageError(ScrapyPlusError):
    """A command, a project or a setting is wrong; the message says what, where and what to do. Exit code 2."""


class SettingsError(UsageError):
    """One or more settings are wrong; `problems` holds one line for each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class NotStorable(ScrapyPlusError, TypeError):
    """A request carries what no queue can hold (a lambda, a lock, an open file); the message names the field."""

    permanent = True


class BadEntry(ScrapyPlusError, ValueError):
    """An entry of a feed that is no request; the message is the reason."""


class Undecodable(ScrapyPlusError, ValueError):
    """A stored request cannot be read back: broken bytes, or a version newer than this release."""


# -- what a spider, pipeline or middleware says on purpose -------------------------------------------------------------


class DropItem(ScrapyPlusError):
    """Raised by a pipeline: this item goes no further."""


class DropRequest(ScrapyPlusError):
    """Raised by a middleware: this request is not wanted; it is done, counted, and nothing else happens."""


class NotNow(ScrapyPlusError):
    """Raised by a downloader middleware: the request goes back as it was, since its site is not to be asked now.

    Nothing is counted. Whoever raises it has told the store until when (`set_site`), else it comes again at once.
    """


class StopCrawl(ScrapyPlusError):
    """Raised by any user code: the crawl ends with this reason after the pages in flight."""

    def __init__(self, reason: str = "stopped") -> None:
        super().__init__(reason)
        self.reason = reason


IgnoreRequest, CloseSpider = DropRequest, StopCrawl  # Scrapy's names for them


class DontCloseSpider(ScrapyPlusError):
    """Raised by `Spider.on_idle`: stay open and ask again at the next idle moment."""


# -- the frontier ------------------------------------------------------------------------------------------------------


class FrontierError(ScrapyPlusError):
    """The store of requests refused."""


class IllegalMove(FrontierError):
    """A verb that the state of a request does not allow."""


class CursorMoved(FrontierError):
    """Seeds were offered from a position that is not where the store stands; `cursor` says where it does."""

    def __init__(self, cursor: int) -> None:
        super().__init__(f"the seed cursor stands at {cursor}")
        self.cursor = cursor


class NodesAlive(FrontierError):
    """Refused while nodes hold requests; stop them first, or insist."""


class FrontierUnavailable(FrontierError):
    """The store did not answer for as long as we are willing to wait; nothing is lost, start again when it is back."""


# -- the network -------------------------------------------------------------------------------------------------------


class DownloadError(ScrapyPlusError):
    """No usable answer came. `permanent` ones would fail again and are not retried."""

    permanent = False


class ConnectionFailed(DownloadError):
    """The server refused, reset or closed the connection before a whole head of an answer."""


class NameNotFound(ConnectionFailed):
    """The host's name does not resolve."""


class TlsFailed(ConnectionFailed):
    """The TLS handshake failed, or the certificate is not to be trusted."""


class ProxyFailed(ConnectionFailed):
    """The proxy cannot be reached or refused."""


class DownloadTimeout(DownloadError):
    """The whole answer did not come within the request's total deadline."""


class BadAnswer(DownloadError):
    """What came is no HTTP: garbage, or a head too large."""


class BodyTruncated(DownloadError):
    """The connection ended before the body did."""


class BodyCorrupt(DownloadError):
    """The body does not inflate as its Content-Encoding says."""


class BodyTooLarge(DownloadError):
    """The body is larger than DOWNLOAD_MAXSIZE, on the wire or inflated."""

    permanent = True


class BadRedirect(DownloadError):
    """A redirect leads nowhere: too many hops, or a target that is no http(s) URL."""

    permanent = True


class Refused(DownloadError):
    """Not asked at all, by a rule that the crawl keeps to. The request is done, and its errback hears why."""

    permanent = True


class PrivateAddress(Refused):
    """A public page led to an address of a private network (BLOCK_PRIVATE)."""


class RobotsForbidden(Refused):
    """The site's robots.txt forbids it (ROBOTSTXT_OBEY)."""


class NotCached(Refused):
    """The cache has no answer, and the network is not to be asked (HTTPCACHE_IGNORE_MISSING)."""


class RobotsUnreachable(DownloadError):
    """The site's robots.txt could not be had, often enough; until it can, nothing of the site may be asked."""

    permanent = True


class HttpError(ScrapyPlusError):
    """The server answered with a status that the spider did not ask to see."""

    permanent = True

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status_code}")
        self.response = response


class RetryStatus(HttpError):
    """An answer whose status (RETRY_HTTP_CODES) says: try again later, and perhaps when: not before `wait_seconds`."""

    permanent = False

    def __init__(self, response: Response, wait_seconds: float = 0.0) -> None:
        super().__init__(response)
        self.wait_seconds = wait_seconds


class CallbackFailed(ScrapyPlusError):
    """A callback raised: it would again, so its page is buried until the spider is mended; the cause is `__cause__`."""

    permanent = True
