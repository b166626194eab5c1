"""A bookshop to crawl: 1,000 books, and the manners of real sites: broken links, bad moments and slow pages.

    python shop.py        opens it alone and prints its address
"""

from __future__ import annotations

import re
import socket
from collections import Counter
from html import escape

import gevent
from gevent.pywsgi import WSGIServer

BOOKS = 1000
BOOKS_ON_A_PAGE = 20
TRAVEL_SECONDS = 0.04  # as if the shop were across town, or the crawl would be over before it is seen
SLOW_SECONDS = 1.5
SLOW = {111, 444, 777}
BUSY = {13: 1, 500: 2, 901: 2}  # books that answer 503 so many times first
OUT_OF_PRINT = {7, 250, 640}  # books that link to one that is gone

ADJECTIVES = ["Quiet", "Crooked", "Amber", "Last", "Hidden", "Northern", "Paper", "Salt", "Patient", "Borrowed"]
NOUNS = ["Lighthouse", "Orchard", "Clockmaker", "Ferry", "Atlas", "Winter", "Garden", "Letter", "Fox", "Tea House"]
PLACES = ["Harbour Street", "the Marsh", "Kyoto", "Ål", "São João", "the Moon", "Dundee", "Ürümqi", "茶山", "Nowhere"]
CATEGORIES = ["Fiction", "History", "Travel", "Science", "Poetry", "Cooking", "Crime", "Art", "Children", "Tea & Time"]

visits: Counter[int] = Counter()


def title(number: int) -> str:
    """Each number from 0 to 999 has a title of its own."""
    return f"The {ADJECTIVES[number // 100]} {NOUNS[number // 10 % 10]} of {PLACES[number % 10]}"


def category(number: int) -> int:
    return number * 7 % len(CATEGORIES)


def page(heading: str, body: str) -> str:
    return f'<!doctype html><html><head><meta charset="utf-8"><title>{heading}</title></head><body>{body}</body></html>'


def front_page() -> str:
    links = (f'<a href="/category/{n}">{escape(name)}</a>' for n, name in enumerate(CATEGORIES))
    return page("The bookshop", f"<h1>The bookshop</h1><nav>{' '.join(links)}</nav>")


def category_page(number: int, start: int) -> str | None:
    books = [book for book in range(BOOKS) if category(book) == number]
    shown = books[start * BOOKS_ON_A_PAGE : (start + 1) * BOOKS_ON_A_PAGE]
    if not shown:
        return None
    items = "".join(f'<li class="book"><a href="/book/{book}">{escape(title(book))}</a></li>' for book in shown)
    is_last = shown[-1] == books[-1]
    more = "" if is_last else f'<a class="next" href="/category/{number}?page={start + 1}">next</a>'
    return page(escape(CATEGORIES[number]), f"<ol>{items}</ol>{more}")


def book_page(number: int) -> str:
    related = [(number * 3 + 1) % BOOKS, (number + 10) % BOOKS, (number + 500) % BOOKS]
    links = "".join(f'<li><a href="/book/{book}">{escape(title(book))}</a></li>' for book in related)
    if number in OUT_OF_PRINT:
        links += f'<li><a href="/book/{number}-first-edition">its first edition</a></li>'
    name = escape(title(number))
    praise = "A book to read twice. " * (number % 5 + 1)
    return page(
        name,
        f'<h1>{name}</h1><p class="category">{escape(CATEGORIES[category(number)])}</p>'
        f'<p class="price">£{5 + number % 40}.{number % 100:02}</p><p class="stock">{number % 23} in stock</p>'
        f'<div class="description"><p>Number {number} of our shelves.</p><p>{praise}</p></div>'
        f'<ul class="related">{links}</ul>',
    )


def answer(path: str, query: str) -> tuple[str, str]:
    """Status and page."""
    found = None
    if path == "/":
        found = front_page()
    elif match := re.fullmatch(r"/category/([0-9])", path):
        start = re.fullmatch(r"page=(\d{1,3})", query)
        found = category_page(int(match[1]), int(start[1]) if start else 0)
    elif (match := re.fullmatch(r"/book/(\d{1,3})", path)) and int(match[1]) < BOOKS:
        number = int(match[1])
        visits[number] += 1
        if visits[number] <= BUSY.get(number, 0):
            return "503 Service Unavailable", page("Busy", "Come back in a moment.")
        gevent.sleep(SLOW_SECONDS if number in SLOW else 0)
        found = book_page(number)
    return ("200 OK", found) if found else ("404 Not Found", page("Not found", "No such page."))


def application(environ, start_response):
    gevent.sleep(TRAVEL_SECONDS)
    status, text = answer(environ["PATH_INFO"], environ["QUERY_STRING"])
    body = text.encode()
    start_response(status, [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]


def open_shop() -> str:
    """Opens the shop on a free port of this machine, in this process, and returns its address."""
    server = WSGIServer(("127.0.0.1", 0), application, log=None)
    server.start()
    # Head and body go out apart; without this the second waits 40 ms for the first to be acknowledged.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return f"http://127.0.0.1:{server.server_port}/"


if __name__ == "__main__":
    from gevent.event import Event

    print(open_shop(), flush=True)
    Event().wait()
