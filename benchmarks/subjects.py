"""What is measured: each row of the table, and how it is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CONCURRENCY = 32
MANY = 128
STOCK = {"TRANSPORT": "requests"}
CURL = {"TRANSPORT": "curl"}


@dataclass(frozen=True)
class Subject:
    """One row. `environment` is a rival's; `site` names pages; `web` and `redis` are near or far."""

    name: str
    title: str
    program: str
    store: str = "memory"
    environment: str = ""
    site: str = "big"
    concurrency: int = CONCURRENCY
    web: str = "near"
    redis: str = "near"
    slaves: int = 0
    more: dict[str, Any] = field(default_factory=dict)
    """What the job says beside: settings of ours."""


def ours(name: str, title: str, transport: dict[str, Any], **arguments: Any) -> Subject:
    return Subject(name, title, "ours.py", more={"settings": transport}, **arguments)


def bare(name: str, title: str, transport: dict[str, Any], **arguments: Any) -> Subject:
    return Subject(name, title, "bare.py", more={"settings": transport}, **arguments)


def rival(name: str, title: str, program: str, environment: str, store: str = "memory", **more: Any) -> Subject:
    return Subject(name, title, program, store, environment, site=SLOW, more=more)


SLOW = "slow"
"""The site of those who would take minutes for the whole: fewer pages of the same kind."""


def subjects(has_curl: bool) -> list[Subject]:
    """All rows, ours by libcurl if it is there; what is not measured is no row."""
    wire, settings = ("libcurl", CURL) if has_curl else ("requests", STOCK)
    return [*_crawls(wire, settings), *_far(wire, settings), *_fetched(has_curl), *_by_requests(), *_rivals()]


def _crawls(wire: str, settings: dict[str, Any]) -> list[Subject]:
    return [
        ours("memory", f"scrapy_plus, memory, {wire}", settings),
        ours("redis", f"scrapy_plus, Redis, {wire}", settings, store="redis"),
        bare("bare", f"bare loop: {wire}, lxml, a set", settings),
        ours("memory_small", f"scrapy_plus, memory, {wire}, 1 KB pages", settings, site="small"),
        ours("redis_small", f"scrapy_plus, Redis, {wire}, 1 KB pages", settings, store="redis", site="small"),
        bare("bare_small", f"bare loop: {wire}, lxml, a set, 1 KB pages", settings, site="small"),
        ours("slaves", f"two slaves of scrapy_plus on one core, {wire}", settings, store="redis", slaves=2),
    ]


def _far(wire: str, settings: dict[str, Any]) -> list[Subject]:
    memory, redis = f"scrapy_plus, memory, {wire}, 128 at a time", f"scrapy_plus, Redis, {wire}, 128 at a time"
    return [
        ours("memory_128", memory, settings, concurrency=MANY),
        ours("latency", f"{memory}, server 20 ms away", settings, concurrency=MANY, web="far"),
        ours("redis_128", redis, settings, store="redis", concurrency=MANY),
        ours("redis_far", f"{redis}, 20 ms away", settings, store="redis", concurrency=MANY, redis="far"),
    ]


def _fetched(has_curl: bool) -> list[Subject]:
    """What the transport itself takes: nothing is parsed."""
    if not has_curl:
        return []
    return [
        Subject("fetch", "fetched only: scrapy_plus's transport, libcurl", "fetching.py", more={"settings": CURL}),
        Subject("raw", "fetched only: pycurl on gevent's hub", "fetching.py", more={"raw": True}),
    ]


def _by_requests() -> list[Subject]:
    return [
        ours("stock", "scrapy_plus, memory, requests", STOCK),
        ours("stock_redis", "scrapy_plus, Redis, requests", STOCK, store="redis"),
        bare("stock_bare", "bare loop: requests, lxml, a set", STOCK),
    ]


def _rivals() -> list[Subject]:
    return [
        rival("scrapy", "Scrapy", "with_scrapy.py", "scrapy"),
        rival("scrapy_redis", "Scrapy + scrapy-redis", "with_scrapy.py", "scrapy_redis", "redis"),
        rival("feapder", "feapder AirSpider", "with_feapder.py", "feapder"),
        rival("feapder_redis", "feapder Spider, Redis", "with_feapder.py", "feapder", "redis"),
        rival("crawlee", "Crawlee for Python", "with_crawlee.py", "crawlee"),
        Subject("ruia", "ruia", "with_ruia.py", environment="ruia"),
    ]
