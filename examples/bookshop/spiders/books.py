"""Categories, their pages, and the books on them."""

from scrapy_plus import Request, Spider


class BooksSpider(Spider):
    name = "books"
    shop = None  # its address, given as -a shop=http://...

    def start_requests(self):
        if not self.shop:
            raise ValueError("which shop? Run main.py, which opens one, or give an address: -a shop=http://...")
        yield Request(self.shop)

    def parse(self, response):
        """The front page: a link to each category."""
        yield from response.follow_all(css="nav a", callback=self.parse_category)

    def parse_category(self, response):
        """One page of a category: its books, and the link to the next page."""
        yield from response.follow_all(css="li.book a", callback=self.parse_book)
        yield from response.follow_all(css="a.next", callback=self.parse_category)

    def parse_book(self, response):
        """A book; and those that readers of it also bought, most of which are known already."""
        yield {
            "title": response.css("h1::text").get(),
            "category": response.css("p.category::text").get(),
            "price": response.css("p.price::text").get(),
            "stock": int(response.css("p.stock::text").re_first(r"\d+")),
            "description": " ".join(response.xpath("//div[@class='description']/p/text()").getall()).strip(),
            "url": response.url,
        }
        yield from response.follow_all(css="ul.related a", callback=self.parse_book)
