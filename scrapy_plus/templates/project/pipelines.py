from scrapy_plus import DropItem


class RequireAuthor:
    """Items without an author go no further."""

    def process_item(self, item, spider):
        if not item.get("author"):
            raise DropItem("no author")
        return item
