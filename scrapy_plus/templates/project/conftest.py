"""Its place tells pytest where the project is; the framework comes first, since it patches the standard library."""

import scrapy_plus  # noqa: F401
