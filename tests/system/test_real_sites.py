"""Real documentation on a real web server: the crawl must find the very pages that a walk over the files finds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.system.nginx import serve

SPIDER = """
from scrapy_plus import Spider

class DocsSpider(Spider):
    name = "docs"

    def __init__(self, start="", **arguments):
        super().__init__(**arguments)
        self.start_urls = [start]
        self.base = start.rpartition("/")[0] + "/"

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in response.css("a::attr(href)"):
            url = response.urljoin(link).partition("#")[0]
            if url.startswith(self.base) and url.partition("?")[0].endswith(".html"):
                yield response.follow(url)
"""


class Page(HTMLParser):
    """The links and the title of a page, read by the standard library: a reader that shares nothing with ours."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.title = ""
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "a" and dict(attrs).get("href"):
            self.links.append(dict(attrs)["href"])
        self._in_title = tag == "title" and not self.title

    def handle_data(self, data):
        if self._in_title:
            self.title += data

    def handle_endtag(self, tag):
        self._in_title = False


def walk(root: Path, base: str, start: str) -> dict[str, str]:
    """URL -> title of all pages that can be reached from `start` over links to .html files that exist."""
    found: dict[str, str] = {}
    todo = [f"{base}/{start}"]
    while todo:
        url = todo.pop()
        file = root / unquote(urlsplit(url).path).lstrip("/")
        if url in found or not file.is_file():
            continue
        page = Page(file.read_text(encoding="utf-8", errors="replace"))
        found[url] = page.title
        for link in page.links:
            target = urljoin(url, link).partition("#")[0]
            if target.startswith(base + "/") and target.endswith(".html"):
                todo.append(target)
    return found


@pytest.mark.system
def test_the_python_documentation_is_crawled_page_by_page_exactly_once(python_docs, tmp_path):
    (tmp_path / "docs.py").write_text(SPIDER)
    with serve(python_docs, tmp_path) as base:
        done = subprocess.run(
            [sys.executable, "-m", "scrapy_plus", "runspider", "docs.py", "-a", f"start={base}/index.html",
             "-O", "pages.jsonl", "-s", "CONCURRENT_REQUESTS=32"],
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        expected = walk(python_docs, base, "index.html")
    assert done.returncode == 0, done.stderr[-2000:]
    pages = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {page["url"]: page["title"] for page in pages} == expected
    assert len(pages) == len(expected) > 300
    asked = Counter(line.split('"')[1] for line in (tmp_path / "access.log").read_text().splitlines())
    assert max(asked.values()) == 1, asked.most_common(3)
