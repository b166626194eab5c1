"""URLs: cleaned, canonical, joined, cut to their site."""

from __future__ import annotations

import re
import time
from urllib.parse import urljoin

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrapy_plus.http import url as urls
from scrapy_plus.http.url import add_params, canonicalize, clean_url, encode_form, join, site

# The first draw builds tables of all characters, which takes seconds where nothing is cached.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SEGMENTS = st.text("ab.%2F0'()~_-:@;=+&$!*,é中 \\|", max_size=8)
PATHS = st.lists(SEGMENTS, max_size=5).map("/".join)
QUERIES = st.one_of(st.just(""), st.text("ab=&%2Fé中'+ |/?:;", max_size=12).map("?{}".format))
FRAGMENTS = st.one_of(st.just(""), st.text("ab%é/?' ", max_size=6).map("#{}".format))
HOSTS = st.sampled_from(
    ["h.test", "H.Test", "h.test:80", "h.test:443", "h.test:8080", "h.test:54321", "h.test:65535"]
    + ["u:p@h.test", "[::1]", "münchen.de"]
)
SCHEMES = st.sampled_from(["http", "https", "HTTP"])
URLS = st.builds("{}://{}/{}{}{}".format, SCHEMES, HOSTS, PATHS, QUERIES, FRAGMENTS)


@UNHURRIED
@given(URLS)
def test_a_clean_url_is_clean_already(url):
    cleaned = clean_url(url)
    assert cleaned.isascii()
    assert clean_url(cleaned) == cleaned


@UNHURRIED
@given(URLS)
@example("http://h.test/a'?b='c")
@example("http://h.test/.a/b")
@example("http://h.test/a/../b")
def test_what_needs_no_cleaning_comes_out_of_the_thorough_way_unchanged(url):
    cleaned = clean_url(url)
    if urls._CLEAN(cleaned) and "/." not in cleaned:
        assert urls._parsed_clean(cleaned, "utf-8") == cleaned


@UNHURRIED
@given(URLS)
def test_canonical_urls_are_canonical_already(url):
    for keep in (False, True):
        once = canonicalize(url, keep_fragments=keep)
        assert canonicalize(once, keep_fragments=keep) == once


@UNHURRIED
@given(URLS)
@example("http://h.test/a/.b/c")
@example("http://h.test/a./b")
@example("http://h.test:443/")
@example("https://h.test:443/a?b")
@example("http://h.test:54321/a?b=2&b=1&a")
@example("http://h.test/?a&&b")
@example("http://h.test/?a&b&a=")
@example("http://h.test/x?/../y")
def test_what_is_canonical_at_a_glance_comes_out_of_the_thorough_way_unchanged(url):
    cleaned = clean_url(url)
    at_a_glance = urls._CANONICAL
    urls._CANONICAL = lambda _: None
    try:
        thorough = canonicalize(cleaned)
    finally:
        urls._CANONICAL = at_a_glance
    assert canonicalize(cleaned) == thorough


REFERENCES = st.one_of(
    st.builds("{}{}{}".format, PATHS, QUERIES, FRAGMENTS), st.builds("/{}{}{}".format, PATHS, QUERIES, FRAGMENTS), URLS
)


@UNHURRIED
@given(URLS, REFERENCES)
@example("http://h.test/a/../b/c", "d")
@example("http://h.test/a/b?c/d", "e")
@example("http://h.test/a//b", "c")
@example("http://h.test?q", "a")
def test_the_short_way_to_join_gives_what_the_thorough_one_does(base, reference):
    base = clean_url(base)
    assert join(base, reference) == urls._resolve(base, reference.strip().translate(urls._DROPPED))


@UNHURRIED
@given(
    URLS | st.sampled_from(["http://h.test", "HTTP://H.test/a/b", "http://h.test/%zz/", "http://h.test/ü/"]), REFERENCES
)
@example("http://h.test:54321/a/b?c", "d/e.html?f=g&h#i")
@example("http://h.test/a/./b", "c")
@example("http://h.test/a", "b%2")
@example("http://h.test/a", "b?")
@example("http://h.test/a", "b?c'd")
@example("http://h.test/a", "%2e%2e/b")
@example("http://h.test/a", "b#")
def test_a_link_at_a_glance_is_what_joining_and_cleaning_make_of_it(base, reference):
    link = urls.join_plain(urls.place_of(base), reference)
    if link is not None:
        joined = urls._resolve(base, reference.strip().translate(urls._DROPPED))
        assert link == urls._parsed_clean(joined, "utf-8")


