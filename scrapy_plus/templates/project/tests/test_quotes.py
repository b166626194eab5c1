from scrapy_plus import FakeTransport, crawl
from spiders.quotes import QuotesSpider

FIRST = """
<div class="quote"><span class="text">Know thyself.</span> <small>Thales</small></div>
<li class="next"><a href="/second">Next</a></li>
"""
SECOND = '<div class="quote"><span class="text">Nothing in excess.</span> <small>Solon</small></div>'


def test_quotes_of_all_pages_are_found():
    result = crawl(QuotesSpider, FakeTransport({"http://demo.test/": FIRST, "http://demo.test/second": SECOND}))
    assert result.items == [
        {"text": "Know thyself.", "author": "Thales"},
        {"text": "Nothing in excess.", "author": "Solon"},
    ]
    assert result.exit_code == 0
