"""CPU a page of each way to fetch one, beside libcurl bare on the same hub.

    python benchmarks/micro/transport.py [--pages 10000] [--rounds 5] [--bytes 15000] [--tls] [--at-a-time 32]

nginx serves one page over kept connections, on a core of its own where there are two. Every contender is a process of
its own, the rounds are interleaved; what counts is the CPU time of the client: medians, and ratios to the first row.
"""

from __future__ import annotations

import scrapy_plus  # noqa: F401  isort: skip

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event

Fetch = Callable[[str], bytes]

NGINX = """\
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 100000000; open_file_cache max=100; tcp_nopush on; default_type text/html;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    server {{ listen 127.0.0.1:{port} {tls}; root {folder}/www; }}
}}
"""

# -- the contenders ----------------------------------------------------------------------------------------------------


def bare(url: str, pages: int, at_a_time: int) -> int:
    """libcurl's multi interface on the hub, and nothing else: no greenlets, no heads, no checks, no limits."""
    import pycurl

    multi, loop, done = pycurl.CurlMulti(), gevent.get_hub().loop, Event()
    watchers: dict[int, Any] = {}
    left, running, size = pages - at_a_time, at_a_time, 0
    timer = loop.timer(0.001, 0.001)

    def act(events: int, fd: int) -> None:
        multi.socket_action(fd, events)
        collect()

    def tick() -> None:
        multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        collect()

    def collect() -> None:
        nonlocal left, running, size
        is_more = 1
        while is_more:
            is_more, ended, failed = multi.info_read()
            assert not failed, failed
            for curl in ended:
                size += sum(map(len, curl.pieces))
                curl.pieces.clear()
                multi.remove_handle(curl)
                if left > 0:
                    left -= 1
                    curl.setopt(pycurl.URL, url)
                    multi.add_handle(curl)
                else:
                    running -= 1
        if not running:
            done.set()

    def watch(what: int, fd: int, *_: Any) -> None:
        watcher = watchers.get(fd)
        if what == pycurl.POLL_REMOVE:
            watcher.stop()
            return
        if watcher is None:
            watcher = watchers[fd] = loop.io(fd, what)
        watcher.stop()
        watcher.events = what
        watcher.start(act, fd, pass_events=True)

    def set_timer(milliseconds: int) -> None:
        if milliseconds == 0:
            loop.run_callback(tick)

    multi.setopt(pycurl.M_SOCKETFUNCTION, watch)
    multi.setopt(pycurl.M_TIMERFUNCTION, set_timer)
    timer.start(lambda: None)

    class Handle(pycurl.Curl):  # type: ignore[misc, name-defined]
        pieces: list[bytes]

    for _ in range(at_a_time):
        curl = Handle()
        curl.pieces = []
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.WRITEFUNCTION, curl.pieces.append)
        multi.add_handle(curl)
    done.wait()
    return size


def in_greenlets(fetch: Fetch, url: str, pages: int, at_a_time: int) -> int:
    left, size = pages, 0

    def work() -> None:
        nonlocal left, size
        while left > 0:
            left -= 1
            length = len(fetch(url))  # in a line of its own: `size` is read after the wait, not before
            size += length

    gevent.joinall([gevent.spawn(work) for _ in range(at_a_time)], raise_error=True)
    return size


def of_transport(transport: Any, *, reads_headers: bool = False) -> Fetch:
    """Asks for the same page again and again; making a request is no part of fetching it."""
    from scrapy_plus.http.request import Request

    headers = {"User-Agent": "scrapyplus", "Accept": "text/html", "Accept-Language": "en"}
    request = Request(sys.argv[3], headers=headers)

    def fetch(url: str) -> bytes:
        response = transport.fetch(request, timeout_seconds=30.0, max_bytes=1 << 20)
        if reads_headers:
            for name in ("content-encoding", "set-cookie", "content-type"):  # as a crawl does
                response.headers.get(name)
        return response.body  # type: ignore[no-any-return]

    return fetch


