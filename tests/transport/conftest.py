"""The transports that one suite judges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_plus.transport.base import Transport, curl_is_missing
from scrapy_plus.transport.requests_session import RequestsTransport

TRANSPORTS: dict[str, type[Transport]] = {"requests": RequestsTransport}
if not curl_is_missing():
    from scrapy_plus.transport.curl import CurlTransport

    TRANSPORTS["curl"] = CurlTransport


@pytest.fixture(params=sorted(TRANSPORTS))
def make_transport(request: pytest.FixtureRequest) -> type[Transport]:
    return TRANSPORTS[request.param]


@pytest.fixture
def transport(make_transport: type[Transport]) -> Iterator[Transport]:
    made = make_transport()
    yield made
    made.close()
