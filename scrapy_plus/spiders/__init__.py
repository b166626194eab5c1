"""The kinds of spiders."""

from scrapy_plus.core.spider import Spider
from scrapy_plus.spiders.crawl import CrawlSpider, Rule
from scrapy_plus.spiders.fed import RedisCrawlSpider, RedisSpider
from scrapy_plus.spiders.sitemap import SitemapSpider

__all__ = ["CrawlSpider", "RedisCrawlSpider", "RedisSpider", "Rule", "SitemapSpider", "Spider"]
