"""Which answers a spider asked to see although their status says that something went wrong."""

from __future__ import annotations

from typing import Any

from scrapy_plus.http.request import Request


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
