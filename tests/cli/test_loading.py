"""What a start loads: a client for Redis, or the tools of an operator, only where they are needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from scrapy_plus.cli import MODULES, main

LOADED = """
import json, sys
from scrapy_plus import FakeTransport, Spider, crawl


class Tea(Spider):
    name = "tea"
    start_urls = ["http://tea.test/"]

    def parse(self, response):
        yield {"tea": response.text}


assert crawl(Tea, FakeTransport({"http://tea.test/": "oolong"})).items == [{"tea": "oolong"}]
print(json.dumps(sorted(sys.modules)))
"""


def test_a_crawl_in_memory_loads_no_command_line_no_second_transport_and_no_client_for_redis():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "scrapy_plus.frontier.memory" in loaded
    assert not loaded & {"redis", "asyncio", "sqlite3", "scrapy_plus.torture"}
    assert not loaded & {"click", "rich", "scrapy_plus.cli", "requests", "urllib3"}


@pytest.mark.parametrize("name", MODULES)
def test_each_command_is_where_the_table_says(name):
    command = main.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None and command.name == name and command.help


def test_a_command_that_is_not_there_is_none():
    assert main.get_command(None, "fly") is None  # type: ignore[arg-type]
