"""A site without an end, made as it is asked for: python pages.py PAGE_BYTES [PAGES]; prints its port.

Page n leads to page n + AHEAD, which nothing else leads to, and to LINKS - 1 before it; so a crawl that starts at the
first AHEAD pages has always something to do and never much ahead. `/cpu` tells the CPU seconds that the server took.
It runs as a program of its own, by its path: with gevent's patch asyncio would be slower.
"""

from __future__ import annotations

import asyncio
import sys
import time

AHEAD = 256
LINKS = 20
FILLING = b"<p>What is to be found on a page is mostly this, and <em>some</em> markup, as everywhere.</p>\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"


def start_paths() -> list[str]:
    return [f"/{number}.html" for number in range(AHEAD)]


class Site(asyncio.Protocol):
    """Keep-alive GETs, one after the other, which is all that a crawler sends."""

    def __init__(self, page_bytes: int, pages: int) -> None:
        self.filling = FILLING * max(0, round((page_bytes - len(page(LINKS, pages, b""))) / len(FILLING)))
        self.pages = pages
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            target = self.received[:end].split(b" ", 2)[1]
            self.received = self.received[end + 4 :]
            body = b"%f" % time.process_time() if target == b"/cpu" else self.page(target)
            self.transport.write(HEAD % len(body) + body)

    def page(self, target: bytes) -> bytes:
        return page(int(target[1 : target.index(b".")]), self.pages, self.filling)


def page(number: int, pages: int, filling: bytes) -> bytes:
    linked = [*([number + AHEAD] if number + AHEAD < pages else []), *range(max(0, number - LINKS + 1), number)]
    items = b"".join(b'<li><a href="/%d.html">Page %d</a></li>\n' % (one, one) for one in linked)
    title = b"<!DOCTYPE html>\n<html><head><title>Page %d</title></head>\n" % number
    return b"%b<body>\n%b<ul>\n%b</ul></body></html>\n" % (title, filling, items)


async def serve(page_bytes: int, pages: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Site(page_bytes, pages), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60))
