"""From settings to a running engine: the only place that reads settings; everything it builds takes plain arguments."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy_plus import web_policies
from scrapy_plus.conf.settings import Settings, load_settings
from scrapy_plus.core.committer import Committer
from scrapy_plus.core.crawl import Crawl
from scrapy_plus.core.downloader import Downloader
from scrapy_plus.core.engine import Engine, Observer
from scrapy_plus.core.limits import Limits
from scrapy_plus.core.pipeline import PipelineChain
from scrapy_plus.core.scheduler import Scheduler
from scrapy_plus.core.spider import Spider
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import SettingsError, UsageError
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.http.codec import decode
from scrapy_plus.http.request import Request
from scrapy_plus.item_places import Files, item_places
from scrapy_plus.middlewares import downloader_middlewares, spider_middlewares
from scrapy_plus.middlewares.chain import DownloaderChain, SpiderChain
from scrapy_plus.middlewares.compression import ACCEPTED
from scrapy_plus.rules.fingerprint import fingerprint
from scrapy_plus.stores import MemoryStore, begin, concurrency_of, open_store, own_pace
from scrapy_plus.transport.base import Transport, curl_is_missing

if TYPE_CHECKING:
    from scrapy_plus.redis_store import RedisStore

log = logging.getLogger("scrapy_plus.wiring")


def build_engine(settings: Settings, **arguments: Any) -> Engine:
    """An engine as `engine_arguments` describes it."""
    return Engine(**engine_arguments(settings, **arguments))


def engine_arguments(
    settings: Settings,
    *,
    names: Sequence[str] | None = None,
    arguments: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
    make_transport: Callable[[Settings], Transport] | None = None,
) -> dict[str, Any]:
    """What makes an engine for the project's spiders, or those of `names`, each made with `arguments`.

    Raises SettingsError naming what cannot be imported or built, UsageError for an unknown spider.
    """
    chosen = _chosen_spiders(settings, names)
    stores: list[MemoryStore | RedisStore] = []

    def make_crawls() -> list[Crawl]:
        files = Files()
        stores.append(open_store(settings))
        spiders = [make_spider(spider, arguments or {}) for spider in chosen]
        return [
            build_crawl(spider, own, make_transport or build_transport, files, stores[-1])
            for spider, own in zip(spiders, settings.for_spiders(spiders), strict=True)
        ]

    return {
        "make_crawls": make_crawls,
        "concurrency": concurrency_of(settings),
        "shutdown_seconds": settings.SHUTDOWN_SECONDS,
        "observers": observers,
        "on_closed": lambda: stores.pop().close(),
    }


def _chosen_spiders(settings: Settings, names: Sequence[str] | None) -> list[type[Spider]]:
    classes = spider_classes(settings)
    if not classes:
        raise SettingsError('SPIDERS is empty; list your spiders, as in SPIDERS = ["spiders.quotes.QuotesSpider"]')
    unknown = [name for name in names or () if name not in classes]
    if unknown:
        raise UsageError(f"no spider {unknown[0]!r}; there are: {', '.join(sorted(classes))} (SPIDERS)")
    return [classes[name] for name in names or classes]


# -- spiders ----------------------------------------------------------------------------------------------------------


def spider_classes(settings: Settings) -> dict[str, type[Spider]]:
    """The project's spiders by name. Raises SettingsError for each entry of SPIDERS that is none, all at once."""
    classes: dict[str, type[Spider]] = {}
    problems: list[str] = []
    for entry in settings.SPIDERS:
        try:
            spider = _import(entry, "SPIDERS")
            name = spider.name if isinstance(spider, type) and issubclass(spider, Spider) else None
            if not name:
                raise SettingsError(f"SPIDERS: {entry!r} is no Spider class with a name")
            if name in classes:
                raise SettingsError(f"SPIDERS: two spiders are called {name!r}; names must differ")
            classes[name] = spider
        except SettingsError as error:
            problems.extend(error.problems)
    if problems:
        raise SettingsError(*problems)
    return classes


