"""No transport connects to a private address for a request that came from the public internet."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from scrapy_plus.errors import PrivateAddress
from scrapy_plus.http.request import Request
from scrapy_plus.transport.base import Transport
from tests.transport.servers import answering, serving


def ask(transport: Transport, url: str, *, from_public: bool, proxy: str | None = None) -> Any:
    request = Request(url, proxy=proxy)
    request.from_public = from_public
    return transport.fetch(request, timeout_seconds=10.0, max_bytes=1000)


class Names:
    """A resolver that knows one name, and counts how often it is asked."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.addresses]


@pytest.fixture
def made(make_transport):
    opened = []

    def make(**options: Any) -> Transport:
        opened.append(make_transport(**options))
        return opened[-1]

    yield make
    for transport in opened:
        transport.close()


def test_a_name_of_a_private_address_is_not_connected_to(made):
    names = Names("127.0.0.1")
    transport = made(block_private="redirect", resolve=names)
    with serving(answering(b"secret")) as server:
        with pytest.raises(PrivateAddress, match=r"inner\.test"):
            ask(transport, f"http://inner.test:{server.port}/", from_public=True)
        assert server.connections == 0
        assert ask(transport, f"http://inner.test:{server.port}/", from_public=False).body == b"secret"
        assert names.asked == ["inner.test", "inner.test"], "what was looked at is what was connected to"


def test_a_connection_kept_by_a_request_that_may_is_not_lent_to_one_that_may_not(made):
    transport = made(block_private="redirect", resolve=Names("127.0.0.1"))
    with serving(answering(b"secret")) as server:
        url = f"http://inner.test:{server.port}/"
        assert ask(transport, url, from_public=False).body == b"secret"
        with pytest.raises(PrivateAddress):
            ask(transport, url, from_public=True)
        assert (server.connections, len(server.requests)) == (1, 1)


@pytest.mark.parametrize(("mode", "is_blocked"), [("always", True), ("off", False)])
def test_a_mode_may_block_all_or_none(made, mode, is_blocked):
    transport = made(block_private=mode)
    with serving(answering(b"tea")) as server:
        for from_public in (True, False):
            if is_blocked:
                with pytest.raises(PrivateAddress):
                    ask(transport, server.url, from_public=from_public)
            else:
                assert ask(transport, server.url, from_public=from_public).body == b"tea"


def test_an_answer_tells_the_address_that_it_came_from(made):
    with serving(answering(b"tea")) as server:
        assert ask(made(), server.url, from_public=False).ip_address == "127.0.0.1"


def test_a_proxy_may_be_private_and_its_address_is_not_that_of_the_site(made):
    transport = made(block_private="redirect")
    with serving(answering(b"tea")) as proxy:
        answer = ask(transport, "http://shop.test/", from_public=True, proxy=proxy.url)
        assert (answer.body, answer.ip_address) == (b"tea", None)
