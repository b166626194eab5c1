"""A small site to learn on: quotes on pages, their authors, and the bad moments that sites have.

    python examples/quotes_site.py [PORT]    serves http://127.0.0.1:8000/ until Ctrl-C; nothing but Python is needed

One author's page is missing (404), one is busy at the first visit (503), one is never well (500).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

QUOTES_ON_A_PAGE = 4
QUOTES = [
    ("A journey of a thousand miles begins with a single step.", "Lao Tzu", ["travel", "patience"]),
    ("It is not that we have a short time to live, but that we waste a lot of it.", "Seneca", ["time"]),
    ("Slow but steady wins the race.", "Aesop", ["patience"]),
    ("The unexamined life is not worth living.", "Socrates", ["life"]),
    ("Well begun is half done.", "Aristotle", ["work"]),
    ("学而时习之，不亦说乎？", "孔子", ["learning"]),
    ("Love conquers all.", "Virgil", ["love"]),
    ("No one steps into the same river twice.", "Heraclitus", ["time", "change"]),
    ("He who knows others is wise; he who knows himself is enlightened.", "Lao Tzu", ["wisdom"]),
    ("While we are postponing, life speeds by.", "Seneca", ["time", "work"]),
    ("Know thyself.", "Thales", ["wisdom"]),
    ("Nothing in excess.", "Solon", ["wisdom"]),
]
BORN = {
    "Lao Tzu": "China",
    "Seneca": "Córdoba",
    "Aesop": "Thrace",
    "Socrates": "Athens",
    "Aristotle": "Stagira",
    "孔子": "鲁国",
    "Heraclitus": "Ephesus",
    "Thales": "Miletus",
    "Solon": "Athens",
}
AUTHORS = list(dict.fromkeys(author for _, author, _ in QUOTES))
BUSY, ILL = "Seneca", "Solon"  # Virgil, who is not in BORN, has no page

visits: Counter[str] = Counter()


def page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def author_path(author: str) -> str:
    return f"/author/{AUTHORS.index(author) + 1}/"


def quote_html(text: str, author: str, tags: list[str]) -> str:
    links = " ".join(f'<a class="tag" href="/tag/{tag}/">{tag}</a>' for tag in tags)
    return (
        f'<div class="quote"><span class="text">{escape(text)}</span> <small class="author">{author}</small> '
        f'<a class="about" href="{author_path(author)}">about</a> {links}</div>'
    )


def list_page(number: int) -> str | None:
    quotes = QUOTES[(number - 1) * QUOTES_ON_A_PAGE : number * QUOTES_ON_A_PAGE]
    is_last = number * QUOTES_ON_A_PAGE >= len(QUOTES)
    following = "" if is_last else f'\n<ul><li class="next"><a href="/page/{number + 1}/">Next</a></li></ul>'
    return page(f"Quotes, page {number}", "\n".join(quote_html(*one) for one in quotes) + following) if quotes else None


def tag_page(tag: str) -> str | None:
    quotes = [one for one in QUOTES if tag in one[2]]
    return page(f"Quotes about {tag}", "\n".join(quote_html(*one) for one in quotes)) if quotes else None


def author_page(author: str) -> str:
    return page(author, f'<h1>{author}</h1>\n<p>Born in <span class="born">{BORN[author]}</span>.</p>')


def sitemap(base: str) -> str:
    paths = [f"/page/{number}/" for number in (1, 2, 3)] + [author_path(author) for author in AUTHORS]
    entries = "".join(f"<url><loc>{base}{path}</loc></url>" for path in paths)
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def answer(path: str, base: str) -> tuple[int, str, str]:
    """Status, content type and text."""
    kind, _, name = path.strip("/").partition("/")
    found: str | None = None
    if path == "/":
        found = list_page(1)
    elif path == "/robots.txt":
        return 200, "text/plain", f"User-agent: *\nDisallow:\nSitemap: {base}/sitemap.xml\n"
    elif path == "/sitemap.xml":
        return 200, "application/xml", sitemap(base)
    elif path == "/api/quotes":
        return 200, "application/json", json.dumps({"quotes": [{"text": q, "author": a} for q, a, _ in QUOTES]})
    elif kind == "page" and name.isdecimal():
        found = list_page(int(name))
    elif kind == "tag":
        found = tag_page(name)
    elif kind == "author" and name.isdecimal() and 0 < int(name) <= len(AUTHORS):
        author = AUTHORS[int(name) - 1]
        visits[author] += 1
        if author == ILL or (author == BUSY and visits[author] == 1):
            return (503 if author == BUSY else 500), "text/plain", "Come back later.\n"
        found = author_page(author) if author in BORN else None
    return (200, "text/html; charset=utf-8", found) if found else (404, "text/plain", "No such page.\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, content_type, text = answer(self.path.partition("?")[0], f"http://{self.headers['Host']}")
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent: the crawl is what one wants to watch."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
