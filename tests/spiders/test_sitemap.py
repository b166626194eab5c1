"""SitemapSpider: robots.txt, indexes, gzip, rules."""

from __future__ import annotations

import gzip

import pytest

from scrapy_plus.http.response import Response
from scrapy_plus.spiders.sitemap import SitemapSpider, read_sitemap, unpack

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
URLSET = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {XMLNS}>
  <url><loc> http://h.test/a?x=1&amp;y=2 </loc><lastmod>2024-01-01</lastmod>
    <xhtml:link rel="alternate" hreflang="de" href="http://h.test/de/a"/></url>
  <!-- <url><loc>http://h.test/comment</loc></url> -->
  <url><loc>http://h.test/product/1</loc><priority>0.5</priority></url>
  <url><loc>mailto:a@b.c</loc></url><url></url>
</urlset>""".encode()
INDEX = f"""<sitemapindex {XMLNS}><sitemap><loc>http://h.test/one.xml</loc></sitemap>
<sitemap><loc>http://h.test/two.xml.gz</loc></sitemap></sitemapindex>""".encode()


class Shop(SitemapSpider):
    name = "shop"
    sitemap_urls = ["http://h.test/sitemap.xml"]
    sitemap_rules = [("/product/", "parse_product"), ("", "parse")]

    def parse_product(self, response):
        yield {}


def followed(body: bytes, spider=None, url="http://h.test/sitemap.xml") -> list[tuple[str, str]]:
    response = Response(url, body=body)
    return [(request.url, request.parse) for request in (spider or Shop())._parse_sitemap(response)]


PAGES = [("http://h.test/a?x=1&y=2", "parse"), ("http://h.test/product/1", "parse_product")]


def test_it_starts_from_its_sitemaps():
    [request] = Shop().start_requests()
    assert (request.url, request.parse) == ("http://h.test/sitemap.xml", "_parse_sitemap")
    assert [one.url for one in Shop(sitemap_urls="http://h.test/x").start_requests()] == ["http://h.test/x"]


def test_pages_go_to_the_first_rule_that_matches_and_bad_urls_are_left_out():
    assert followed(URLSET) == PAGES


@pytest.mark.parametrize("body", [gzip.compress(URLSET), gzip.compress(URLSET[:50]) + gzip.compress(URLSET[50:])])
def test_gzipped_sitemaps_are_read(body):
    assert followed(body, url="http://h.test/sitemap.xml.gz") == PAGES


def test_what_a_cut_or_broken_sitemap_still_holds_is_read():
    cut = URLSET[: URLSET.index(b"<priority>")]
    assert followed(cut)[:1] == PAGES[:1]
    assert followed(gzip.compress(URLSET)[:-8]) == PAGES
    assert followed(URLSET.replace(b"<lastmod>", b"<last&mod>")) != []


def test_an_index_leads_to_the_sitemaps_that_are_wanted():
    class Some(Shop):
        sitemap_follow = [r"\.gz$"]

    assert followed(INDEX) == [
        ("http://h.test/one.xml", "_parse_sitemap"),
        ("http://h.test/two.xml.gz", "_parse_sitemap"),
    ]
    assert followed(INDEX, Some()) == [("http://h.test/two.xml.gz", "_parse_sitemap")]


def test_robots_txt_names_sitemaps():
    robots = b"User-agent: *\nDisallow: /x\nSitemap: http://h.test/one.xml\n  sitemap : /two.xml # mine\n#Sitemap: /no"
    assert followed(robots, url="http://h.test/robots.txt") == [
        ("http://h.test/one.xml", "_parse_sitemap"),
        ("http://h.test/two.xml", "_parse_sitemap"),
    ]


def test_a_list_of_urls_is_a_sitemap():
    assert followed(b"\xef\xbb\xbfhttp://h.test/product/1\r\n\r\nhttp://h.test/b\nnonsense\n") == [
        ("http://h.test/product/1", "parse_product"),
        ("http://h.test/b", "parse"),
    ]


def test_alternate_links_are_taken_when_asked():
    class Alternate(Shop):
        sitemap_alternate_links = True

    assert ("http://h.test/de/a", "parse") in followed(URLSET, Alternate())


def test_entries_can_be_filtered_and_changed():
    class Recent(Shop):
        def sitemap_filter(self, entries):
            return (entry for entry in entries if entry.get("lastmod", "") >= "2024")

    assert followed(URLSET, Recent()) == PAGES[:1]


def test_pages_that_no_rule_wants_are_left_out():
    class Products(Shop):
        sitemap_rules = [("/product/", Shop.parse_product)]

    assert followed(URLSET, Products()) == PAGES[1:]


