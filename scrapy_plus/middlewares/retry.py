"""Statuses that say: try again later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrapy_plus.errors import RetryStatus
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.statuses import is_wanted


class RetryStatuses:
    """Raises RetryStatus for answers of these `codes`; when and how often to try again is the engine's verdict.

    Not for requests with meta dont_retry, nor for statuses that the request or the spider handles itself.
    """

    def __init__(self, codes: Iterable[int]) -> None:
        self._codes = frozenset(int(code) for code in codes)

    def process_response(self, request: Request, response: Response, spider: Any) -> Response:
        if response.status_code not in self._codes:
            return response
        if (request.has_meta and request.meta.get("dont_retry")) or is_wanted(response.status_code, request, spider):
            return response
        raise RetryStatus(response)
