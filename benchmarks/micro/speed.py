"""Pages per second of one process that crawls a site on this machine: fetched, parsed, links followed, items written.

    python benchmarks/micro/speed.py [PAGES]

The site has PAGES (default 10,000) pages of about 2 kB with ten links each, and is served by another process. What is
measured is the whole crawl, from the first request to the last item in a file; the first of three runs is left out.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import asyncio
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from scrapy_plus import Engine, Spider
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.wiring import engine_arguments

CONCURRENCY = 32
FILLING = "<p>" + "What is to be found on a page is mostly this. " * 30 + "</p>"


def page(number: int, pages: int) -> bytes:
    """Page n leads to the pages 10n+1 to 10n+10: a tree, each page of it linked once."""
    linked = range(10 * number + 1, min(10 * number + 11, pages))
    links = "".join(f'<li><a href="/{one}">page {one}</a></li>' for one in linked)
    return f"<html><head><title>Page {number}</title></head><body>{FILLING}<ul>{links}</ul></body></html>".encode()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pages: int) -> None:
    while head := await reader.readuntil(b"\r\n\r\n"):
        body = page(int(head.split(b" ", 2)[1][1:] or 0), pages)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def serve(pages: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer, pages)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class PagesSpider(Spider):
    name = "pages"

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="li a")


def crawl(url: str, pages: int, folder: str) -> float:
    class AllPages(PagesSpider):
        start_urls = [url]

    overrides = {
        "SPIDERS": [AllPages],
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "FEEDS": {str(Path(folder) / "pages.jsonl"): {"overwrite": True}},
    }
    engine = Engine(**engine_arguments(load_settings(None, overrides=overrides, environ={})))
    assert engine.start() == 0
    stats = engine.snapshot().crawls[0].stats
    assert stats["item_scraped_count"] == pages
    return pages / stats["elapsed_time_seconds"]


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2])))
        return
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    server = subprocess.Popen([sys.executable, __file__, "serve", str(pages)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        with tempfile.TemporaryDirectory() as folder:
            rates = [crawl(url, pages, folder) for _ in range(3)][1:]
    finally:
        server.terminate()
        server.wait(10)
    print(f"pages={pages} concurrency={CONCURRENCY} pages_per_second={min(rates):.0f}..{max(rates):.0f}")
    print(f"python={platform.python_version()} system={platform.system()} machine={platform.machine()}")


if __name__ == "__main__":
    main()
