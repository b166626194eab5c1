from scrapy_plus import Spider


class QuotesSpider(Spider):
    """Crawls the pages in the folder site; `demo_site.py` answers for them."""

    name = "quotes"
    start_urls = ["http://demo.test/"]

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {"text": quote.css("span.text::text").get(), "author": quote.xpath(".//small/text()").get()}
        yield from response.follow_all(css="li.next a")