@UNHURRIED
@given(
    URLS | st.sampled_from(["http://h.test", "HTTP://H.test/a", "http://h.test?a/b", "http://h.test#/b", "http://h"])
)
def test_the_place_of_a_page_is_that_of_its_folder(base):
    assert urls.place_of(base) == urls._place_of_folder.__wrapped__(base)


@pytest.mark.parametrize("port", [0, 1, 80, 443, 8080, 54321, 59999, 60000, 64999, 65000, 65535, 65536, 99999])
def test_a_port_is_a_number_up_to_65535(port):
    url = f"http://h.test:{port}/"
    if port > 65535:
        with pytest.raises(ValueError, match="not a usable URL"):
            clean_url(url)
    else:
        assert clean_url(url) == url
        assert canonicalize(url) == (url if port != 80 else "http://h.test/")


@pytest.mark.parametrize(
    ("reference", "expected"),
    {
        "///other.test/x": "http://other.test/x",
        "/\\/other.test/x": "http://other.test/x",
        "\\\\other.test\\x?a\\b": "http://other.test/x?a\\b",
        "http:///other.test/x": "http://other.test/x",
        "http:\\\\other.test\\x": "http://other.test/x",
        "https:/other.test/x": "https://other.test/x",
        "https:other.test/x": "https://other.test/x",
        "HTTP:x": "http://a.test/b/x",
        "http:/x": "http://a.test/x",
        "d\\x?e:f": "http://a.test/b/d/x?e:f",
        "data:a\\b": "data:a\\b",
    }.items(),
)
def test_join_takes_any_number_of_slashes_either_way_leaning_as_browsers_do(reference, expected):
    assert join("http://a.test/b/c", reference) == expected


@UNHURRIED
@given(URLS, st.builds("{}{}".format, PATHS, QUERIES))
@example("http://h.test/a/b", "../../../c")
@example("http://h.test/a/b", "./")
@example("http://h.test/a/b?c", "?d")
@example("http://h.test/a/b?c", "")
def test_join_agrees_with_the_standard_library_on_plain_references(base, reference):
    base = clean_url(base).partition("#")[0].rstrip("?").replace(";", "")
    reference = reference.replace("\\", "").replace(";", "").strip()
    if "//" in base[8:] + "/" + reference or ":" in reference or reference.endswith("?") or "//" in reference:
        return  # where urljoin drops what RFC 3986 and browsers keep
    assert clean_url(join(base, reference)) == clean_url(urljoin(base, reference))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        # RFC 3986 §5.4
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("http:g", "http://a/b/c/g"),
        # what browsers do beyond it
        ("\\g\\h", "http://a/g/h"),
        ("  g\n", "http://a/b/c/g"),
        ("g\n/h\t", "http://a/b/c/g/h"),
        ("g//h", "http://a/b/c/g//h"),
        ("javascript:void(0)", "javascript:void(0)"),
        ("mailto:x@y.z", "mailto:x@y.z"),
        ("https://g/x", "https://g/x"),
        ("/", "http://a/"),
    ],
)
def test_references_are_resolved_as_browsers_do(reference, expected):
    assert join("http://a/b/c/d;p?q", reference) == expected


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("  http://h.test/a \n", "http://h.test/a"),
        ("HTTP://H.Test/A", "http://h.test/A"),
        ("http://h.test/a b", "http://h.test/a%20b"),
        ("http://h.test/ä?q=ä", "http://h.test/%C3%A4?q=%C3%A4"),
        ("http://münchen.de/", "http://xn--mnchen-3ya.de/"),
        ("http://h.test/a/../b/./c", "http://h.test/b/c"),
        ("http://h.test/a?b=../c", "http://h.test/a?b=../c"),
        ("http://h.test/%7Ea", "http://h.test/%7Ea"),
    ],
)
def test_urls_are_cleaned_as_browsers_do(written, asked):
    assert clean_url(written) == asked


def test_the_query_is_encoded_as_the_page_is_and_the_path_as_utf8():
    assert clean_url("http://h.test/中?q=中", encoding="gb18030") == "http://h.test/%E4%B8%AD?q=%D6%D0"


