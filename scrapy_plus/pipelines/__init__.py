"""Where items go: files, the crawl's own store in Redis."""

from scrapy_plus.pipelines.redis_items import RedisPipeline

__all__ = ["RedisPipeline"]
