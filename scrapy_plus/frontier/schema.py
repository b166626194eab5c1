"""Which release a stored crawl is for, and whether it may be opened."""

from __future__ import annotations

from scrapy_plus.errors import FrontierError, UsageError

SCHEMA = "1"
LOADING = "loading "
"""What the schema begins with while a crawl is loaded from elsewhere, so that nobody else opens it."""


def check_schema(schema: str, prefix: str) -> None:
    """Raises UsageError for a crawl that is being loaded, FrontierError for one of another release."""
    if schema.startswith(LOADING):
        raise UsageError(
            f"the crawl {prefix} is being loaded from a file; wait, or if that was cut short say "
            "`scrapy-plus load` with the same file again"
        )
    if schema != SCHEMA:
        raise FrontierError(
            f"the crawl {prefix} was stored by another release (schema {schema}, not {SCHEMA}); finish it with that "
            "one, or delete its keys"
        )
