"""What libcurl says of a transfer that failed, in the words of `scrapy_plus.errors`."""

from __future__ import annotations

import os

import pycurl

from scrapy_plus.errors import (
    BadAnswer,
    BodyTooLarge,
    ConnectionFailed,
    DownloadError,
    DownloadTimeout,
    NameNotFound,
    ProxyFailed,
    TlsFailed,
)
from scrapy_plus.transport.base import Unsendable


class TooStrict(BadAnswer):
    """An answer that libcurl takes for garbage, and browsers do not."""


# Numbers where pycurl has no name for one; those that are not here are ConnectionFailed, libcurl's words with them.
TABLE: dict[int, tuple[type[DownloadError], str]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: (BadAnswer, "no HTTP"),
    pycurl.E_URL_MALFORMAT: (Unsendable, "not to be sent"),
    pycurl.E_COULDNT_RESOLVE_PROXY: (ProxyFailed, "the proxy's name does not resolve"),
    pycurl.E_COULDNT_RESOLVE_HOST: (NameNotFound, "the name does not resolve"),
    pycurl.E_COULDNT_CONNECT: (ConnectionFailed, "no connection"),
    8: (BadAnswer, "no HTTP"),  # CURLE_WEIRD_SERVER_REPLY
    pycurl.E_OPERATION_TIMEDOUT: (DownloadTimeout, "no answer in time"),
    pycurl.E_SSL_CONNECT_ERROR: (TlsFailed, "TLS failed"),
    pycurl.E_BAD_FUNCTION_ARGUMENT: (Unsendable, "not to be sent"),
    pycurl.E_SSL_ENGINE_NOTFOUND: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_ENGINE_SETFAILED: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_CERTPROBLEM: (TlsFailed, "the client's certificate cannot be used"),
    pycurl.E_SSL_CIPHER: (TlsFailed, "TLS failed"),
    pycurl.E_PEER_FAILED_VERIFICATION: (TlsFailed, "TLS failed"),
    pycurl.E_BAD_CONTENT_ENCODING: (BadAnswer, "no HTTP"),
    pycurl.E_FILESIZE_EXCEEDED: (BodyTooLarge, "over the size limit"),
    pycurl.E_USE_SSL_FAILED: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_ENGINE_INITFAILED: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_CACERT_BADFILE: (TlsFailed, "the file of trusted certificates cannot be read"),
    pycurl.E_SSL_SHUTDOWN_FAILED: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_CRL_BADFILE: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_ISSUER_ERROR: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: (TlsFailed, "TLS failed"),
    pycurl.E_SSL_INVALIDCERTSTATUS: (TlsFailed, "TLS failed"),
    97: (ProxyFailed, "the proxy failed"),  # CURLE_PROXY
    98: (TlsFailed, "the site wants a client's certificate"),  # CURLE_SSL_CLIENTCERT
    100: (BadAnswer, "no HTTP"),  # CURLE_TOO_LARGE
}

# One code for all that goes wrong while receiving; only the words tell a broken connection from a broken answer.
_GARBAGE = ("chunk", "Too large response headers", "trailer")
_FORGIVEN = ("Header without colon", "NUL byte in header")
_PROXY_CODES = frozenset({pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_PROXY, 97})


def is_garbage(code: int, said: str) -> bool:
    """Whether what was received is no HTTP, where the code says no more than that receiving failed."""
    return code == pycurl.E_RECV_ERROR and any(word in said for word in _GARBAGE)


def as_download_error(code: int, said: str, host: str, *, errno: int = 0, proxy: str = "") -> DownloadError:
    """The failure of a request to `host`, by way of `proxy` if that is not empty. No password is in it."""
    reason = os.strerror(errno) if errno else said
    reason = f" ({reason})" if reason else ""
    if proxy and (code in _PROXY_CODES or "CONNECT tunnel failed" in said):
        return ProxyFailed(f"{host}: the proxy {proxy} failed{reason}")
    if is_garbage(code, said):
        return BadAnswer(f"{host}: no HTTP{reason}")
    if code == pycurl.E_RECV_ERROR and " alert " in said:  # TLS 1.3: the handshake is over when the site says no
        return TlsFailed(f"{host}: TLS failed{reason}")
    if said in _FORGIVEN:
        return TooStrict(f"{host}: no HTTP{reason}")
    kind, what = TABLE.get(code, (ConnectionFailed, "the connection failed"))
    return kind(f"{host}: {what}{reason}")
