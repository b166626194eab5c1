"""Names that settings have elsewhere and that do nothing here, each with what to do instead.

A name that ends in * stands for all that begin so: only where no project would have such names of its own.
"""

from __future__ import annotations

from typing import Any

_ROWS = (
    # what has another name here
    ("BOT_NAME", "use PROJECT_NAME"),
    ("SPIDER_MODULES SPIDER_LOADER_CLASS SPIDER_LOADER_WARN_ONLY", "list the spiders in SPIDERS"),
    ("NEWSPIDER_MODULE", "scrapy-plus genspider writes to the folder spiders"),
    ("ITEM_PIPELINES ITEM_PIPELINES_BASE ITEM_PROCESSOR", "use PIPELINES"),
    ("DUPEFILTER_CLASS", "use DUPEFILTER = True or False"),
    ("SCHEDULER SCHEDULER_DISK_QUEUE SCHEDULER_MEMORY_QUEUE SCHEDULER_PRIORITY_QUEUE", "use SCHEDULER_QUEUE_CLASS"),
    ("SCHEDULER_START_*", "use SCHEDULER_QUEUE_CLASS"),
    ("FEED_URI FEED_FORMAT FEED_EXPORT_ENCODING FEED_OVERWRITE", "say it for each file in FEEDS"),
    ("LOG_ENABLED", "use the option --nolog"),
    ("LOG_SHORT_NAMES LOG_FORMATTER", "use LOG_FORMAT"),
    ("LOGSTATS_INTERVAL PERIODIC_LOG_*", "use LOG_STATS_SECONDS"),
    ("DOWNLOAD_WARNSIZE", "use DOWNLOAD_MAXSIZE"),
    ("REQUEST_FINGERPRINTER_*", "use FINGERPRINT_HEADERS and FINGERPRINT_FRAGMENTS"),
    ("CONCURRENT_REQUESTS_PER_IP", "use CONCURRENT_REQUESTS_PER_DOMAIN"),
    ("SPIDER_CONTRACTS SPIDER_CONTRACTS_BASE", "test spiders with scrapy_plus.crawl and a FakeTransport"),
    # what is not there, or not yet
    ("ROBOTSTXT_PARSER", "robots.txt is read as RFC 9309 says, by protego"),
    ("AUTOTHROTTLE_DEBUG", "scrapy-plus status and the panel show how slowly each site is asked"),
    ("HTTPCACHE_STORAGE HTTPCACHE_DBM_MODULE HTTPCACHE_GZIP", "the cache is a SQLite file in HTTPCACHE_DIR"),
    ("HTTPCACHE_ALWAYS_STORE HTTPCACHE_IGNORE_RESPONSE_CACHE_CONTROLS", "HTTPCACHE_POLICY = 'dummy' keeps everything"),
    ("HTTPCACHE_IGNORE_SCHEMES", "only http and https are crawled"),
    ("HTTPPROXY_*", "use PROXY or PROXIES, or give a request its own proxy="),
    ("MEMUSAGE_* MEMDEBUG_*", "memory is not watched by this release"),
    ("JOBDIR FP_PERSIST", "use SCHEDULER_PERSIST = True: a crawl, its filter too, goes on where it was left"),
    ("SCHEDULER_IDLE_BEFORE_CLOSE", "use MAX_IDLE_TIME_BEFORE_CLOSE for a crawl with a feed"),
    ("REDIS_START_URLS_AS_SET REDIS_START_URLS_AS_ZSET", "the kind of the key is seen"),
    ("FILES_STORE FILES_EXPIRES FILES_URLS_FIELD FILES_RESULT_FIELD", "there is no pipeline for files"),
    ("IMAGES_STORE IMAGES_EXPIRES IMAGES_THUMBS IMAGES_URLS_FIELD", "there is no pipeline for images"),
    ("FEED_STORAGES FEED_EXPORTERS FEED_URI_PARAMS FEED_EXPORT_BATCH_ITEM_COUNT", "use FEEDS, or write a pipeline"),
    ("FEED_EXPORT_INDENT FEED_STORE_EMPTY FEED_TEMPDIR", "files are written as they always are"),
    ("AJAXCRAWL_ENABLED", "pages are crawled as their links name them"),
    ("REFERER_ENABLED REFERRER_POLICY", "no Referer is sent; set the header on the request"),
    ("RETRY_PRIORITY_ADJUST RETRY_EXCEPTIONS", "what may pass is retried, at the request's own priority"),
    ("STATS_CLASS STATS_DUMP STATSMAILER_RCPTS DOWNLOADER_STATS DEPTH_STATS_VERBOSE", "statistics are always kept"),
    ("LOG_STDOUT LOG_ENCODING LOG_FILE_APPEND LOG_VERSIONS", "use LOG_LEVEL, LOG_FILE, LOG_FORMAT, LOG_DATEFORMAT"),
    # what another engine has
    ("TWISTED_* ASYNCIO_EVENT_LOOP REACTOR_THREADPOOL_MAXSIZE", "the engine runs on gevent"),
    ("ASYNC_TYPE", "every crawl is asynchronous, on gevent"),
    ("DOWNLOADER DOWNLOADER_HTTPCLIENTFACTORY DOWNLOADER_CLIENTCONTEXTFACTORY", "the downloader cannot be replaced"),
    ("DOWNLOADER_CLIENT_TLS_CIPHERS DOWNLOADER_CLIENT_TLS_METHOD", "use VERIFY_TLS"),
    ("DOWNLOAD_HANDLERS DOWNLOAD_HANDLERS_BASE", "only http and https are crawled"),
    ("DNSCACHE_ENABLED DNSCACHE_SIZE DNS_RESOLVER DNS_TIMEOUT", "names are resolved by the system"),
    ("EXTENSIONS EXTENSIONS_BASE ADDONS", "write a pipeline or a middleware"),
    ("DOWNLOADER_MIDDLEWARES_BASE SPIDER_MIDDLEWARES_BASE", "the built-in middlewares have switches of their own"),
    ("CONCURRENT_ITEMS", "the items of a page go through the pipelines one after the other"),
    ("COMPRESSION_ENABLED", "compressed answers are always inflated"),
    ("TELNETCONSOLE_*", "there is no telnet console"),
    ("COMMANDS_MODULE EDITOR TEMPLATES_DIR", "the command line cannot be extended"),
)
NO_EFFECT = {name: advice for names, advice in _ROWS for name in names.split()}
_ALREADY_SO = {("FEED_EXPORT_ENCODING", "utf-8"), ("FEED_EXPORT_ENCODING", "utf8"), ("ASYNC_TYPE", "coroutine")}
_ALREADY_SO |= {(name, "true") for name in ("COMPRESSION_ENABLED", "LOG_ENABLED", "STATS_DUMP", "DOWNLOADER_STATS")}


def no_effect(name: str) -> str | None:
    """What to do instead of a setting of another framework, or None if the name is not one of theirs."""
    if name in NO_EFFECT:
        return NO_EFFECT[name]
    return next((advice for stem, advice in NO_EFFECT.items() if stem[-1] == "*" and name.startswith(stem[:-1])), None)


def is_harmless(name: str, value: Any) -> bool:
    """Whether nothing is missed: the value is what is the case anyway, or switches off what is not there."""
    word = str(value).strip().lower()
    if any(known == name for known, _ in _ALREADY_SO):
        return (name, word) in _ALREADY_SO
    return word in ("", "false", "none", "0", "[]", "{}", "()")
