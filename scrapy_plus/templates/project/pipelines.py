from scrapy_plus import DropItem


class RequireAuthor:
    """Quotes without an author go no further; the items of other spiders pass."""

    def process_item(self, item, spider):
        if spider.name == "quotes" and not item["author"]:
            raise DropItem("no author")
        return item
