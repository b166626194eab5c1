"""Crawls a small bookshop: python main.py [options]. Leaves the books in books.jsonl, in the current folder.

A main.py of your own needs only the two lines about `run`; this one opens the shop first, in the same process, so that
there is something to crawl without asking anybody's server.
"""

import sys

from scrapy_plus import run  # first: it makes the standard library cooperative

from shop import open_shop

if __name__ == "__main__":
    run([*sys.argv[1:], "-a", f"shop={open_shop()}"])
