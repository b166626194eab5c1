"""What happens to each book between the spider and the file."""

from scrapy_plus import DropItem


class PriceToNumber:
    """"£12.50" becomes 12.50; a book without a price is dropped."""

    def process_item(self, item, spider):
        if not item["price"]:
            raise DropItem(f"no price: {item['url']}")
        item["price"] = float(item["price"].lstrip("£"))
        return item
