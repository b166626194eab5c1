"""The proof that nothing is lost: a crawl of a site of our own, with everything that can break broken on purpose.

`scrapy-plus torture` runs it. All processes are started here and ended by their ids; counts and times are bounded.
"""
