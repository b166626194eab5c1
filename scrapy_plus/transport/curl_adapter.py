"""libcurl under a `requests.Session` of your own.

    session = requests.Session()
    session.mount("https://", CurlAdapter())
    session.mount("http://", CurlAdapter())

Auth, cookies, redirects and prepared requests are the session's as ever, and so are the exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import requests
from requests.adapters import BaseAdapter
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, select_proxy
from urllib3 import HTTPHeaderDict, HTTPResponse

from scrapy_plus import errors
from scrapy_plus.transport.base import Unsendable
from scrapy_plus.transport.curl_exchange import Special
from scrapy_plus.transport.curl_wire import CurlWire
from scrapy_plus.transport.http1 import parse_head
from scrapy_plus.transport.outgoing import lines_of, parse_proxy, split

_NO_LIMIT = 1 << 62
_A_DAY = 86_400.0
_KINDS: tuple[tuple[type[Exception], type[requests.RequestException]], ...] = (
    (errors.TlsFailed, requests.exceptions.SSLError),
    (errors.ProxyFailed, requests.exceptions.ProxyError),
    (errors.DownloadTimeout, requests.exceptions.ReadTimeout),
    (errors.BodyTruncated, requests.exceptions.ChunkedEncodingError),
    (Unsendable, requests.exceptions.InvalidURL),
    (errors.DownloadError, requests.exceptions.ConnectionError),
)


class CurlAdapter(BaseAdapter):
    """Sends through libcurl, within the whole time that `timeout` says (connect and read together, if it is both).

    `max_connections` are kept in all.
    """

    def __init__(self, *, max_connections: int = 256) -> None:
        super().__init__()
        self._max_connections = max_connections
        self._wires: dict[Any, CurlWire] = {}

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        url, method = str(request.url), str(request.method)
        origin, target = split(url)
        proxy = select_proxy(url, proxies)
        body = _whole_body(request.body)
        fields = {name: value for name, value in request.headers.items() if name.lower() != "transfer-encoding"}
        try:
            head, content, _, _ = self._wire(verify, cert).exchange(
                f"{origin.scheme}://{origin.shown}",
                target,
                lines_of(_texts(fields), origin.shown),
                _seconds(timeout),
                _NO_LIMIT,
                Special(method, body, parse_proxy(proxy) if proxy else None),
            )
        except errors.DownloadError as error:
            kind = next(theirs for ours, theirs in _KINDS if isinstance(error, ours))
            raise kind(error, request=request) from error
        return self._response(request, head, content)

    def _wire(self, verify: bool | str, cert: Any) -> CurlWire:
        wire = self._wires.get((verify, cert))
        if wire is None:
            wire = self._wires[verify, cert] = CurlWire(
                verify_tls=verify, client_certificate=cert, max_connections=self._max_connections
            )
        return wire

    def _response(self, request: requests.PreparedRequest, head: bytes, content: bytes) -> requests.Response:
        parsed = parse_head(head)
        response = requests.Response()
        response.status_code = parsed.status
        response.reason = head.partition(b"\n")[0].decode("latin-1").partition(" ")[2][4:].strip()
        response.headers = CaseInsensitiveDict(HTTPHeaderDict(parsed.fields))
        response.encoding = get_encoding_from_headers(response.headers)
        response.raw = HTTPResponse(
            body=BytesIO(content),
            headers=HTTPHeaderDict(parsed.fields),
            status=parsed.status,
            reason=response.reason,
            preload_content=False,
            decode_content=False,
            original_response=_Original(parsed.fields),  # type: ignore[arg-type]
            request_method=request.method,
        )
        if "content-encoding" not in response.headers:
            response._content = content
            response._content_consumed = True  # type: ignore[attr-defined]
        response.url = str(request.url)
        response.request = request
        response.connection = self  # type: ignore[assignment]
        extract_cookies_to_jar(response.cookies, request, response.raw)
        return response

    def close(self) -> None:
        while self._wires:
            self._wires.popitem()[1].close()


class _Original:
    """What `requests` looks for cookies in: the answer as `http.client` would have it."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self.msg = self
        self._fields = fields

    def get_all(self, name: str, default: Any = None) -> Any:
        return [value for key, value in self._fields if key.lower() == name.lower()] or default

    def isclosed(self) -> bool:
        return True

    def close(self) -> None:
        return None


def _texts(fields: Mapping[Any, Any]) -> dict[str, str]:
    def text(value: Any) -> str:
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)

    return {text(name): text(value) for name, value in fields.items()}


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, tuple):
        return _A_DAY if None in timeout else float(sum(timeout))
    return _A_DAY if timeout is None else float(timeout)


def _whole_body(body: Any) -> bytes:
    """The body in one piece: libcurl may have to send it again, on another connection."""
    if not body:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    return bytes(body.read()) if hasattr(body, "read") else b"".join(body)
