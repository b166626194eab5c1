"""Where the microseconds of a page go: a crawl as the framework comes, sampled, beside a loop without a framework.

    python benchmarks/page_cost.py [--pages 5000] [--kb 15] [--redis] [--rounds 3] [--network] [--calls]

Both crawl the same site with the same transport, lxml and 32 greenlets: pages of 15 KB with 20 links, or of 1 KB with
5, each fetched once. The pages come from memory behind one switch of greenlets, so that what is measured is
all but the network; with --network they come from a server in another process, through the transport that is
installed. Runs alternate, each in a process of its own; the figures are CPU time, medians. The parts are samples of
the stack, one a millisecond of CPU, each counted for the part that its innermost known function belongs to.
With --redis a redis-server of its own is the store. With --calls the functions are printed that most samples were in.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import argparse
import asyncio
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import gevent
from gevent.queue import SimpleQueue
from lxml import etree

from scrapy_plus import Request, Response, Spider
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.http.headers import Headers
from scrapy_plus.log import setup
from scrapy_plus.transport.base import Transport
from scrapy_plus.wiring import build_engine, build_transport

CONCURRENCY = 32
SAMPLE_SECONDS = 0.001
SHAPES = {15: 20, 1: 5}
SENTENCE = "What is to be found on a page is mostly this, with <em>some</em> markup now and then. "
FIELDS = [
    ("Server", "nginx/1.22.1"),
    ("Date", "Tue, 01 Dec 2026 05:00:00 GMT"),
    ("Content-Type", "text/html"),
    ("Last-Modified", "Tue, 01 Dec 2026 04:00:00 GMT"),
    ("Connection", "keep-alive"),
    ("ETag", '"68fcb1e3-3b1a"'),
    ("Accept-Ranges", "bytes"),
]
# The innermost function on the stack that is named here says what a sample is for. Files below scrapy_plus, then names
# of functions; an empty tuple is all of the file.
PARTS: list[tuple[str, str, tuple[str, ...]]] = [
    ("transport", "page_cost.py", ("fetch",)),
    ("transport", "/transport/", ()),
    ("decode and parse", "/http/encoding.py", ()),
    ("decode and parse", "/http/detect.py", ()),
    ("decode and parse", "/http/response.py", ("root", "_decode", "text", "body", "_forget_text")),
    ("decode and parse", "/http/selector.py", ("parse", "_parse")),
    ("queries", "/http/selector.py", ()),
    ("queries", "/http/response.py", ("xpath", "css")),
    ("answer", "/http/response.py", ("__init__",)),
    ("answer", "/http/headers.py", ()),
    ("base of links", "/http/response.py", ("base_url", "_declared_base")),
    ("links to requests", "/http/response.py", ()),
    ("links to requests", "/http/request.py", ()),
    ("fingerprint", "/http/url.py", ("canonicalize", "_is_sorted", "_pair")),
    ("site", "/http/url.py", ("site", "site_of_origin", "host_of")),
    ("links to requests", "/http/url.py", ()),
    ("fingerprint", "/rules/fingerprint.py", ()),
    ("codec", "/http/codec.py", ()),
    ("codec", "/http/storable.py", ()),
    ("frontier", "/frontier/", ()),
    ("frontier", "/core/committer.py", ()),
    ("frontier", "/redis/", ()),
    ("scheduler", "/core/scheduler.py", ()),
    ("statistics", "/core/stats.py", ()),
    ("middlewares", "/middlewares/", ()),
    ("pipelines", "/core/pipeline.py", ()),
    ("page", "/core/crawl.py", ()),
    ("page", "/core/outcome.py", ()),
    ("download", "/core/downloader.py", ()),
    ("download", "/rules/", ()),
    ("engine", "/core/", ()),
    ("spider", "page_cost.py", ("parse", "process_item")),
    ("greenlets", "/gevent/", ()),
]


# -- the site ---------------------------------------------------------------------------------------------------------


def make_bodies(pages: int, kilobytes: int) -> dict[str, bytes]:
    """Page n leads to page n + 1, so that none is left out, and to others by chance."""
    chance = random.Random(20)
    bodies = {}
    for number in range(pages):
        linked = [(number + 1) % pages, *(chance.randrange(pages) for _ in range(SHAPES[kilobytes] - 1))]
        links = "".join(f'<li><a href="/site/{one}.html">Page {one}</a></li>\n' for one in linked)
        head = f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>Page {number}</title></head><body>\n'
        paragraph = f'<p class="text">{SENTENCE * 4}</p>\n'
        count = max(0, kilobytes * 1000 - len(head) - len(links)) // len(paragraph)
        bodies[f"/site/{number}.html"] = f"{head}{paragraph * count}<ul>\n{links}</ul></body></html>\n".encode()
    return bodies


class FromMemory(Transport):
    """Answers at once, but for one turn of the hub, as a network would ask for."""

    network = False

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self._bodies = bodies

    def fetch(
        self, request: Request, *, timeout_seconds: float, max_bytes: int, fail_on_dataloss: bool = True
    ) -> Response:
        url = request.full_url
        body = self._bodies[url[url.index("/", 8) :]]
        gevent.sleep(0)
        response = Response(url, 200, Headers(FIELDS), body, request=request)
        response.ip_address = "127.0.0.1"
        return response


async def serve(bodies: dict[str, bytes]) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in FIELDS)
    answers = {
        path: f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        for path, body in bodies.items()
    }

    class Pages(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self._write = transport.write

        def data_received(self, data: bytes) -> None:
            self._write(answers[data.split(b" ", 2)[1].decode()])

    server = await asyncio.get_running_loop().create_server(Pages, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# -- the two crawls ---------------------------------------------------------------------------------------------------


class Pages(Spider):
    name = "pages"

    def parse(self, response):
        yield {"url": response.url, "title": response.xpath("//title/text()").get()}
        yield from response.follow_all(response.xpath("//a/@href"))


class Count:
    """Counts the items, and says when the last page came."""

    def __init__(self) -> None:
        self.count = 0

    def process_item(self, item: Any, spider: Spider) -> Any:
        self.count += 1
        return item


def crawl_ours(job: dict[str, Any], transport: Transport | None) -> int:
    count = Count()
    overrides: dict[str, Any] = {"PIPELINES": [count], "CONCURRENT_REQUESTS": CONCURRENCY, "LOG_LEVEL": "WARNING"}
    if job["redis"]:
        overrides |= {"SCHEDULER_PERSIST": True, "REDIS_URL": job["redis"], "PROJECT_NAME": job["name"]}
    spider = type("Pages", (Pages,), {"start_urls": [job["url"]]})
    settings = load_settings(None, overrides={**overrides, "SPIDERS": [spider]}, environ={})
    setup("WARNING", None, settings.LOG_FORMAT, settings.LOG_DATEFORMAT)
    make = {} if transport is None else {"make_transport": lambda settings: transport}
    assert build_engine(settings, **make).start() == 0
    return count.count


def crawl_bare(job: dict[str, Any], transport: Transport | None) -> int:
    """What is to be had at most: links as the pages write them, a set of them, a queue."""
    fetch = (transport or build_transport(load_settings(None, overrides={}, environ={}))).fetch
    links = etree.XPath("//a/@href", smart_strings=False)
    title = etree.XPath("//title/text()", smart_strings=False)
    parser = etree.HTMLParser(encoding="utf-8")
    origin, _, path = job["url"].partition("/site/")
    seen = {f"/site/{path}"}
    waiting: SimpleQueue[str] = SimpleQueue()
    waiting.put(job["url"])
    items: list[dict[str, str]] = []

    def work() -> None:
        while (url := waiting.get()) and url:
            response = fetch(Request(url), timeout_seconds=60, max_bytes=1 << 26)
            root = etree.fromstring(response.body, parser)
            items.append({"url": url, "title": title(root)[0]})
            for link in links(root):
                if link not in seen:
                    seen.add(link)
                    waiting.put(origin + link)
            if len(items) == len(seen):
                for _ in range(CONCURRENCY):
                    waiting.put("")

    gevent.joinall([gevent.spawn(work) for _ in range(CONCURRENCY)], raise_error=True)
    return len(items)


class Sampler:
    """Counts, a millisecond of CPU each, the parts and the functions that the program is in."""

    def __init__(self) -> None:
        self.parts: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __enter__(self) -> Sampler:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _sample(self, number: int, frame: FrameType | None) -> None:
        if frame is not None:
            code = frame.f_code
            self.calls[f"{'/'.join(code.co_filename.split('/')[-2:])}:{frame.f_lineno} {code.co_name}"] += 1
        while frame is not None:
            part = _part(frame.f_code.co_filename, frame.f_code.co_name)
            if part is not None:
                self.parts[part] += 1
                return
            frame = frame.f_back
        self.parts["other"] += 1


_known: dict[tuple[str, str], str | None] = {}


def _part(filename: str, name: str) -> str | None:
    key = (filename, name)
    if key not in _known:
        fits = (part for part, place, names in PARTS if place in filename and (not names or name in names))
        _known[key] = next(fits, None)
    return _known[key]


def run(job: dict[str, Any]) -> None:
    """One crawl, in a process of its own; tells what it took as a line of JSON."""
    transport = None if job["network"] else FromMemory(make_bodies(job["pages"], job["kb"]))
    crawl = crawl_ours if job["what"] == "ours" else crawl_bare
    sampler = Sampler()
    started = time.process_time()
    if job["sampled"]:
        with sampler:
            count = crawl(job, transport)
    else:
        count = crawl(job, transport)
    seconds = time.process_time() - started
    assert count == job["pages"], f"{count} pages, not {job['pages']}"
    print(json.dumps({"us": seconds / count * 1e6, "parts": sampler.parts, "calls": sampler.calls.most_common(60)}))


# -- the runs ---------------------------------------------------------------------------------------------------------


@contextmanager
def redis_server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder, "--logfile", "log"]
        server = subprocess.Popen(command)
        try:
            for _ in range(100):
                if socket.socket().connect_ex(("127.0.0.1", port)) == 0:
                    break
                time.sleep(0.1)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait(10)


@contextmanager
def web_server(pages: int, kilobytes: int) -> Iterator[str]:
    command = [sys.executable, __file__, "serve", str(pages), str(kilobytes)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.terminate()
        server.wait(10)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "run", json.dumps(job)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def compare(options: argparse.Namespace, url: str, redis: str) -> None:
    job = {"pages": options.pages, "kb": options.kb, "network": options.network, "url": f"{url}/site/0.html"}
    figures: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(options.rounds):
        for what, times in figures.items():
            name = f"{what}{number}"
            times.append(measure({**job, "what": what, "redis": redis, "name": name, "sampled": False})["us"])
    ours, bare = (statistics.median(times) for times in figures.values())
    sampled = measure({**job, "what": "ours", "redis": redis, "name": "sampled", "sampled": True})
    total = sum(sampled["parts"].values())
    store = "Redis" if redis else "memory"
    print(f"{options.kb} KB pages, {SHAPES[options.kb]} links, {store}, CPU microseconds a page")
    print(f"with the framework {ours:.0f}, without {bare:.0f}: {bare / ours:.0%} of the pages a second")
    for part, count in sorted(sampled["parts"].items(), key=lambda pair: -pair[1]):
        print(f"  {part:20} {ours * count / total:6.1f}")
    for call, count in sampled["calls"] if options.calls else ():
        print(f"    {ours * count / total:6.1f} {call}")


def main() -> None:
    if sys.argv[1:2] == ["run"]:
        run(json.loads(sys.argv[2]))
        return
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(make_bodies(int(sys.argv[2]), int(sys.argv[3]))))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--kb", type=int, choices=sorted(SHAPES), default=15)
    parser.add_argument("--rounds", type=int, default=3)
    for flag in ("--redis", "--network", "--calls"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    with web_server(options.pages, options.kb) if options.network else _no_server() as url:
        if not options.redis:
            compare(options, url, "")
            return
        with redis_server() as redis:
            compare(options, url, redis)


@contextmanager
def _no_server() -> Iterator[str]:
    yield "http://127.0.0.1:54321"


if __name__ == "__main__":
    main()
