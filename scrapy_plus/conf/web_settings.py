"""The settings of the policies of the web beyond plain fetching; default_settings takes them into the one list."""

from __future__ import annotations

from functools import partial
from typing import Any

from scrapy_plus.conf.options import Kind, Option, boolean, choice, listed, number, path, text

_POLICIES = {"dummypolicy": "dummy", "rfc2616policy": "rfc9111", "rfc2616": "rfc9111"}


def cache_policy() -> Kind:
    """rfc9111 or dummy; Scrapy's names for them are understood."""

    def read(value: Any) -> Any:
        word = str(value).rpartition(".")[2].lower()
        return choice("rfc9111", "dummy").read(_POLICIES.get(word, word))

    return Kind("rfc9111 or dummy", read)


names = listed(text(), "a list of names")

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
