"""The version, in one place: packaging, `scrapy-plus version` and the user agent read it here."""

__version__ = "0.1.0"
