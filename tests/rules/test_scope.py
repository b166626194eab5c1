"""Which URLs a crawl goes to, and why not to others."""

from __future__ import annotations

import pytest

from scrapy_plus.rules.scope import Scope, denied_extension, extensions, is_below

BELOW = [
    ("a.test", ["a.test"], True),
    ("www.a.test", ["a.test"], True),
    ("ba.test", ["a.test"], False),
    ("a.test", ["www.a.test"], False),
    ("a.test", ["b.test", "A.test"], True),
    ("a.test.", ["a.test"], True),
    ("a.test", ["http://a.test/path", ""], True),
    ("127.0.0.1", ["127.0.0.1:8000"], True),
    ("a.test", [".a.test"], True),
    ("xn--bcher-kva.test", ["bücher.test"], True),
    ("b.test", [""], False),
    ("www.a.test", ["*.a.test"], True),
    ("a.test.evil.test", ["a.test"], False),
    ("::1", ["[::1]:8000"], True),
    ("xn--fiqs8s", ["中国"], True),
]


@pytest.mark.parametrize(("host", "domains", "expected"), BELOW)
def test_a_host_is_below_its_domain(host, domains, expected):
    assert is_below(host, domains) is expected


@pytest.mark.parametrize(
    ("url", "ending"),
    [
        ("http://a.test/x.pdf", "pdf"),
        ("http://a.test/X.PDF?page=2#top", "pdf"),
        ("http://a.test/x.tar.gz", "tar.gz"),
        ("http://a.test/x.gz", ""),
        ("http://a.test/x?file=y.pdf", ""),
        ("http://a.test/x.pdf/", ""),
        ("http://a.pdf", ""),
        ("http://a.test/pdf", ""),
        ("http://a.test/.pdf", "pdf"),
    ],
)
def test_a_file_has_the_ending_of_its_path(url, ending):
    assert denied_extension(url, extensions([".pdf", "*.TAR.GZ", ""])) == ending


OFFSITE = "offsite: b.test is neither one of the allowed_domains nor below one (a.test, bücher.test)"
SCOPE = Scope(("a.test", "bücher.test"), depth_limit=2, url_length_limit=40, denied_extensions=frozenset({"pdf"}))


@pytest.mark.parametrize(
    ("url", "depth", "reason"),
    [
        ("http://www.A.test:8080/x", 1, None),
        ("http://xn--bcher-kva.test/", 2, None),
        ("http://b.test/", 1, OFFSITE),
        ("http://b.test/", 0, None),
        ("http://a.test/x", 3, "depth: 3 links from the start are more than DEPTH_LIMIT (2)"),
        ("http://a.test/" + "x" * 30, 1, "url length: 44 characters are more than URLLENGTH_LIMIT (40)"),
        ("http://a.test/" + "x" * 30, 0, "url length: 44 characters are more than URLLENGTH_LIMIT (40)"),
        ("http://a.test/x.PDF", 1, "extension: .pdf is one of DENIED_EXTENSIONS"),
        ("http://a.test/x.PDF", 0, None),
    ],
)
def test_why_a_crawl_does_not_go_somewhere_is_a_sentence(url, depth, reason):
    assert SCOPE.why_not(url, depth=depth) == reason


def test_without_bounds_a_crawl_goes_everywhere():
    assert Scope().why_not("http://b.test/" + "x" * 9999 + ".exe", depth=999) is None
