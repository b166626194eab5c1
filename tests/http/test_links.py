"""Which links a LinkExtractor takes."""

from __future__ import annotations

import re

import pytest

from scrapy_plus.http.links import Link, LinkExtractor
from scrapy_plus.http.response import Response

BODY = """<html><head><link rel=next href="/next"></head><body>
<nav><a href="/">Home</a><a href="/about.html">About <b>us</b></a></nav>
<div id=main>
<a href="item/1?b=2&amp;a=1">One</a><a href="item/1?a=1&amp;b=2">One again</a>
<a href="item/2#top" rel="external nofollow">Two</a>
<a href="http://sub.other.test/x">Other</a><a href="https://evil-other.test/">Evil</a><a href=" /spaced ">Spaced</a>
<a href="mailto:a@b.c">Mail</a><a href="javascript:go('/js/1')">Script</a><a name="anchor">None</a>
<a href="">Empty</a>
<a href="/file.PDF?x=1">File</a><a href="/file.tar.gz">Archive</a><a href="/v1.2/page">Version</a><a href="http://[bad/">Bad</a>
</div><map><area href="/map"></map><img src="/image.png"><a href="/中?q=中">Chinese</a>
</body></html>"""


@pytest.fixture
def page():
    return Response("http://h.test/dir/", headers={"Content-Type": "text/html; charset=utf-8"}, body=BODY.encode())


def paths(links) -> list[str]:
    return [link.url.removeprefix("http://h.test") for link in links]


EVERY = [
    "/",
    "/about.html",
    "/dir/item/1?b=2&a=1",
    "/dir/item/2#top",
    "http://sub.other.test/x",
    "https://evil-other.test/",
    "/spaced",
    "/dir/",
    "/v1.2/page",
    "/map",
    "/%E4%B8%AD?q=%E4%B8%AD",
]


def test_all_pages_are_taken_once_in_their_order(page):
    assert paths(LinkExtractor().extract_links(page)) == EVERY


def test_a_link_knows_its_text_fragment_and_nofollow(page):
    links = {link.url: link for link in LinkExtractor().extract_links(page)}
    assert links["http://h.test/about.html"] == Link("http://h.test/about.html", "About us")
    two = links["http://h.test/dir/item/2#top"]
    assert (two.text, two.fragment, two.nofollow) == ("Two", "top", True)
    assert not links["http://h.test/"].nofollow


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"allow": r"/item/\d"}, EVERY[2:4]),
        ({"allow": (r"item/1", re.compile("ABOUT", re.IGNORECASE))}, EVERY[1:3]),
        ({"allow": "/item/", "deny": r"\?"}, EVERY[3:4]),
        ({"deny": ["h.test", "evil"]}, EVERY[4:5]),
        ({"allow_domains": "other.test"}, EVERY[4:5]),
        ({"allow_domains": ["OTHER.test", "evil-other.test"]}, EVERY[4:6]),
        ({"deny_domains": ["h.test"]}, EVERY[4:6]),
        ({"restrict_xpaths": "//nav"}, EVERY[:2]),
        ({"restrict_css": "nav, map"}, ["/", "/about.html", "/map"]),
        ({"restrict_xpaths": ["//nav"], "restrict_css": ["map"]}, ["/", "/about.html", "/map"]),
        ({"restrict_text": "^One"}, EVERY[2:3]),
        ({"tags": "area"}, ["/map"]),
        ({"tags": ("img", "link"), "attrs": ("src", "href"), "deny_extensions": ()}, ["/next", "/image.png"]),
        ({"deny_extensions": (), "allow": "file"}, ["/file.PDF?x=1", "/file.tar.gz"]),
        ({"deny_extensions": "pdf", "allow": "file"}, ["/file.tar.gz"]),
        ({"deny_extensions": [".tar.gz"], "allow": "file"}, ["/file.PDF?x=1"]),
        ({"canonicalize": True, "allow": "/item/"}, ["/dir/item/1?a=1&b=2", "/dir/item/2"]),
        ({"unique": False, "allow": "/item/1"}, ["/dir/item/1?b=2&a=1", "/dir/item/1?a=1&b=2"]),
    ],
)
def test_only_links_that_match_all_of_what_is_asked_are_taken(page, arguments, expected):
    assert paths(LinkExtractor(**arguments).extract_links(page)) == expected


