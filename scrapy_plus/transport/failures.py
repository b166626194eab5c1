"""What urllib3, ssl and the sockets raise, in the words of `scrapy_plus.errors`."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator

from urllib3 import exceptions as urllib3_errors

from scrapy_plus.errors import (
    BadAnswer,
    ConnectionFailed,
    DownloadError,
    DownloadTimeout,
    NameNotFound,
    ProxyFailed,
    TlsFailed,
)
from scrapy_plus.transport.base import Unsendable
from scrapy_plus.transport.reading import Silence

FAILURES = (DownloadError, OSError, urllib3_errors.HTTPError, http.client.HTTPException, UnicodeError, ValueError)
"""What a fetch may fail with; anything else is a fault of ours and shall be seen as one."""

_TABLE: list[tuple[tuple[type[BaseException], ...], type[DownloadError], str]] = [
    ((urllib3_errors.NameResolutionError, socket.gaierror), NameNotFound, "the name does not resolve"),
    ((urllib3_errors.LocationParseError, UnicodeError), NameNotFound, "the name cannot be looked up"),
    ((urllib3_errors.NewConnectionError,), ConnectionFailed, "no connection"),  # a TimeoutError to urllib3
    ((ssl.SSLError, urllib3_errors.SSLError), TlsFailed, "TLS failed"),
    ((TimeoutError, urllib3_errors.TimeoutError), DownloadTimeout, "no answer in time"),
    ((OSError, urllib3_errors.HTTPError), ConnectionFailed, "the connection failed"),
    ((http.client.HTTPException,), BadAnswer, "no HTTP"),
    ((ValueError,), Unsendable, "not to be sent"),
]


def as_download_error(error: Exception, host: str) -> DownloadError:
    """The failure of a request to `host` in our words, with the reason in theirs; no password is in it."""
    if isinstance(error, Silence):
        return ConnectionFailed(f"{host}: {error}")
    if isinstance(error, DownloadError):
        return type(error)(f"{host}: {error}")
    if isinstance(error, urllib3_errors.ProxyError):
        return _proxy_failure(error, host)
    for kinds, ours, what in _TABLE:
        if isinstance(error, kinds):
            return ours(f"{host}: {what}{_reason(error)}")
    return ConnectionFailed(f"{host}: {type(error).__name__}")


def _proxy_failure(error: urllib3_errors.ProxyError, host: str) -> DownloadError:
    """The proxy's fault, unless the TLS with the site behind it failed."""
    original = error.original_error
    if isinstance(original, ssl.SSLError | urllib3_errors.SSLError):
        return as_download_error(original, host)
    return ProxyFailed(f"{host}: {error.args[0]} failed{_reason(original)}")


def _reason(error: BaseException) -> str:
    """ "What the system or TLS said, in parentheses; else what the error says itself, on one line."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError) and cause.reason:
            verdict = getattr(cause, "verify_message", "")
            return f" ({cause.reason.lower().replace('_', ' ')}{': ' + verdict if verdict else ''})"
        if isinstance(cause, OSError) and cause.strerror:
            return f" ({cause.strerror})"
    text = str(error).partition("\n")[0]
    return f" ({text[:200]})" if text and "<" not in text else ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(8):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
