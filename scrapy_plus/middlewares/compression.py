"""Content-Encoding: asked for, and undone, within the limit for bodies."""

from __future__ import annotations

import sys

from scrapy_plus.errors import BodyCorrupt, BodyTooLarge
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.http.url import site
from scrapy_plus.middlewares.inflate import ACCEPTED, DECODERS, inflate


class Compression:
    """Asks for compressed bodies and inflates them, to at most `max_bytes` (0: no limit).

    Raises BodyTooLarge, and BodyCorrupt for one that is cut or no such stream at all. Without `fail_on_dataloss` (or
    with meta download_fail_on_dataloss False) what could be inflated is kept, with the flag "dataloss"; so it is with
    error statuses and redirects, of which the status says all that matters.
    """

    def __init__(self, max_bytes: int = 64 << 20, fail_on_dataloss: bool = True) -> None:
        self._max_bytes = max_bytes
        self._fail_on_dataloss = fail_on_dataloss

    def process_request(self, request: Request) -> None:
        if "accept-encoding" not in request.headers:
            request.headers["Accept-Encoding"] = ACCEPTED

    def process_response(self, request: Request, response: Response) -> Response:
        if not response.body or "content-encoding" not in response.headers:
            return response
        codings = [one.strip().lower() for one in response.headers["content-encoding"].split(",")]
        meta = request.meta if request.has_meta else {}
        is_strict = bool(meta.get("download_fail_on_dataloss", self._fail_on_dataloss))
        max_bytes = int(meta.get("download_maxsize", self._max_bytes)) or sys.maxsize - 1
        try:
            body, left, is_whole = inflate(response.body, codings, max_bytes, keep_partial=not is_strict)
        except (BodyCorrupt, BodyTooLarge) as error:
            if 200 <= response.status_code < 300:
                raise type(error)(f"{site(request.url)}: {error}") from None
            return _flagged(response)
        return _inflated(response, body, left) if is_whole else _flagged(_inflated(response, body, left))


def _inflated(response: Response, body: bytes, left: list[str]) -> Response:
    response.body = body
    del response.headers["Content-Encoding"]
    if left:
        response.headers["Content-Encoding"] = ", ".join(left)
    return response


def _flagged(response: Response) -> Response:
    if "dataloss" not in response.flags:
        response.flags.append("dataloss")
    return response


__all__ = ["ACCEPTED", "DECODERS", "Compression", "inflate"]