def test_values_are_mended_or_skipped_before_they_are_links(page):
    def mend(value: str) -> str | None:
        match = re.search(r"go\('(.*?)'", value)
        return match[1] if match else None

    assert paths(LinkExtractor(process_value=mend).extract_links(page)) == ["/js/1"]


def test_matches_judges_a_url_alone():
    extractor = LinkExtractor(allow="/a", deny_domains="x.test")
    assert extractor.matches("http://h.test/a")
    assert not extractor.matches("http://h.test/b")
    assert not extractor.matches("http://x.test/a")
    assert not extractor.matches("http://h.test/a.jpg")
    assert extractor.matches("http://h.test/a?file=x.jpg")


def test_a_region_inside_another_gives_its_links_once(page):
    assert paths(LinkExtractor(restrict_css=("body", "nav")).extract_links(page)).count("/about.html") == 1


def test_what_is_restricted_to_text_has_no_links(page):
    assert LinkExtractor(restrict_xpaths="//a/@href").extract_links(page) == []


def test_links_heed_the_base_and_the_encoding_of_the_page():
    body = '<base href="http://b.test/x/"><a href="y?q=中">z</a>'.encode("gbk")
    page = Response("http://h.test/", headers={"Content-Type": "text/html; charset=gbk"}, body=body)
    assert [link.url for link in LinkExtractor().extract_links(page)] == ["http://b.test/x/y?q=%D6%D0"]


def test_a_bad_pattern_is_refused_when_the_extractor_is_made():
    with pytest.raises(re.error):
        LinkExtractor(allow="(")


NOFOLLOW = [
    ({}, "", True),
    ({"X-Robots-Tag": "nofollow"}, "", False),
    ({"X-Robots-Tag": "noindex, NoFollow"}, "", False),
    ({"X-Robots-Tag": "none"}, "", False),
    ({"X-Robots-Tag": "otherbot: nofollow"}, "", True),
    ({}, "<meta name=Robots content='NOINDEX,NOFOLLOW'>", False),
    ({}, "<meta content=none name=robots>", False),
    ({}, "<meta name=robots content=noindex>", True),
    ({}, "<meta name=googlebot content=nofollow>", True),
    ({}, "<!-- <meta name=robots content=nofollow> -->", True),
]


@pytest.mark.parametrize(("headers", "head", "is_followed"), NOFOLLOW)
def test_a_page_that_says_nofollow_is_heeded_when_asked(headers, head, is_followed):
    headers = {"Content-Type": "text/html", **headers}
    page = Response("http://h.test/", headers=headers, body=f"{head}<a href=/a>a</a><a rel=nofollow href=/b>b</a>")
    assert paths(LinkExtractor().extract_links(page)) == ["/a", "/b"]
    assert paths(LinkExtractor(obey_nofollow=True).extract_links(page)) == (["/a"] if is_followed else [])


WRITTEN = {
    "<a href>x</a>": ["/d/p"],
    "<a href='/a\n\tb\r c'>x</a>": ["/ab%20c"],
    "<a href='\\\\y.test\\z'>x</a>": ["http://y.test/z"],
    "<a href='//y.test/z'>x</a>": ["http://y.test/z"],
    "<a href='HTTP://Y.test/z'>x</a>": ["http://y.test/z"],
    "<a href='?a=1&amp;b=2&copy=3'>x</a>": ["/d/p?a=1&b=2&copy=3"],
    "<a href='./../../up'>x</a>": ["/up"],
    "<a href='http://h.test:80/p'>x</a><a href='/p'>y</a>": [":80/p"],
    "<a href='tel:1'>x</a><a href='data:,x'>x</a><a href='ftp://h.test/'>x</a><a href='JavaScript:x'>x</a>": [],
    "<!-- <a href=/c>x</a> --><script>'<a href=/s>'</script><style><a href=/t></style>": [],
    "<img src=/i srcset='/i2.png 2x'><source srcset=/j><link rel=preload imagesrcset=/k href=/l>": [],
    "<noscript><a href=/n>x</a></noscript>": ["/n"],
    "<base target=_top><base href=/b/><base href=/c/><a href=x>x</a>": ["/b/x"],
    "<base href='javascript:x'><a href=x>x</a>": ["/d/x"],
}


@pytest.mark.parametrize(("body", "expected"), WRITTEN.items())
def test_a_link_is_read_as_browsers_read_it(body, expected):
    page = Response("http://h.test/d/p", headers={"Content-Type": "text/html; charset=utf-8"}, body=body)
    assert paths(LinkExtractor(deny_extensions=()).extract_links(page)) == expected
