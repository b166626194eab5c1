"""Every setting, declared once: its default, its sentence, its check, its unit.

The command line, `scrapy-plus settings`, docs/settings.md and the checks are all read from this list. A project sets a
plain name in its settings.py; `from scrapy_plus.conf.default_settings import *` there is allowed and changes nothing.
"""

from __future__ import annotations

from functools import partial

from scrapy_plus.conf.options import (
    Option,
    boolean,
    choice,
    components,
    feed,
    fields,
    headers,
    level,
    listed,
    log_format,
    mapped,
    number,
    optional,
    path,
    queue_order,
    slot,
    text,
)
from scrapy_plus.conf.redis_settings import *  # noqa: F403
from scrapy_plus.conf.redis_settings import __all__ as _of_redis
from scrapy_plus.conf.web_settings import *  # noqa: F403
from scrapy_plus.conf.web_settings import __all__ as _of_the_web
from scrapy_plus.version import __version__

count = number(0, whole=True)
seconds = number(0)
status_codes = listed(number(100, 599, whole=True), "a list of HTTP status codes")
names = listed(text(), "a list of names")

# -- what runs ---------------------------------------------------------------------------------------------------------

project = partial(Option, group="Project")

SPIDERS = project(
    [],
    'The spiders of the project: classes, or dotted names such as "spiders.quotes.QuotesSpider".',
    components(),
    one_spider=False,
)
PIPELINES = project(
    [],
    "What every item goes through, in this order.",
    components(),
)
SPIDER_MIDDLEWARES = project(
    [],
    "Your middlewares around the spiders: they see requests and items that come out, and responses that go in.",
    components(),
    aliases=("SPIDERS_MIDDLEWARES", "SPIDER_MIDDLEWARE"),
)
DOWNLOADER_MIDDLEWARES = project(
    [],
    "Your middlewares around the downloader, outside the built-in ones; requests in this order, answers in reverse.",
    components(),
    aliases=("DOWN_MIDDLEWARES", "DOWNLOADER_MIDDLEWARE", "DOWNLOADER_MIDDLERWARE"),
)
PROJECT_NAME = project(
    None,
    "Names the crawl wherever it is stored; None is the name of the project's folder.",
    optional(text()),
    one_spider=False,
)
JOB = project(
    "",
    "Tells crawls of the same spider apart where they are stored.",
    text(),
    one_spider=False,
)
ROLE = project(
    None,
    "The part of this process in a crawl by many: None crawls alone; master seeds; slave crawls.",
    optional(choice("master", "slave")),
    one_spider=False,
)
WORKERS = project(
    0,
    "How many worker processes this one starts and watches; it crawls by itself only with 0. They need a role.",
    number(0, 1000, whole=True),
    one_spider=False,
)
SCHEDULER_PERSIST = project(
    False,
    "Whether requests are kept outside the process, so that a crawl can be resumed and shared. With a ROLE they always "
    "are; False then means that the last process of a finished crawl takes them away, but for items and dead letters.",
    boolean(),
    aliases=("SCHEDULE_PERSIST", "SCHEDULER_PRESIST", "IS_DISTRIBUTE"),
    one_spider=False,
)

# -- how fast, how polite ----------------------------------------------------------------------------------------------

pace = partial(Option, group="Pace")

CONCURRENT_REQUESTS = pace(
    16,
    "How many requests the process works on at the same time, shared by its spiders.",
    number(1, 10_000, whole=True),
    aliases=(
        "CONCURRENT_REQUEST",
        "ASYNC_COUNT",
        "MAX_ASYNC_NUMBER",
        "MAX_ASYNC_THREAD_NUMBER",
        "ASYNC_MAX_COUNT",
        "COCOURRENT_REQUEST",
        "CONCOURRENT_REQUEST",
    ),
    one_spider=False,
)
CONCURRENT_REQUESTS_PER_DOMAIN = pace(
    0,
    "How many requests may be under way to one site (scheme, host and port); 0 is no limit.",
    count,
)
DOWNLOAD_DELAY = pace(
    0.0,
    "The time between two requests to the same site.",
    seconds,
    unit="s",
)
RANDOMIZE_DOWNLOAD_DELAY = pace(
    False,
    "Whether each delay is 0.5 to 1.5 times DOWNLOAD_DELAY, drawn anew.",
    boolean(),
)
DOWNLOAD_SLOTS = pace(
    {},
    'Sites with a pace of their own: {"example.com": {"delay": 2, "concurrency": 1}}.',
    mapped('a dict such as {"example.com": {"delay": 2, "concurrency": 1}}', slot),
)

