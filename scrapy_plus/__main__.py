"""`python -m scrapy_plus` is `scrapy-plus`."""

from __future__ import annotations

from scrapy_plus.cli import main

main(prog_name="scrapy-plus")
