"""The settings of the bookshop project; `scrapy-plus settings` prints all there are, with their meaning."""

PROJECT_NAME = "bookshop"
SPIDERS = ["spiders.books.BooksSpider"]
PIPELINES = ["pipelines.PriceToNumber"]

CONCURRENT_REQUESTS = 16
MAX_RETRY_TIMES = 3
FEEDS = {"books.jsonl": {"overwrite": True}}
