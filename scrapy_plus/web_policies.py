"""The policies of the web beyond plain fetching, made as the settings say: a part of the wiring."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_plus.conf.settings import Settings
from scrapy_plus.core.stats import Stats
from scrapy_plus.frontier.base import Frontier
from scrapy_plus.middlewares.cookies import Cookies
from scrapy_plus.middlewares.http_auth import HttpAuth
from scrapy_plus.middlewares.meta_refresh import MetaRefresh
from scrapy_plus.middlewares.proxies import Pool, Proxies
from scrapy_plus.middlewares.robots import RobotsTxt
from scrapy_plus.middlewares.shared_jars import SharedJars
from scrapy_plus.middlewares.site_paces import Manners, Rests, SitePaces
from scrapy_plus.rules.judge import backoff
from scrapy_plus.rules.scope import Scope, extensions
from scrapy_plus.rules.throttle import AutoThrottle
from scrapy_plus.stores import is_offline, pace_of
from scrapy_plus.transport.base import Transport
from scrapy_plus.transport.cached import CachedTransport


def with_cache(transport: Transport, settings: Settings, spider_name: str, stats: Stats) -> Transport:
    """The transport, behind the cache if there is to be one."""
    if not settings.HTTPCACHE_ENABLED:
        return transport
    folder = (settings.project_dir or Path.cwd()) / settings.HTTPCACHE_DIR
    name = re.sub(r"[^\w.-]", "_", spider_name)
    from scrapy_plus.transport.cache_store import CacheStore  # only who keeps pages needs SQLite

    return CachedTransport(
        transport,
        CacheStore(folder / f"{name}.sqlite"),
        policy=settings.HTTPCACHE_POLICY,
        expiration_seconds=settings.HTTPCACHE_EXPIRATION_SECS,
        ignored_codes=settings.HTTPCACHE_IGNORE_HTTP_CODES,
        is_offline=settings.HTTPCACHE_IGNORE_MISSING,
        count=stats.inc,
    )


def outer(settings: Settings) -> list[Any]:
    """Those that see an answer when the built-in policies are done with it."""
    if not (settings.REDIRECT_ENABLED and settings.METAREFRESH_ENABLED):
        return []
    return [
        MetaRefresh(
            settings.REDIRECT_MAX_TIMES,
            max_delay_seconds=settings.METAREFRESH_MAXDELAY,
            ignored_tags=settings.METAREFRESH_IGNORE_TAGS,
            priority_adjust=settings.REDIRECT_PRIORITY_ADJUST,
        )
    ]


def robots(settings: Settings, frontier: Frontier, stats: Stats) -> list[RobotsTxt]:
    """Obeys robots.txt, if that is wanted."""
    if not settings.ROBOTSTXT_OBEY:
        return []
    return [
        RobotsTxt(
            frontier,
            user_agent=settings.USER_AGENT,
            product=settings.ROBOTSTXT_USER_AGENT,
            max_retries=settings.MAX_RETRY_TIMES if settings.RETRY_ENABLED else 0,
            backoff=partial(backoff, settings.RETRY_BACKOFF_SECONDS, settings.RETRY_BACKOFF_MAX_SECONDS),
            wait_limit_seconds=settings.RETRY_AFTER_MAX_SECONDS,
            delay_limit_seconds=settings.ROBOTSTXT_MAX_DELAY,
            start_seconds=pace_of(settings).slow_seconds,
            count=stats.inc,
        )
    ]


def scope(settings: Settings, spider: Any) -> Scope:
    """The bounds of a spider's crawl, for who wants to know why a URL is not crawled."""
    domains = getattr(spider, "allowed_domains", None) or ()
    return Scope(
        (domains,) if isinstance(domains, str) else tuple(domains),
        settings.DEPTH_LIMIT,
        settings.URLLENGTH_LIMIT,
        extensions(settings.DENIED_EXTENSIONS),
    )


class Around(NamedTuple):
    """A policy in two parts: outside all the others, and next to the network."""

    outer: list[Any]
    inner: list[Any]


def site_paces(settings: Settings, frontier: Frontier) -> Around:
    """Learns from the answers of sites how slowly to ask them."""
    auto = None
    if settings.AUTOTHROTTLE_ENABLED:
        auto = AutoThrottle(
            settings.AUTOTHROTTLE_START_DELAY,
            settings.AUTOTHROTTLE_MAX_DELAY,
            settings.AUTOTHROTTLE_TARGET_CONCURRENCY,
        )
    limits = settings.SLOWDOWN_MAX_DELAY, settings.RETRY_AFTER_MAX_SECONDS
    if is_offline(settings) or (auto is None and not any(limits)):
        return Around([], [])
    paces = SitePaces(
        frontier,
        auto=auto,
        overload_max_seconds=settings.SLOWDOWN_MAX_DELAY,
        rest_max_seconds=settings.RETRY_AFTER_MAX_SECONDS,
        statuses=settings.RETRY_HTTP_CODES,
    )
    return Around([Rests(paces)], [Manners(paces)])


def inner(settings: Settings, frontier: Frontier, spider: Any) -> list[Any]:
    """Those next to the network: they hear every answer, and what they send with a request is not carried on."""
    has_store = bool(settings.ROLE or settings.SCHEDULER_PERSIST)
    is_shared = settings.COOKIES_SHARED and settings.COOKIES_ENABLED and has_store
    parts: list[Any] = [
        Cookies(
            settings.COOKIES_ENABLED,
            jars=SharedJars(frontier) if is_shared else None,
            debug=settings.COOKIES_DEBUG,
        )
    ]
    # Inside Cookies, which gives the callback the request without what these two put on it.
    auth = HttpAuth.of(spider, settings.HTTP_USER, settings.HTTP_PASS, settings.HTTP_AUTH_DOMAIN)
    if auth is not None:
        parts.append(auth)
    proxies = [*([settings.PROXY] if settings.PROXY else []), *settings.PROXIES]
    if proxies:
        rests = {"rest_seconds": settings.PROXY_REST_SECONDS, "rest_limit_seconds": settings.PROXY_REST_MAX_SECONDS}
        parts.append(Proxies(Pool(proxies, **rests)))
    return parts