# -- the network -------------------------------------------------------------------------------------------------------

download = partial(Option, group="Download")

DOWNLOAD_TIMEOUT = download(
    60.0,
    "How long one request may take in all, from the connection to the last byte of its answer.",
    number(0.001, 86_400),
    unit="s",
)
DOWNLOAD_CONNECT_TIMEOUT = download(
    None,
    "How long a connection may take to be made, within DOWNLOAD_TIMEOUT; None is no limit of its own.",
    optional(number(0.001, 86_400)),
    unit="s",
)
DOWNLOAD_MAXSIZE = download(
    64 << 20,
    "The largest body that is accepted, as it comes and once it is inflated; 0 is no limit.",
    count,
    unit="bytes",
)
DOWNLOAD_FAIL_ON_DATALOSS = download(
    True,
    'Whether a body that ends too early is a failure; else it is used, with "dataloss" in response.flags.',
    boolean(),
)
TRANSPORT = download(
    "auto",
    "What pages are fetched with: curl, which is libcurl and the fastest (pip install scrapyplus[speed]), requests, or "
    "auto, curl where it is installed.",
    choice("auto", "curl", "requests"),
)
VERIFY_TLS = download(
    True,
    "Whether the certificates of https sites are checked.",
    boolean(),
)
CLIENT_CERTIFICATE = download(
    None,
    "A PEM file with the certificate, and its key, that https sites are shown if they ask for one.",
    optional(path()),
)
BLOCK_PRIVATE = download(
    "redirect",
    "Which requests are kept from private, loopback and link-local addresses: redirect, those that a public page "
    "led to by a redirect or a link; always, all; off, none.",
    choice("redirect", "always", "off"),
)
USER_AGENT = download(
    f"scrapyplus/{__version__} (+https://pypi.org/project/scrapyplus)",
    "The name that the crawler gives itself; say who you are and how to reach you.",
    text(),
)
DEFAULT_REQUEST_HEADERS = download(
    {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Language": "en"},
    "Headers of every request that does not have its own.",
    headers(),
)
COOKIES_ENABLED = download(
    True,
    "Whether cookies are kept and sent back.",
    boolean(),
)
REDIRECT_ENABLED = download(
    True,
    "Whether redirects are followed.",
    boolean(),
)
REDIRECT_MAX_TIMES = download(
    20,
    "How many redirects in a row are followed before the request is given up.",
    count,
)
REDIRECT_PRIORITY_ADJUST = download(
    2,
    "Added to the priority of a request that was redirected.",
    number(-1000, 1000, whole=True),
)

# -- trying again ------------------------------------------------------------------------------------------------------

retry = partial(Option, group="Retry")

RETRY_ENABLED = retry(
    True,
    "Whether requests that failed for a reason that may pass are tried again.",
    boolean(),
)
MAX_RETRY_TIMES = retry(
    3,
    "How often a request is tried again after its first try, before it becomes a dead letter.",
    count,
    aliases=("RETRY_TIMES", "MAX_RETRY_TIME"),
)
RETRY_HTTP_CODES = retry(
    [500, 502, 503, 504, 522, 524, 408, 429],
    "Statuses that say: try again later.",
    status_codes,
)
RETRY_BACKOFF_SECONDS = retry(
    0.5,
    "The wait before the first retry; it doubles with each one.",
    seconds,
    unit="s",
)
RETRY_BACKOFF_MAX_SECONDS = retry(
    60.0,
    "The longest wait before a retry.",
    seconds,
    unit="s",
)

# -- what the spider gets to see ---------------------------------------------------------------------------------------

spider = partial(Option, group="Spider")

HTTPERROR_ALLOWED_CODES = spider(
    [],
    "Statuses other than 2xx whose answers are given to the spider.",
    status_codes,
)
HTTPERROR_ALLOW_ALL = spider(
    False,
    "Whether every answer is given to the spider, whatever its status.",
    boolean(),
)
DEPTH_LIMIT = spider(
    0,
    "How many links deep the crawl goes from its start URLs; 0 is no limit.",
    count,
)
URLLENGTH_LIMIT = spider(
    2083,
    "Longer URLs are dropped, since traps for crawlers make them; 0 is no limit.",
    count,
    unit="characters",
)
CALLBACK_SECONDS = spider(
    300,
    "How long a callback may compute before its process is taken for stuck, in a crawl that several share.",
    number(1),
    unit="s",
)

# -- which requests, in which order ------------------------------------------------------------------------------------

requests = partial(Option, group="Requests")

SCHEDULER_QUEUE_CLASS = requests(
    "priority",
    "The order of requests: priority (high first, then arrival), fifo (first in, first out) or lifo (last in first).",
    queue_order(),
)
DUPEFILTER = requests(
    True,
    "Whether a request that was seen before is dropped.",
    boolean(),
)
DUPEFILTER_DEBUG = requests(
    False,
    "Whether every dropped request is logged.",
    boolean(),
)
FINGERPRINT_HEADERS = requests(
    [],
    "Headers that tell requests apart, beside method, URL and body.",
    names,
)
FINGERPRINT_FRAGMENTS = requests(
    False,
    "Whether URLs that differ behind the # only are different pages.",
    boolean(),
)
START_REQUESTS_BUFFER = requests(
    1000,
    "How many requests may wait before no more start requests are taken from the spider.",
    number(1, whole=True),
)
LEASE_SECONDS = requests(
    10,
    "How long a process that has gone silent keeps its requests, in a crawl that several share.",
    number(1, 3600),
    unit="s",
)
MAX_LOST = requests(
    3,
    "How many processes may die over one request before it becomes a dead letter.",
    number(1, whole=True),
)

# -- when it ends ------------------------------------------------------------------------------------------------------

end = partial(Option, group="End")

CLOSESPIDER_TIMEOUT = end(
    0,
    "Ends the crawl after this time; 0 is never.",
    seconds,
    unit="s",
)
CLOSESPIDER_TIMEOUT_NO_ITEM = end(
    0,
    "Ends the crawl when no item came for this long; 0 is never.",
    seconds,
    unit="s",
)
CLOSESPIDER_ITEMCOUNT = end(
    0,
    "Ends the crawl after this many items; 0 is never.",
    count,
)
CLOSESPIDER_PAGECOUNT = end(
    0,
    "Ends the crawl after this many answers; 0 is never.",
    count,
)
CLOSESPIDER_ERRORCOUNT = end(
    0,
    "Ends the crawl after this many errors; 0 is never.",
    count,
)
SHUTDOWN_SECONDS = end(
    30,
    "How long the pages in flight may take to finish after the crawl was told to stop.",
    seconds,
    unit="s",
    one_spider=False,
)

# -- where items go ----------------------------------------------------------------------------------------------------

items = partial(Option, group="Items")

FEEDS = items(
    {},
    'Files the items are written to: {"books.jsonl": {"format": "jsonl"}}; also fields, overwrite, encoding.',
    mapped('a dict such as {"books.jsonl": {"format": "jsonl"}}', feed),
)
FEED_EXPORT_FIELDS = items(
    None,
    "The fields that are written, in this order; None is all of them.",
    fields(),
)
CSV_SAFE = items(
    True,
    "Whether texts that a spreadsheet would run as a formula are made harmless in CSV.",
    boolean(),
)

# -- what is said ------------------------------------------------------------------------------------------------------

log = partial(Option, group="Log", one_spider=False)

LOG_LEVEL = log(
    "INFO",
    "The least important level that is logged.",
    level(),
    aliases=("DEFAULT_LOG_LEVEL",),
)
LOG_FILE = log(
    None,
    "A file that gets the log; None is standard error.",
    optional(path()),
    aliases=("DEFAULT_LOG_FILENAME",),
)
LOG_FORMAT = log(
    "%(asctime)s [%(name)s] %(levelname)s: %(message)s",
    "How a line of the log looks, in the words of Python's logging.",
    log_format(),
    aliases=("DEFAULT_LOG_FMT",),
)
LOG_DATEFORMAT = log(
    "%Y-%m-%d %H:%M:%S",
    "How its time looks, in the words of strftime.",
    text(),
    aliases=("DEFUALT_LOG_DATEFMT", "DEFAULT_LOG_DATEFMT"),
)
LOG_STATS_SECONDS = log(
    10.0,
    "How often a line of figures is logged where there is no live panel; 0 is never.",
    seconds,
    unit="s",
)
PANEL = log(
    True,
    "Whether a terminal shows a live panel.",
    boolean(),
)

# What a project's `import *` gets: the names of settings, nothing that would hide a module of its own.
__all__ = [name for name, value in list(globals().items()) if isinstance(value, Option)]
__all__.sort(key=lambda name: 2 if name in _of_redis else int(name in _of_the_web))
