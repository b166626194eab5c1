"""`scrapy-plus bench`: how fast this machine crawls, and what stands in the way of more."""
