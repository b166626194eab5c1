"""The site that is crawled: a function of the page's number, served by a process of its own that notes each fetch.

`p<n>` are pages that links lead to, `u<n>` start requests that no filter may touch. Every page has one item: its name.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from gevent.server import StreamServer

FIRST_MS, MORE_MS = 5, 16
FLAKY_EVERY = 50
READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Site:
    """`pages` pages below `seeds` start pages, and `unfiltered` start requests with `filter=False`."""

    pages: int
    seeds: int = 0
    unfiltered: int = 0

    def names(self) -> set[str]:
        """Every page, each to be crawled once."""
        return {*(f"p{number}" for number in range(self.pages)), *(f"u{number}" for number in range(self.unfiltered))}

    def start(self) -> Iterator[tuple[str, bool]]:
        """The start requests in their order: name, and whether the filter applies. Filtered ones come twice."""
        for number in range(max(self.seeds, self.unfiltered)):
            if number < self.seeds:
                yield f"p{number}", True
                yield f"p{number // 2}", True
            if number < self.unfiltered:
                yield f"u{number}", False

    def links(self, name: str) -> list[str]:
        """Two pages that only this one leads to, if there are so many, and two that others lead to as well."""
        number = int(name[1:])
        if name[0] == "u":
            return [f"p{(number * 31 + 1) % self.pages}"]
        below = (number * 2 + self.seeds, number * 2 + self.seeds + 1)
        across = ((number * 7 + 1) % self.pages, (number * number + 3) % self.pages)
        return [f"p{page}" for page in (*below, *across) if page < self.pages]

    def is_flaky(self, name: str) -> bool:
        """Whether the first fetch of it is answered with 503."""
        return name[0] == "p" and int(name[1:]) % FLAKY_EVERY == 7

    def seconds(self, name: str) -> float:
        """How long the server takes over it: 5 to 20 ms."""
        return (FIRST_MS + int(name[1:]) * 2654435761 % MORE_MS) / 1000

    def body(self, name: str) -> bytes:
        return "".join(f'<p><a href="/{link}">{link}</a></p>' for link in self.links(name)).encode()


class SiteServer:
    """Serves a site to clients that keep their connections; each fetch is a line in `log`."""

    def __init__(self, site: Site, log: Path) -> None:
        self._site = site
        self._names = site.names()
        self._asked: set[str] = set()
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._server = StreamServer(("127.0.0.1", 0), self._converse)

    def start(self) -> int:
        """Answers the port."""
        self._server.start()
        return int(self._server.server_port)

    def serve(self) -> None:
        self._server.serve_forever()

    def _converse(self, connection: Any, address: object) -> None:
        data = b""
        try:
            while True:
                head, end, rest = data.partition(b"\r\n\r\n")
                if not end:
                    more = connection.recv(READ_BYTES)
                    if not more:
                        return
                    data += more
                    continue
                data = rest
                connection.sendall(self._answer(head.split(b" ", 2)[1].decode("latin-1").lstrip("/")))
        except OSError:
            return  # the client was killed
        finally:
            connection.close()

    def _answer(self, name: str) -> bytes:
        if name not in self._names:
            return _answer("404 Not Found", b"")
        os.write(self._log, f"{name}\n".encode())
        is_first = name not in self._asked
        self._asked.add(name)
        gevent.sleep(self._site.seconds(name))
        if is_first and self._site.is_flaky(name):
            return _answer("503 Service Unavailable", b"")
        return _answer("200 OK", self._site.body(name))


def _answer(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def main(words: list[str]) -> None:
    """Serves until it is ended, or until who started it is gone; the first line that it prints is its port."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    for name in ("pages", "seeds", "unfiltered"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args(words)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = SiteServer(Site(asked.pages, asked.seeds, asked.unfiltered), asked.log)
    print(server.start(), flush=True)
    gevent.spawn(_end_with, os.getppid())
    server.serve()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        gevent.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
