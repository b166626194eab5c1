"""The settings of the policies of the web beyond plain fetching; default_settings takes them into the one list."""

from __future__ import annotations

from functools import partial

from scrapy_plus.conf.options import Option, boolean, listed, number, text

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

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Option)]
