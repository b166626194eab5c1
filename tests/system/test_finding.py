"""A whole crawl of several processes while its Redis moves: the master dies under it, or its slot goes elsewhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import redis

from tests.redis.servers import wait_for
from tests.redis.test_finding import PREFIX, Cluster, Group, binary  # noqa: F401
from tests.system.test_persistence import Project, shop  # noqa: F401

PAGES = 200


def shared(folder: Path, base: str, url: str) -> Project:
    project = Project(folder, base, pages=PAGES)
    name = PREFIX.strip("{}").partition(":")[0]
    spider = (folder / "spiders.py").read_text("utf-8").replace('name = "shop"', 'name = "books"')
    (folder / "spiders.py").write_text(spider, "utf-8")
    with (folder / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(f"REDIS_URL = {url!r}\nPROJECT_NAME = {name!r}\n")
    return project


def test_a_crawl_survives_the_death_of_the_master(shop, binary, tmp_path):  # noqa: F811
    with closing(Group(binary, tmp_path)) as group:
        project = shared(tmp_path, shop.base, group.url)
        wait_for(lambda: group.is_linked(group.master()))
        process = project.start("master", "--workers", "2")
        shop.wait_until_asked(60)
        group.kill_master()
        assert len(shop.asked) < PAGES, "it died under the crawl"
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        assert set(shop.asked) == {f"/{number}" for number in range(1, PAGES + 1)}
        assert set(project.items()) == set(range(1, PAGES + 1))
        assert "answers again after" in errors
        assert "hush" not in errors and "guard" not in errors


def test_a_crawl_follows_its_slot_to_another_node(shop, binary, tmp_path):  # noqa: F811
    with closing(Cluster(binary, tmp_path)) as cluster:
        project = shared(tmp_path, shop.base, cluster.url)
        process = project.start("master", "--workers", "2")
        shop.wait_until_asked(60)
        first = cluster.owner()
        cluster.move_slot()
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        assert sorted(project.items()) == list(range(1, PAGES + 1)), "each page's item once"
        assert len(shop.asked) == PAGES, "and nothing asked twice"
        assert cluster.owner() != first
        with redis.Redis(port=first, password="hush") as client:
            assert client.dbsize() == 0
