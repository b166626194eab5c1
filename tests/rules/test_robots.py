"""What robots.txt allows, by RFC 9309."""

from __future__ import annotations

import pytest

from scrapy_plus.rules.robots import MAX_BYTES, Robots, product_of, text_of

OURS = "scrapyplus"


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /a", "/b", True),
        ("User-agent: *\nDisallow: /a", "/abc", False),
        ("user-agent: *\ndisallow: /a\nallow: /a/b", "/a/b/c", True),
        ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", True),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", False),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?z", True),
        ("User-agent: *\nDisallow: /a?b=*&c", "/a?b=1&c=2", False),
        ("User-agent: *\nDisallow: /caf%C3%A9", "/caf%c3%a9/open", False),
        ("User-agent: *\nDisallow: /café", "/caf%C3%A9", False),
        ("User-agent: *\r\nDisallow: /a\r\n", "/a", False),
        ("User-agent: *\rDisallow: /a\r", "/a", False),
        ("User-agent: *\nDisallow: /a # why not", "/a", False),
        ("User-agent: scrapyplus\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", True),
        ("User-agent: ScrapyPlus\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/a", False),
        ("User-agent: other\nUser-agent: scrapyplus\nDisallow: /a", "/a", False),
        ("User-agent: scrapyplus\nDisallow: /a\n\nUser-agent: scrapyplus\nDisallow: /b", "/b", False),
        ("User-agent: other\nDisallow: /", "/a", True),
        ("Disallow: /a", "/a", True),
        ("<html>no robots here</html>", "/a", True),
        ("User-agent: *\nDisallow: /a\nSitemap: http://h.test/s.xml\nDisallow: /b", "/b", False),
    ],
)
def test_the_rules_of_the_group_that_fits_decide_by_the_longest_match(text, path, allowed):
    assert Robots(text, OURS).allows(f"http://h.test{path}") is allowed


@pytest.mark.parametrize(
    ("agent", "product"),
    [("scrapyplus/1 (+http://h.test)", "scrapyplus"), ("Mozilla/5.0 (X11)", "mozilla"), (" My-Bot", "my-bot")],
)
def test_the_product_token_is_the_first_word_of_a_user_agent(agent, product):
    assert product_of(agent) == product


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 2.5", 2.5),
        ("User-agent: *\nCrawl-delay: 9999", 60.0),
        ("User-agent: *\nCrawl-delay: soon", 0.0),
        ("User-agent: *\nCrawl-delay: -3", 0.0),
        ("User-agent: other\nCrawl-delay: 3\n\nUser-agent: *\nDisallow:", 0.0),
        ("", 0.0),
    ],
)
def test_a_crawl_delay_is_cut_at_the_limit(text, delay):
    assert Robots(text, OURS).delay_seconds(limit_seconds=60.0) == delay


def test_a_byte_order_mark_junk_and_too_long_a_text_are_survived():
    assert not Robots(text_of(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a"), OURS).allows("http://h.test/a")
    assert not Robots(text_of(b"\xff\xfe\n\x00\nUser-agent: *\nDisallow: /a"), OURS).allows("http://h.test/a")
    long = b"User-agent: *\nDisallow: /a\n" + b"# x\n" * (MAX_BYTES // 4) + b"Disallow: /b\n"
    assert not Robots(text_of(long), OURS).allows("http://h.test/a")
    assert Robots(text_of(long), OURS).allows("http://h.test/b")


def test_sitemaps_are_found_in_it():
    assert Robots("Sitemap: http://h.test/a.xml\nsitemap: /b.xml", OURS).sitemaps == ["http://h.test/a.xml", "/b.xml"]