@pytest.mark.parametrize(
    "body", [b"", b"<html><a href='http://h.test/x'>x</a></html>", b"nothing", b"\x1f\x8bbroken", b"<"]
)
def test_what_is_no_sitemap_is_said_and_gives_nothing(body, caplog):
    assert followed(body) == []
    assert "not a sitemap" in caplog.text


def test_inflating_stops_at_the_limit():
    bomb = gzip.compress(b"x" * 10_000_000)
    assert len(unpack(bomb, 1000)) == 1000
    assert len(unpack(bomb * 3, 15_000_000)) == 15_000_000


def test_no_external_entity_is_ever_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("http://h.test/SECRET")
    body = f'<!DOCTYPE r [<!ENTITY e SYSTEM "{secret.as_uri()}">]><urlset><url><loc>&e;</loc></url></urlset>'
    assert list(read_sitemap(body.encode())[1]) in ([], [{}])


def test_fifty_thousand_urls_are_read_one_by_one():
    body = (
        b"<urlset>" + b"".join(b"<url><loc>http://h.test/%d</loc></url>" % one for one in range(50_000)) + b"</urlset>"
    )
    kind, entries = read_sitemap(body)
    first = next(iter(entries))
    assert (kind, first) == ("urlset", {"loc": "http://h.test/0"})
    assert sum(1 for _ in entries) == 49_999


ONE = b"<urlset><url><loc>http://h.test/1</loc></url></urlset>"
BROKEN = {
    "a bare ampersand": (ONE.replace(b"/1", b"/?a=1&b=2&lt=3&"), ["http://h.test/?a=1&b=2&lt=3&"]),
    "escaped ones": (ONE.replace(b"/1", b"/?a=1&amp;b=2&#38;c=3"), ["http://h.test/?a=1&b=2&c=3"]),
    "a CDATA section": (ONE.replace(b"http://h.test/1", b"<![CDATA[http://h.test/?a=1&b=2]]>"), ["http://h.test/?a=1&b=2"]),
    "a wrong declaration": (b'<?xml version="1.0" encoding="utf-16"?>' + ONE, ["http://h.test/1"]),
    "an unknown encoding": (b'<?xml version="1.0" encoding="x-odd"?>' + ONE, ["http://h.test/1"]),
    "UTF-16": (f'<?xml version="1.0" encoding="utf-16"?>{ONE.decode()}'.encode("utf-16"), ["http://h.test/1"]),
    "GBK": (
        b'<?xml version="1.0" encoding="gb2312"?>' + ONE.replace(b"/1", "/茶".encode("gbk")),
        ["http://h.test/%E8%8C%B6"],
    ),
    "bytes that are no UTF-8": (ONE.replace(b"/1", b"/\xe9").replace(b"</urlset>", ONE[8:]), ["http://h.test/1"]),
    "text before it": (b"\n\nWarning: x\n<?xml version='1.0'?>" + ONE, ["http://h.test/1"]),
    "a BOM and an empty line before it": (b"\xef\xbb\xbf\n<?xml version='1.0'?>" + ONE, ["http://h.test/1"]),
    "a comment and a stylesheet": (b"<?xml version='1.0'?><!-- & --><?xml-stylesheet href='x'?>" + ONE, ["http://h.test/1"]),
    "a prefix that nobody declared": (
        ONE.replace(b"</url>", b"<xhtml:link rel='alternate' href='http://h.test/de'/></url>"),
        ["http://h.test/1", "http://h.test/de"],
    ),
    "a link that is no alternate": (
        ONE.replace(b"</url>", b"<link rel='canonical' href='http://h.test/c'/></url>"), ["http://h.test/1"],
    ),
    "prefixed names": (
        b"<s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'><s:url><s:loc>http://h.test/1</s:loc></s:url></s:urlset>",
        ["http://h.test/1"],
    ),
    "images": (
        ONE.replace(b"<loc>", b"<image:image><image:loc>http://h.test/i.png</image:loc></image:image><loc>"),
        ["http://h.test/1"],
    ),
    "white space and a relative URL": (ONE.replace(b"http://h.test/1", b"\n  /1\t\n"), ["http://h.test/1"]),
    "shouted names": (ONE.upper().replace(b"HTTP://H.TEST", b"http://h.test"), ["http://h.test/1"]),
    "no end": (ONE[:-20], ["http://h.test/1"]),
    "a control character": (ONE.replace(b"<loc>", b"\x0b<loc>"), ["http://h.test/1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_sitemap_is_read_however_it_is_written(name):
    class Alternate(Shop):
        sitemap_alternate_links = True

    body, expected = BROKEN[name]
    found = [url for url, _ in followed(body, Alternate())]
    assert found[-1:] == expected if name.startswith("bytes") else found == expected
    gzipped = [url for url, _ in followed(gzip.compress(body), Alternate())]
    assert gzipped == found