def make_spider(spider: type[Spider] | Spider, arguments: Mapping[str, str]) -> Spider:
    """An instance made with the arguments of the command line (-a)."""
    if isinstance(spider, Spider):
        return spider
    try:
        return spider(**arguments)
    except TypeError as error:
        raise UsageError(f"spider {spider.name!r} does not take these arguments: {error}") from None


def _import(entry: Any, setting: str) -> Any:
    """What a dotted name stands for. Raises SettingsError saying which part of it is not there."""
    if not isinstance(entry, str):
        return entry
    module_name, _, name = entry.rpartition(".")
    if not module_name:
        raise SettingsError(f"{setting}: {entry!r} is no dotted name like 'package.module.Class'")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise SettingsError(f"{setting}: there is no module {error.name!r} (for {entry!r})") from None
        raise SettingsError(f"{setting}: {entry!r} imports {error.name!r}, which is not installed") from error
    if not hasattr(module, name):
        raise SettingsError(f"{setting}: the module {module_name!r} has no {name!r}")
    return getattr(module, name)


# -- one crawl --------------------------------------------------------------------------------------------------------


def build_crawl(
    spider: Spider,
    settings: Settings,
    make_transport: Callable[[Settings], Transport],
    files: Files,
    store: MemoryStore | RedisStore,
) -> Crawl:
    """Everything one spider needs, from the settings as it sees them; spiders share `files` and `store`."""
    stats = Stats()
    spider.settings = settings
    spider.stats = stats
    frontier = store.frontier(str(spider.name), settings)
    feed = store.feed(spider, settings)
    begin(frontier, settings, has_feed=feed is not None)
    committer = store.committer(frontier, settings)
    scheduler = build_scheduler(str(spider.name), settings, committer, stats)
    paces = web_policies.site_paces(settings, frontier)
    robots = web_policies.robots(settings, frontier, stats)
    built_in = [*paces.outer, *robots, *_downloader_defaults(settings, frontier, spider), *paces.inner]
    policies = [*_parts(settings, "DOWNLOADER_MIDDLEWARES"), *built_in]
    downloader = Downloader(
        web_policies.with_cache(make_transport(settings), settings, str(spider.name), stats),
        DownloaderChain(policies, spider),
        timeout_seconds=settings.DOWNLOAD_TIMEOUT,
        max_bytes=settings.DOWNLOAD_MAXSIZE,
        fail_on_dataloss=settings.DOWNLOAD_FAIL_ON_DATALOSS,
        block_private=settings.BLOCK_PRIVATE,
        stats=stats,
    )
    pipelines, exporters = item_places(_parts(settings, "PIPELINES"), spider, settings, files, store, frontier)
    crawl = Crawl(
        spider,
        scheduler,
        downloader,
        PipelineChain(pipelines, spider, stats),
        SpiderChain([*_spider_defaults(settings), *_parts(settings, "SPIDER_MIDDLEWARES")], spider),
        stats,
        limits=_limits(settings),
        max_retries=settings.MAX_RETRY_TIMES if settings.RETRY_ENABLED else 0,
        backoff_seconds=settings.RETRY_BACKOFF_SECONDS,
        backoff_limit_seconds=settings.RETRY_BACKOFF_MAX_SECONDS,
        seeds_ahead=settings.START_REQUESTS_BUFFER,
        seeds=settings.ROLE != "slave" or feed is not None,
        feed=feed,
        depth_priority=settings.DEPTH_PRIORITY,
        attendants=[*store.attendants(str(spider.name), frontier, committer, settings), *exporters],
    )
    for policy in robots:
        policy.fetch = downloader.get_response
        policy.on_open = crawl.look_again
    for exporter in exporters:
        exporter.on_stop = crawl.stop
    return crawl


def identify_by(settings: Settings) -> Callable[[Request], bytes]:
    """What gives a request its id."""
    if not settings.FINGERPRINT_HEADERS and not settings.FINGERPRINT_FRAGMENTS:
        return fingerprint
    return partial(
        fingerprint,
        include_headers=settings.FINGERPRINT_HEADERS,
        keep_fragments=settings.FINGERPRINT_FRAGMENTS,
    )


