"""Crawls of other frameworks, taken over: their queues are read, never changed."""
