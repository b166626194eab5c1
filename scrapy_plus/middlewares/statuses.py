"""What a status that says that something went wrong leads to: whether a spider wants to see it, how long to wait."""

from __future__ import annotations

import time
from typing import Any

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.rules.throttle import retry_after


def is_wanted(status: int, request: Request | None, spider: Any) -> bool:
    """Whether the request (meta handle_httpstatus_all, handle_httpstatus_list) or else the spider
    (handle_httpstatus_list) handles answers of this status itself."""
    meta = request.meta if request is not None and request.has_meta else {}
    if meta.get("handle_httpstatus_all"):
        return True
    wanted = meta.get("handle_httpstatus_list")
    if wanted is None:
        wanted = getattr(spider, "handle_httpstatus_list", None)
    return status in (wanted or ())


def wait_of(response: Response, limit_seconds: float) -> float:
    """Seconds that an answer asks to wait (Retry-After), cut at the limit; 0 if it does not ask."""
    asked = response.headers.getlist("Retry-After")
    return retry_after(asked[0], time.time(), limit_seconds) if asked else 0.0