def test_characters_that_the_encoding_lacks_are_sent_as_references():
    assert clean_url("http://h.test/?q=é", encoding="cp1251") == "http://h.test/?q=%26%23233%3B"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h.test",
        "/a",
        "//h.test/",
        "ftp://h.test/",
        "mailto:a@b.c",
        "http://",
        "http:///a",
        "http://ex ample.com/",
        "http://h.test:99999/",
        "http://h.test:1\u0663/",
        "http://[::1/",
        "http://h.test/\ud800",
    ],
)
def test_what_is_no_usable_url_is_refused_naming_it(url):
    with pytest.raises(ValueError, match="URL"):
        clean_url(url)


def test_a_url_that_is_no_string_is_a_type_error():
    with pytest.raises(TypeError, match="bytes"):
        clean_url(b"http://h.test/")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h.test", "http://h.test:80/"),
        ("http://H.test/%7ea", "http://h.test/~a"),
        ("http://h.test/?b=1&a=2", "http://h.test/?a=2&b=1"),
        ("http://h.test/a#x", "http://h.test/a"),
        ("http://h.test/%e4", "http://h.test/%E4"),
        ("http://h.test/a/%2e%2E/b", "http://h.test/b"),
        ("http://h.test/a?", "http://h.test/a"),
    ],
)
def test_spellings_of_one_page_have_one_canonical_form(one, other):
    assert canonicalize(one) == canonicalize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h.test/a", "http://h.test/A"),
        ("http://h.test/a", "http://h.test/a/"),
        ("http://h.test/a%2Fb", "http://h.test/a/b"),
        ("http://h.test/?a=%26", "http://h.test/?a=&"),
        ("http://h.test/?a=1", "http://h.test/?a=1&a=1"),
        ("http://h.test/", "https://h.test/"),
    ],
)
def test_different_pages_stay_different(one, other):
    assert canonicalize(one) != canonicalize(other)


@pytest.mark.parametrize("tail", ["?x", "|", "#", " "])
def test_no_url_takes_time_without_end(tail):
    url = "http://h.test/" + "a" * 5000 + "/b" * 5000 + tail
    started = time.perf_counter()
    canonicalize(url)
    join("http://h.test/", "a" * 5000 + "/b" * 5000 + tail)
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h.test/a?b", "http://h.test:80"),
        ("https://h.test", "https://h.test:443"),
        ("https://h.test:8443/", "https://h.test:8443"),
        ("http://u:p@h.test/", "http://h.test:80"),
        ("http://[::1]:81/", "http://[::1]:81"),
        ("HTTP://H.TEST/", "http://h.test:80"),
    ],
)
def test_a_site_is_scheme_host_and_port(url, expected):
    assert site(url) == expected


def test_what_is_no_web_address_has_no_site():
    with pytest.raises(ValueError, match="mailto"):
        site("mailto:a@b.c")


@UNHURRIED
@given(URLS)
def test_a_url_and_its_canonical_form_are_of_one_site(url):
    assert site(canonicalize(url)) == site(clean_url(url))


def test_params_go_before_the_fragment_and_behind_what_is_there():
    assert add_params("http://h.test/a?b=1#c", {"d": [2, 3], "e": None}) == "http://h.test/a?b=1&d=2&d=3#c"
    assert add_params("http://h.test/a", "x=1") == "http://h.test/a?x=1"
    assert add_params("http://h.test/?", {"x": "中"}, encoding="gb18030") == "http://h.test/?x=%D6%D0"
    assert add_params("http://h.test/", None) == "http://h.test/"


def test_a_form_is_encoded_in_the_encoding_of_its_page():
    assert encode_form([("a", "中 "), ("b", 1)], encoding="gb18030") == "a=%D6%D0+&b=1"


def test_the_short_ways_are_taken_for_ordinary_links():
    """Else the tests above compare the thorough way with itself."""
    assert urls._CLEAN("http://h.test/a-b/c_d.html?x=1&y=%20#top")
    assert urls._CANONICAL("http://h.test/a-b/c_d.html")
    assert all(urls._PLAIN_REFERENCE(one) for one in ("a", "/", "a/", "/a/b.html?c=d/e#f", "b.html", "a/b/"))
    assert not any(urls._PLAIN_REFERENCE(one) for one in ("", "//a", "../a", "a:b", "?a", "#a", " a", "a\n"))
    assert urls._CANONICAL("https://h.test:54321/a//b?x=1&a=2")
    assert urls.join_plain(urls.place_of("http://h.test:54321/a/b"), "c%20d?e") == "http://h.test:54321/a/c%20d?e"
    assert isinstance(urls._ESCAPE, re.Pattern)
