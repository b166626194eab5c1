"""Item: what it holds, read like a dict where it is one."""

from __future__ import annotations

import pytest

from scrapy_plus import CrawlSpider, FakeTransport, Item, crawl
from scrapy_plus.item import as_dict


def test_an_item_around_a_mapping_is_read_like_a_dict():
    item = Item({"a": 1, "b": 2})
    item["c"] = 3
    assert "a" in item and "d" not in item
    assert (item["a"], item.get("d"), item.get("d", 0)) == (1, None, 0)
    assert list(item) == list(item.keys()) == ["a", "b", "c"]
    assert list(item.values()) == [1, 2, 3] and ("c", 3) in item.items()
    assert len(item) == 3
    assert dict(item) == {**item} == as_dict(item) == {"a": 1, "b": 2, "c": 3}


def test_an_item_made_of_fields_holds_a_dict():
    assert Item(a=1).data == Item({"a": 1}).data == {"a": 1}
    assert Item({"a": 1}, b=2) == Item({"a": 1, "b": 2})


@pytest.mark.parametrize("held", ["text", b"bytes", ["a", "list"], None, 7])
@pytest.mark.parametrize("ask", [
    lambda item: "a" in item, list, dict, len, lambda item: item.get("a"),
    lambda item: item.keys(), lambda item: item.values(), lambda item: item.items(),
])  # fmt: skip
def test_an_item_around_anything_else_says_what_it_holds_and_how_to_read_it(held, ask):
    with pytest.raises(TypeError, match=f"holds a {type(held).__name__}, .*item.data"):
        ask(Item(held))


def test_an_item_is_true_unless_it_is_an_empty_mapping():
    assert Item("text") and Item("") and Item(None) and Item({"a": 1})
    assert not Item({})


def test_an_item_that_a_rule_gives_alone_is_one_item_and_not_its_fields():
    class One(CrawlSpider):
        name = "one"
        start_urls = ("http://shop.test/",)

        def parse_start_url(self, response):
            return Item({"a": 1, "b": 2})

    assert crawl(One, FakeTransport({"http://shop.test/": "tea"})).items == [Item({"a": 1, "b": 2})]
