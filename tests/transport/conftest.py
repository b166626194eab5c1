"""The transports that one suite judges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_plus.transport.base import Transport
from scrapy_plus.transport.requests_session import RequestsTransport

TRANSPORTS = {"requests": RequestsTransport}


@pytest.fixture(params=sorted(TRANSPORTS))
def make_transport(request: pytest.FixtureRequest) -> type[Transport]:
    return TRANSPORTS[request.param]


@pytest.fixture
def transport(make_transport: type[Transport]) -> Iterator[Transport]:
    made = make_transport()
    yield made
    made.close()
