from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BOOKSHOP = Path(__file__).parents[2] / "examples" / "bookshop"


def test_the_bookshop_is_crawled_whole_and_leaves_a_thousand_books(tmp_path):
    path = tmp_path / "books.jsonl"
    path.write_text('{"title": "of an earlier run"}\n')
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_PLUS_")}
    ran = subprocess.run(
        [sys.executable, str(BOOKSHOP / "main.py")],
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": str(BOOKSHOP.parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    books = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(books) == 1000
    assert len({book["url"] for book in books}) == 1000
    assert len({book["title"] for book in books}) == 1000
    assert all(book["category"] and book["description"] and book["price"] for book in books)
    assert {book["category"] for book in books} >= {"Fiction", "Tea & Time"}
    assert ran.stdout == "", "standard output belongs to the items"
    for said in ("finished", "1,000  in books.jsonl", "404: 3", "503: 5", "RetryStatus: 5"):
        assert said in ran.stderr
