"""Items, in the module that Scrapy's projects look for them."""

from scrapy_plus.item import Item

__all__ = ["Item"]