def build_scheduler(spider_name: str, settings: Settings, committer: Committer, stats: Stats) -> Scheduler:
    return Scheduler(
        committer.frontier,
        committer=committer,
        lease_seconds=settings.LEASE_SECONDS,
        spider_name=spider_name,
        dupefilter=settings.DUPEFILTER,
        log_all_duplicates=settings.DUPEFILTER_DEBUG,
        identify=identify_by(settings),
        paces={host: own_pace(settings, host) for host in settings.DOWNLOAD_SLOTS},
        stats=stats,
    )


def build_transport(settings: Settings) -> Transport:
    """The transport that TRANSPORT names. Raises SettingsError if it is libcurl's, which cannot be had here."""
    options: dict[str, Any] = {
        "verify_tls": settings.VERIFY_TLS,
        "client_certificate": settings.CLIENT_CERTIFICATE,
        "connect_timeout_seconds": settings.DOWNLOAD_CONNECT_TIMEOUT,
        "block_private": settings.BLOCK_PRIVATE,
    }
    missing = ""
    if settings.TRANSPORT != "requests" and not (missing := curl_is_missing()):
        from scrapy_plus.transport.curl import CurlTransport

        # What is in use counts too; the idle ones are those of sites that had their turn a moment ago.
        return CurlTransport(**options, max_connections=max(256, 2 * settings.CONCURRENT_REQUESTS))
    if settings.TRANSPORT == "curl":
        raise SettingsError(f"TRANSPORT = 'curl' needs libcurl: {missing}; pip install 'scrapyplus[speed]'")
    from scrapy_plus.transport.requests_session import RequestsTransport

    return RequestsTransport(**options, pool_size=settings.CONCURRENT_REQUESTS)


def _limits(settings: Settings) -> Limits:
    return Limits(
        seconds=settings.CLOSESPIDER_TIMEOUT,
        pages=settings.CLOSESPIDER_PAGECOUNT,
        items=settings.CLOSESPIDER_ITEMCOUNT,
        errors=settings.CLOSESPIDER_ERRORCOUNT,
        seconds_without_item=settings.CLOSESPIDER_TIMEOUT_NO_ITEM,
    )


# -- middlewares and pipelines -----------------------------------------------------------------------------------------


def _parts(settings: Settings, setting: str) -> list[Any]:
    """The user's middlewares or pipelines, made. Raises SettingsError for all that cannot be, at once."""
    parts = []
    problems: list[str] = []
    for entry in settings[setting]:
        try:
            parts.append(_make(_import(entry, setting), settings, f"{setting}: {entry!r}"))
        except SettingsError as error:
            problems.extend(error.problems)
    if problems:
        raise SettingsError(*problems)
    return parts


def _make(part: Any, settings: Settings, where: str) -> Any:
    """An instance of a class; Scrapy's from_crawler is not called, since there is no crawler, and that is said."""
    if not inspect.isclass(part):
        return part
    make = getattr(part, "from_settings", None)
    if make is not None:
        return make(settings)
    if hasattr(part, "from_crawler"):
        log.warning("%s: from_crawler is not called; what it reads can be had by from_settings(settings)", where)
    try:
        inspect.signature(part).bind()
    except TypeError as error:
        raise SettingsError(
            f"{where} cannot be made without arguments ({error}); give it a class method from_settings(settings)"
        ) from None
    except ValueError:  # a class that does not tell its signature
        pass
    return part()


def _downloader_defaults(settings: Settings, frontier: Frontier, spider: Spider) -> list[Any]:
    """Outermost first, in the order that downloader_middlewares explains."""
    made = downloader_middlewares
    headers = settings.DEFAULT_REQUEST_HEADERS
    parts: list[Any] = [made.DefaultHeaders(headers, user_agent=settings.USER_AGENT, accept_encoding=ACCEPTED)]
    if settings.REDIRECT_ENABLED:
        parts.append(made.Redirect(settings.REDIRECT_MAX_TIMES, priority_adjust=settings.REDIRECT_PRIORITY_ADJUST))
    parts.extend(web_policies.outer(settings))  # inside Redirect, which takes leave of a chain at its end
    if settings.RETRY_ENABLED:
        parts.append(
            made.RetryStatuses(
                settings.RETRY_HTTP_CODES,
                allowed_codes=settings.HTTPERROR_ALLOWED_CODES,
                allow_all=settings.HTTPERROR_ALLOW_ALL,
                max_retries=settings.MAX_RETRY_TIMES,
                wait_max_seconds=settings.RETRY_AFTER_MAX_SECONDS,
            )
        )
    parts.append(made.Compression(settings.DOWNLOAD_MAXSIZE, fail_on_dataloss=settings.DOWNLOAD_FAIL_ON_DATALOSS))
    return [*parts, *web_policies.inner(settings, frontier, spider)]


