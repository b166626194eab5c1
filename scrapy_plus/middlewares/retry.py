"""Statuses that say: try again later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrapy_plus.errors import RetryStatus
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.statuses import is_wanted, wait_of


class RetryStatuses:
    """Raises RetryStatus for answers of these `codes`; when and how often to try again is the engine's verdict.

    Not for requests with meta dont_retry, nor for statuses that the request or the spider handles itself. Of those that
    are `allowed_codes` for callbacks (all with `allow_all`), the answer to the last try is given on. What Retry-After
    asks for, at most `wait_max_seconds`, is waited for.
    """

    def __init__(
        self,
        codes: Iterable[int],
        *,
        allowed_codes: Iterable[int] = (),
        allow_all: bool = False,
        max_retries: int = 3,
        wait_max_seconds: float = 600.0,
    ) -> None:
        self._codes = frozenset(int(code) for code in codes)
        self._given_on = self._codes if allow_all else self._codes & {int(code) for code in allowed_codes}
        self._max_retries = max_retries
        self._wait_max_seconds = wait_max_seconds

    def process_response(self, request: Request, response: Response, spider: Any) -> Response:
        if response.status_code not in self._codes:
            return response
        if (request.has_meta and request.meta.get("dont_retry")) or is_wanted(response.status_code, request, spider):
            return response
        if response.status_code in self._given_on and self._is_last(request):
            return response
        raise RetryStatus(response, wait_of(response, self._wait_max_seconds))

    def _is_last(self, request: Request) -> bool:
        most = request.meta.get("max_retry_times") if request.has_meta else None
        return request.retry_time >= (most if isinstance(most, int) else self._max_retries)
