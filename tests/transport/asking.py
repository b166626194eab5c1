"""How the tests of the contract ask a transport."""

from __future__ import annotations

import gevent

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.transport.base import Transport
from tests.transport.servers import Script, serving

MAX_BYTES = 1 << 20


def fetch(transport: Transport, url: str, *, seconds: float = 10.0, strict: bool = True, **fields: object) -> Response:
    """Fetches within a bound that no right transport reaches."""
    max_bytes = int(fields.pop("max_bytes", MAX_BYTES))
    with gevent.Timeout(seconds):
        request = Request(url, **fields)
        return transport.fetch(request, timeout_seconds=seconds, max_bytes=max_bytes, fail_on_dataloss=strict)


def ask(transport: Transport, script: Script, **fields: object) -> Response:
    with serving(script) as server:
        return fetch(transport, server.url, **fields)