def _spider_defaults(settings: Settings) -> list[Any]:
    made = spider_middlewares
    parts: list[Any] = [
        made.HttpErrors(settings.HTTPERROR_ALLOWED_CODES, allow_all=settings.HTTPERROR_ALLOW_ALL),
        made.Offsite(),
    ]
    if settings.URLLENGTH_LIMIT:
        parts.append(made.UrlLength(settings.URLLENGTH_LIMIT))
    if settings.DEPTH_LIMIT:
        parts.append(made.Depth(settings.DEPTH_LIMIT))
    if settings.DENIED_EXTENSIONS:
        parts.append(made.Extensions(settings.DENIED_EXTENSIONS))
    return parts


# -- for tests of spiders ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeadRequest:
    """A request that was given up: why, after how many tries, and the status of the last answer (0: there was none)."""

    request: Request
    reason: str
    attempts: int
    status: int


@dataclass(slots=True)
class CrawlResult:
    """How a crawl in a test went: its items in order, the requests that were made, and its end."""

    items: list[Any] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    finish_reason: str = ""
    exit_code: int = 0
    dead: list[DeadRequest] = field(default_factory=list)


class _Collector:
    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def process_item(self, item: Any, spider: Any) -> Any:
        self._items.append(item)
        return item


def crawl(spider: Spider | type[Spider], transport: Transport, **settings: Any) -> CrawlResult:
    """Runs one spider to its end, without a project and without Redis: for tests of spiders.

        pages = {"http://shop.test/": "<h1>tea</h1>"}
        result = crawl(ShopSpider(tag="x"), FakeTransport(pages), MAX_RETRY_TIMES=0)
        assert result.items == [{"title": "tea", "tag": "x"}]

    The spider is a class, or an instance if it takes arguments, which are not crawl's; `settings` go by their names.
    Raises TypeError for what is no spider or transport, SettingsError for settings.
    """
    _check_crawl(spider, transport)
    result = CrawlResult()
    made = make_spider(spider, {})
    load = partial(load_settings, None, environ={}, given_by="crawl(...)")
    pipelines = [*load(overrides=settings).PIPELINES, _Collector(result.items)]
    loaded = load(overrides={**settings, "PIPELINES": pipelines})
    engine = Engine(
        lambda: [build_crawl(made, loaded.for_spider(made), lambda _: transport, Files(), MemoryStore())],
        concurrency=loaded.CONCURRENT_REQUESTS,
        shutdown_seconds=loaded.SHUTDOWN_SECONDS,
    )
    result.exit_code = engine.start()
    snapshot = engine.snapshot().crawls[0]
    result.requests = list(getattr(transport, "requests", ()))
    result.stats = snapshot.stats
    result.finish_reason = snapshot.finish_reason or ""
    result.dead = [DeadRequest(decode(one.payload), one.reason, one.attempts, one.status) for one in snapshot.dead]
    return result


def _check_crawl(spider: Any, transport: Any) -> None:
    if not isinstance(spider, Spider) and not (isinstance(spider, type) and issubclass(spider, Spider)):
        raise TypeError(f"crawl(spider, transport): {spider!r} is no spider; give the class, or an instance of it")
    if isinstance(transport, type) or not hasattr(transport, "fetch"):
        raise TypeError(
            f"crawl(spider, transport): {transport!r} is no transport; give a FakeTransport({{url: page}}), "
            "or RequestsTransport() for the network"
        )