def curl() -> Fetch:
    from scrapy_plus.transport.curl import CurlTransport

    return of_transport(CurlTransport(verify_tls=False))


def curl_with_headers() -> Fetch:
    from scrapy_plus.transport.curl import CurlTransport

    return of_transport(CurlTransport(verify_tls=False), reads_headers=True)


def on_requests() -> Fetch:
    from scrapy_plus.transport.requests_session import RequestsTransport

    return of_transport(RequestsTransport(verify_tls=False))


def stock() -> Fetch:
    import requests
    import urllib3

    urllib3.disable_warnings()
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=1000))
    session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=1000))
    return lambda url: session.get(url, verify=False).content


CONTENDERS: dict[str, tuple[Callable[[], Fetch] | None, float]] = {
    "bare libcurl on the hub": (None, 1.0),
    "curl transport": (curl, 1.0),
    "curl transport, headers read": (curl_with_headers, 1.0),
    "requests transport": (on_requests, 1.0),
    "requests.Session as usual": (stock, 0.1),
}
"""What makes each one, and the part of the pages that it is given."""


def contend(name: str, url: str, pages: int, at_a_time: int, size: int) -> dict[str, float]:
    make, part = CONTENDERS[name]
    pages = max(at_a_time, int(pages * part))
    fetch = make() if make else None

    def run(count: int) -> int:
        return in_greenlets(fetch, url, count, at_a_time) if fetch else bare(url, count, at_a_time)

    length = run(at_a_time) // at_a_time
    assert length >= size, "no page"
    started, began = time.process_time(), time.perf_counter()
    assert run(pages) == pages * length, "a page came in part"
    seconds = time.perf_counter() - began
    return {"cpu_us": (time.process_time() - started) / pages * 1e6, "pages_per_second": pages / seconds}


# -- the site, and the rounds ------------------------------------------------------------------------------------------


def serve(folder: Path, size: int, *, tls: bool) -> tuple[subprocess.Popen[bytes], str]:
    folder.chmod(0o755)  # nginx's worker is nobody
    (folder / "www").mkdir()
    (folder / "www" / "page.html").write_bytes(
        b"<p>What is to be found on a page is mostly this.</p>\n" * (size // 53 + 1)
    )
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    if tls:
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
        files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
        subprocess.run([*command.split(), *files], check=True, capture_output=True)
    options = f"ssl; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem" if tls else ""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, tls=options))
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or sys.exit("nginx is not installed")
    server = subprocess.Popen([nginx, "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    for _ in range(500):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.01)
    return server, f"{'https' if tls else 'http'}://127.0.0.1:{port}/page.html"


def pin(pid: int, core: int) -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


def compete(url: str, given: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for _ in range(given.rounds):
        for name in CONTENDERS:
            numbers = [str(one) for one in (given.pages, given.at_a_time, given.bytes)]
            command = [sys.executable, __file__, "--contend", name, url, *numbers]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
            results[name].append(json.loads(done.stdout))
    return results


def show(results: dict[str, list[dict[str, float]]]) -> None:
    first = statistics.median(one["cpu_us"] for one in next(iter(results.values())))
    print(f"{'':32}{'CPU us/page':>12}{'least':>8}{'ratio':>8}{'pages/s':>10}")
    for name, runs in results.items():
        cpu = statistics.median(one["cpu_us"] for one in runs)
        speed = statistics.median(one["pages_per_second"] for one in runs)
        print(f"{name:32}{cpu:12.1f}{min(one['cpu_us'] for one in runs):8.1f}{cpu / first:8.2f}{speed:10,.0f}")


def main() -> None:
    if sys.argv[1:2] == ["--contend"]:
        pin(0, 0)
        print(json.dumps(contend(*sys.argv[2:4], *map(int, sys.argv[4:]))))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=15_000)
    parser.add_argument("--at-a-time", type=int, default=32)
    parser.add_argument("--tls", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server, url = serve(Path(folder), given.bytes, tls=given.tls)
        pin(server.pid, 1)
        try:
            show(compete(url, given))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
