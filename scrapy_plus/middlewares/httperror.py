"""Answers with an error status do not reach the callback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrapy_plus.errors import HttpError
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.statuses import is_wanted


class HttpErrors:
    """Raises HttpError for every answer that is not 2xx, unless its status is allowed here, by the request or by the
    spider; an errback gets it."""

    def __init__(self, allowed_codes: Iterable[int] = (), allow_all: bool = False) -> None:
        self._allowed_codes = frozenset(int(code) for code in allowed_codes)
        self._allow_all = allow_all

    def process_response(self, response: Response, spider: Any) -> Response:
        status = response.status_code
        if 200 <= status < 300 or self._allow_all or status in self._allowed_codes:
            return response
        if is_wanted(status, response.request, spider):
            return response
        raise HttpError(response)
