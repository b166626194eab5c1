"""Requests, responses, and what is made of their URLs, headers and texts."""

from scrapy_plus.http.links import Link, LinkExtractor
from scrapy_plus.http.request import FormRequest, JsonRequest, Request
from scrapy_plus.http.response import Response

__all__ = ["FormRequest", "JsonRequest", "Link", "LinkExtractor", "Request", "Response"]
