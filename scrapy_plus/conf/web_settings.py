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

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Option)]
