from __future__ import annotations

import pytest

from scrapy_plus.core.pipeline import Pipeline, PipelineChain
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import DropItem, UsageError


class Shop:
    name = "shop"


class Mark(Pipeline):
    def __init__(self, word: str, diary: list[str] | None = None) -> None:
        self.word = word
        self.diary = [] if diary is None else diary

    def open_spider(self, spider):
        self.diary.append(f"open {self.word} {spider.name}")

    def process_item(self, item, spider):
        return {**item, "marks": [*item.get("marks", []), self.word]}

    def flush(self):
        self.diary.append(f"flush {self.word}")

    def close_spider(self, spider):
        self.diary.append(f"close {self.word}")


class Keep:
    place = "the shelf"

    def __init__(self):
        self.pages: list[list] = []

    def store(self, items, spider):
        self.pages.append(items)


def chain(*pipelines):
    stats = Stats()
    return PipelineChain(pipelines, Shop(), stats), stats


def test_items_pass_the_pipelines_in_the_order_of_the_list():
    pipelines, stats = chain(Mark("a"), Mark("b"))
    assert pipelines.process([{"title": "tea"}]).items == [{"title": "tea", "marks": ["a", "b"]}]
    assert stats.get("item_scraped_count") == 1


def test_an_item_that_is_dropped_goes_no_further_and_is_counted_with_its_reason():
    class TooDear(DropItem):
        pass

    class Cheap:
        def process_item(self, item, spider):
            if item["price"] > 5:
                raise TooDear("no")
            return item

    last = Mark("last")
    pipelines, stats = chain(Cheap(), last)
    assert [item["price"] for item in pipelines.process([{"price": 9}, {"price": 1}]).items] == [1]
    assert stats.get("item_scraped_count") == 1
    assert stats.get("item_dropped_count") == 1
    assert stats.get("item_dropped_reasons_count/TooDear") == 1


def test_the_messages_of_drops_are_counted_but_only_so_many_different_ones():
    class Drops:
        def process_item(self, item, spider):
            raise DropItem(*item)

    pipelines, stats = chain(Drops())
    pipelines.process([["no author"], ["no author"], [], ["long " * 100], *[[f"no price at {n}"] for n in range(99)]])
    counts = {name: count for name, count in stats.as_dict().items() if name.startswith("item_dropped_messages_count/")}
    assert counts["item_dropped_messages_count/DropItem: no author"] == 2
    assert counts["item_dropped_messages_count/DropItem"] == 1
    assert len(counts) == 20 and max(map(len, counts)) < 160
    assert stats.get("item_dropped_count") == 103


def test_a_pipeline_that_forgets_to_return_the_item_is_warned_of_once_and_loses_nothing(caplog):
    class Forgetful:
        def process_item(self, item, spider):
            item["seen"] = True

    pipelines, _ = chain(Forgetful())
    assert pipelines.process([{}, {}]).items == [{"seen": True}, {"seen": True}]
    assert [record.message.split(".")[0] for record in caplog.records] == ["Forgetful"]


def test_a_page_whose_pipeline_fails_has_stored_nothing_yet():
    class Fragile:
        def process_item(self, item, spider):
            if item == "bad":
                raise ValueError("no")
            return item

    keep = Keep()
    pipelines, stats = chain(Fragile(), keep)
    with pytest.raises(ValueError, match="no"):
        pipelines.process(["good", "bad"])
    assert keep.pages == []
    assert stats.get("item_scraped_count") == 0


def test_items_are_stored_a_page_at_a_time_and_counted_by_place():
    keep = Keep()
    pipelines, stats = chain(keep, Mark("late"))
    pipelines.process([{"n": 1}, {"n": 2}])
    pipelines.process([])
    assert [[item["n"] for item in page] for page in keep.pages] == [[1, 2]]
    assert keep.pages[0][0]["marks"] == ["late"], "what is stored has passed every pipeline"
    assert stats.get("item_stored_count/the shelf") == 2


def test_what_a_pipeline_encodes_is_handed_on_for_the_step_that_ends_the_page():
    class Encode:
        place = "the ack"

        def encode_items(self, items, spider):
            return [f"{spider.name} {item['n']} {item['marks']}".encode() for item in items if item["n"] != 2]

    pipelines, stats = chain(Encode(), Mark("late"))
    assert pipelines.process([{"n": 1}, {"n": 2}]).encoded == [b"shop 1 ['late']"]
    assert pipelines.process([]).encoded == []
    assert stats.get("item_stored_count/the ack") == 1, "what is not handed on is not counted as stored"


def test_pipelines_open_in_order_flush_on_demand_and_close_in_reverse():
    diary: list[str] = []
    pipelines, _ = chain(Mark("a", diary), object(), Mark("b", diary))
    pipelines.open()
    pipelines.flush()
    pipelines.close()
    pipelines.close()
    assert diary == ["open a shop", "open b shop", "flush a", "flush b", "close b", "close a"]


def test_a_pipeline_that_cannot_open_closes_those_before_it():
    class Broken:
        def open_spider(self, spider):
            raise RuntimeError("no database")

    diary: list[str] = []
    pipelines, _ = chain(Mark("a", diary), Broken(), Mark("c", diary))
    with pytest.raises(RuntimeError, match="no database"):
        pipelines.open()
    assert diary == ["open a shop", "close a"]


def test_a_pipeline_that_cannot_close_does_not_keep_the_others_open():
    class Broken:
        def close_spider(self, spider):
            raise RuntimeError("disk gone")

    diary: list[str] = []
    pipelines, _ = chain(Mark("a", diary), Broken())
    pipelines.open()
    with pytest.raises(RuntimeError, match="disk gone"):
        pipelines.close()
    assert diary[-1] == "close a"


def test_the_base_class_does_nothing_to_items():
    pipelines, _ = chain(Pipeline())
    pipelines.open()
    assert pipelines.process([{"a": 1}]).items == [{"a": 1}]
    pipelines.close()


def test_the_methods_of_a_pipeline_may_leave_out_the_spider():
    diary: list[str] = []

    class Short:
        def open_spider(self):
            diary.append("open")

        def process_item(self, item):
            return {**item, "seen": True}

        def close_spider(self):
            diary.append("close")

    pipelines, _ = chain(Short())
    pipelines.open()
    assert pipelines.process([{"n": 1}]).items == [{"n": 1, "seen": True}]
    pipelines.close()
    assert diary == ["open", "close"]


async def _async(self, item, spider):
    return item


@pytest.mark.parametrize("method", [_async, lambda self: None, lambda self, item, spider, more: item])
def test_a_pipeline_that_cannot_be_called_is_refused_before_the_crawl(method):
    unfit = type("Unfit", (), {"process_item": method})
    with pytest.raises(UsageError, match=r"Unfit\.process_item"):
        chain(unfit())
