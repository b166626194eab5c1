"""The settings of the policies of the web beyond plain fetching; default_settings takes them into the one list."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlsplit

from scrapy_plus.conf.options import Kind, Option, Unfit, boolean, choice, listed, number, optional, path, text
from scrapy_plus.conf.redis_address import Secret, secret

_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_POLICIES = {"dummypolicy": "dummy", "rfc2616policy": "rfc9111", "rfc2616": "rfc9111"}


def cache_policy() -> Kind:
    """rfc9111 or dummy; Scrapy's names for them are understood."""

    def read(value: Any) -> Any:
        word = str(value).rpartition(".")[2].lower()
        return choice("rfc9111", "dummy").read(_POLICIES.get(word, word))

    return Kind("rfc9111 or dummy", read)


def proxy_url() -> Kind:
    """The URL of a proxy, whose password is never shown."""

    def read(value: Any) -> Secret:
        try:
            parts = urlsplit(value if "://" in value else f"http://{value}")
            if parts.scheme.lower() in _PROXY_SCHEMES and parts.hostname and parts.port != 0:
                return Secret(value)
        except (ValueError, TypeError, AttributeError):
            pass
        raise Unfit("must be the URL of a proxy, as in http://user:password@host:8080 (its value is not shown)")

    return Kind("the URL of a proxy", read)


names = listed(text(), "a list of names")

# -- robots.txt --------------------------------------------------------------------------------------------------------

robots = partial(Option, group="robots.txt")

ROBOTSTXT_OBEY = robots(
    False,
    "Whether the robots.txt of a site is asked for first and obeyed, its Crawl-delay too; True in new projects.",
    boolean(),
)
ROBOTSTXT_USER_AGENT = robots(
    None,
    "The product token that robots.txt calls this crawler by; None is the first word of USER_AGENT.",
    optional(text()),
)
ROBOTSTXT_MAX_DELAY = robots(
    60,
    "A longer Crawl-delay is cut to this: such are mistakes more often than wishes.",
    number(0),
    unit="s",
)

# -- the pace that sites ask for ---------------------------------------------------------------------------------------

manners = partial(Option, group="Manners")

RETRY_AFTER_MAX_SECONDS = manners(
    600,
    "A site that answers with a status of RETRY_HTTP_CODES and Retry-After is left alone for so long by all processes "
    "of the crawl, at most for this; 0 does not heed it.",
    number(0),
    unit="s",
)
SLOWDOWN_MAX_DELAY = manners(
    60,
    "A site that answers 429, or 503 more than now and then, is asked more slowly each time, up to this between two "
    "requests, and faster again with each good answer; 0 does not slow down.",
    number(0),
    unit="s",
)
AUTOTHROTTLE_ENABLED = manners(
    False,
    "Whether each site is asked as slowly as its latency demands; DOWNLOAD_DELAY is the least delay then.",
    boolean(),
)
AUTOTHROTTLE_START_DELAY = manners(
    5,
    "The delay between two requests to a site whose latency is unknown.",
    number(0),
    unit="s",
)
AUTOTHROTTLE_MAX_DELAY = manners(
    60,
    "The longest delay that latency leads to.",
    number(0),
    unit="s",
)
AUTOTHROTTLE_TARGET_CONCURRENCY = manners(
    1,
    "About how many requests are to be under way to a site, over all processes of the crawl.",
    number(0.01),
)

# -- where the crawl goes ----------------------------------------------------------------------------------------------

scope = partial(Option, group="Scope")

DEPTH_PRIORITY = scope(
    0,
    "Taken from the priority of a request for each link that lies between it and the start: with 1 pages near the "
    "start come first, with -1 those far from it.",
    number(-1000, 1000, whole=True),
)
DENIED_EXTENSIONS = scope(
    [],
    'Endings of files that no link or redirect is followed to: ["pdf", "zip"]. LinkExtractor has its own list.',
    names,
)

# -- redirects in pages ------------------------------------------------------------------------------------------------

redirects = partial(Option, group="Redirects in pages")

METAREFRESH_ENABLED = redirects(
    True,
    'Whether a page that sends its readers on by <meta http-equiv="refresh"> is a redirect.',
    boolean(),
)
METAREFRESH_MAXDELAY = redirects(
    100,
    "The longest delay of such a page with which it still is one.",
    number(0),
    unit="s",
)
METAREFRESH_IGNORE_TAGS = redirects(
    ["noscript"],
    "Elements within which it is not looked for; comments and scripts never count.",
    names,
)

# -- cookies -----------------------------------------------------------------------------------------------------------

cookies = partial(Option, group="Cookies")

COOKIES_SHARED = cookies(
    False,
    "Whether the processes of a crawl in Redis share their cookies, which then last as long as the crawl does. It "
    "costs a call to Redis for every request.",
    boolean(),
)
COOKIES_DEBUG = cookies(
    False,
    "Whether all cookies that are sent and set are logged, with their values.",
    boolean(),
)

# -- who asks, and by which way ----------------------------------------------------------------------------------------

identity = partial(Option, group="Identity")

PROXY = identity(
    None,
    "The proxy that requests go through which do not name their own: http://user:password@host:port, https, socks5 or "
    "socks4.",
    optional(proxy_url()),
)
PROXIES = identity(
    [],
    "Several such proxies, taken in turn. One that fails rests, longer each time; when all rest, the first to be up is "
    "taken.",
    listed(proxy_url(), "a list of URLs of proxies"),
)
PROXY_REST_SECONDS = identity(
    5, "How long a proxy rests after its first failure; twice as long with each one more.", number(0), unit="s"
)
PROXY_REST_MAX_SECONDS = identity(600, "The longest rest of a proxy.", number(0), unit="s")
HTTP_USER = identity(
    None,
    "The user name of HTTP authentication, sent to HTTP_AUTH_DOMAIN alone; a spider may have http_user, http_pass and "
    "http_auth_domain instead.",
    optional(text()),
)
HTTP_PASS = identity(None, "Its password.", optional(secret()))
HTTP_AUTH_DOMAIN = identity(None, "The domain, subdomains included, that the two are for.", optional(text()))

# -- the cache ---------------------------------------------------------------------------------------------------------

cache = partial(Option, group="HTTP cache")

HTTPCACHE_ENABLED = cache(False, "Whether answers are kept in files, and given again without the network.", boolean())
HTTPCACHE_POLICY = cache(
    "dummy",
    "When a kept answer is given: dummy, always, to work on a spider without its site; rfc9111, as long as its server "
    "allows, and then again if that says so when asked with ETag and Last-Modified.",
    cache_policy(),
)
HTTPCACHE_DIR = cache(
    "httpcache",
    "The folder of the cache, a file for each spider; a relative one is in the project's.",
    path(),
)
HTTPCACHE_EXPIRATION_SECS = cache(0, "For how long an answer is kept; 0 is for ever.", number(0), unit="s")
HTTPCACHE_IGNORE_HTTP_CODES = cache(
    [],
    "Statuses whose answers are not kept.",
    listed(number(100, 599, whole=True), "a list of HTTP status codes"),
)
HTTPCACHE_IGNORE_MISSING = cache(
    False,
    "Whether only the cache is asked, never the network, and what it does not have is given up.",
    boolean(),
)

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Option)]
