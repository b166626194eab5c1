"""What xpath() and css() give: lxml's lists, which answer Scrapy's questions too."""

from __future__ import annotations

import pytest
from lxml import etree, html

from scrapy_plus.http.response import Response
from scrapy_plus.http.selector import HtmlElement, SelectorList, Text, parse

PAGE = b"""<html><head><title>Shop</title></head><body>
<div class="quote good"><span class="text">A</span><small>Ann</small><a class="tag" href="/t/1">one</a
><a href="/t/2">two</a></div>
<div class="quote"><span class="text">B &amp; C</span><small>Bob</small></div>tail
<p id="price">Price: 12.50 EUR</p>
<form action="/go"><input name="q" value="x"><select name="s"><option value=1 selected>1</select></form><!-- note -->
</body></html>"""


@pytest.fixture
def page():
    return Response("http://h.test/", headers={"Content-Type": "text/html"}, body=PAGE)


# -- Scrapy's way


def test_text_and_attributes_by_css(page):
    assert page.css("title::text").get() == "Shop"
    assert page.css("span.text::text").getall() == ["A", "B & C"]
    assert page.css("a.tag::attr(href)").get() == "/t/1"
    assert page.css("a::attr(class)").getall() == ["tag"]


def test_nothing_found_gives_the_default(page):
    assert page.css("h9::text").get() is None
    assert page.css("h9::text").get(default="-") == "-"
    assert page.css("h9").getall() == []
    assert page.css("h9").attrib == {}
    assert page.css("h9").re_first(r"x", "-") == "-"


def test_elements_are_asked_again(page):
    found = [
        {"text": quote.css("span.text::text").get(), "author": quote.xpath(".//small/text()").get()}
        for quote in page.css("div.quote")
    ]
    assert found == [{"text": "A", "author": "Ann"}, {"text": "B & C", "author": "Bob"}]


def test_lists_are_asked_again(page):
    assert page.css("div.quote").css("small::text").getall() == ["Ann", "Bob"]
    assert page.xpath("//div").xpath("./small/text()").getall() == ["Ann", "Bob"]
    assert page.css("a")[1:].xpath("@href").getall() == ["/t/2"]
    assert page.css("a::text").css("b").getall() == []


def test_an_element_as_a_string_is_its_html_without_what_follows(page):
    assert (
        page.css("div.quote")[1].get()
        == '<div class="quote"><span class="text">B &amp; C</span><small>Bob</small></div>'
    )
    assert page.css("small").getall() == ["<small>Ann</small>", "<small>Bob</small>"]
    assert page.css("small")[0].getall() == ["<small>Ann</small>"]
    assert page.css("small")[0].extract() == page.css("small").extract_first() == "<small>Ann</small>"
    assert page.xpath("//comment()").get() == "<!-- note -->"


def test_attributes_of_an_element_and_of_the_first_of_a_list(page):
    assert page.css("a")[0].attrib["href"] == "/t/1"
    assert page.css("a").attrib["href"] == "/t/1"
    assert [a.attrib["href"] for a in page.css("a")] == ["/t/1", "/t/2"]


def test_regular_expressions(page):
    assert page.css("#price::text").re(r"(\d+)\.(\d+)") == ["12", "50"]
    assert page.css("#price::text").re_first(r"[\d.]+") == "12.50"
    assert page.css("a::attr(href)").re(r"/t/(\d)") == ["1", "2"]
    assert page.css("a")[1].re_first(r"/t/(?P<extract>\d)") == "2"
    assert page.css("#price::text")[0].re(r"\d+") == ["12", "50"]
    assert page.css("#price::text")[0].re_first("x", "none") == "none"


def test_xpath_variables_and_exslt_and_has_class(page):
    assert page.xpath("//a[@href=$where]/text()", where="/t/2").get() == "two"
    assert page.xpath(r"//a[re:test(@href, '/t/\d$')]/@href").getall() == ["/t/1", "/t/2"]
    assert page.xpath("//div[has-class('quote', 'good')]/small/text()").getall() == ["Ann"]
    assert page.xpath("//svg:a", namespaces={"svg": "http://www.w3.org/2000/svg"}) == []


def test_numbers_and_truths_are_given_as_text(page):
    assert page.xpath("count(//a)").get() == "2.0"
    assert page.xpath("string(//title)").get() == "Shop"
    assert page.xpath("//a = 'one'").get() == "1"
    assert page.xpath("boolean(//h9)").get() == "0"


# -- the course's way


def test_results_are_lists_of_what_lxml_gives(page):
    found = page.xpath("//div[@class='quote']")
    assert isinstance(found, list) and isinstance(found[0], html.HtmlElement)
    assert found[0].xpath("./span/text()")[0] == "B & C"
    assert page.xpath("//title/text()")[0] == "Shop"
    assert isinstance(page.xpath("//a/@href")[0], str)
    assert page.xpath("//h9") == [] and not page.xpath("//h9")
    assert len(page.xpath("//a")) == 2
    assert "".join(page.xpath("//small/text()")) == "AnnBob"


def test_lxml_methods_of_elements_still_work(page):
    link = page.xpath("//a")[0]
    assert link.get("href") == "/t/1" and link.get("none") is None and link.get("none", "-") == "-"
    assert link.text == "one" and link.getparent().tag == "div"
    assert link.getparent().text_content() == "AAnnonetwo"
    assert [child.tag for child in link.getparent()] == ["span", "small", "a", "a"]
    assert all(isinstance(child, HtmlElement) for child in link.getparent())
    assert etree.tostring(link.getparent()[1]) == b"<small>Ann</small>"
    assert dict(page.xpath("//form")[0].fields) == {"q": "x", "s": "1"}


def test_a_text_is_a_string_in_every_way():
    text = Text("tea")
    assert text == "tea" and {"tea": 1}[text] == 1 and text.upper() == "TEA" and isinstance(text, str)
    assert type(text.get()) is str and text.getall() == ["tea"] and text.extract() == "tea"
    assert type(SelectorList([text]).get()) is str


# -- errors


@pytest.mark.parametrize("expression", ["//a[", "//a[@x=$unknown]", "//a[unknown(.)]", "u:a", "", "has-class()"])
def test_a_bad_xpath_is_a_value_error_that_names_it(page, expression):
    with pytest.raises(ValueError, match="XPath") as caught:
        page.xpath(expression)
    assert repr(expression) in str(caught.value)


@pytest.mark.parametrize("expression", ["a[", "a::unknown", "a:unknown", "", "a::attr(", ">"])
def test_a_bad_css_selector_is_a_value_error_that_names_it(page, expression):
    with pytest.raises(ValueError, match="CSS") as caught:
        page.css(expression)
    assert repr(expression) in str(caught.value)


# -- parsing


@pytest.mark.parametrize(
    "body", [b"", b"   ", b"<!-- x -->", b"<!doctype html>", b"\xef\xbb\xbf", b"\x00\x00", b"<", b"\xff"]
)
@pytest.mark.parametrize("kind", ["text/html", "text/xml"])
def test_nothing_at_all_can_be_asked_too(body, kind):
    page = Response("http://h.test/", headers={"Content-Type": kind}, body=body)
    assert page.xpath("//a") == [] and page.css("a") == []


@pytest.mark.parametrize(
    "body",
    [
        b"<a href=/x>x",
        b"<table><a href=/x>x</b></table></p>",
        b"<p>\x00<a\x00 href=/x>x</a>",
        b"</html></body><a href='/x'>x</a>",
        b"<p>\xff\xfe\x80<a href=/x>x</a>",
        b"<p>\x01\x0b\x1f<a href=/x>x</a>",
        b"<p>&nosuch; &#0; &#xfffff; & <a href=/x>x</a>",
    ],
)
def test_links_of_broken_pages_are_found(body):
    assert Response("http://h.test/", body=body).xpath("//a/@href") == ["/x"]


@pytest.mark.parametrize("depth", [200, 300, 2000, 5000, 50_000])
def test_links_below_any_depth_are_found(depth):
    body = b"<div>" * depth + b"<a href=/x>x</a>" + b"</div>" * depth
    assert parse(body).xpath("//a/@href") == ["/x"]


def test_thousands_of_unclosed_tags_do_not_hide_what_follows():
    rows = b"".join(b"<font color=red><a href=/%d>x</a>" % number for number in range(3000))
    assert len(parse(rows).xpath("//a/@href")) == 3000


@pytest.mark.parametrize("encoding", ["gbk", "utf-8", "utf-16"])
def test_the_tree_has_the_text_of_the_page_whatever_it_declares(encoding):
    body = '<meta charset="gbk"><p>中文</p>'.encode(encoding)
    assert Response("http://h.test/", body=body, encoding=encoding).css("p::text").get() == "中文"


def test_broken_bytes_do_not_end_the_page():
    body = "<meta charset=gbk><p>中".encode("gbk") + b"\xff\x81<a href=/x>y</a>"
    assert Response("http://h.test/", body=body).xpath("//a/@href") == ["/x"]


# -- XML


def xml(body: bytes, kind: str = "application/xml") -> Response:
    return Response("http://h.test/feed", headers={"Content-Type": kind}, body=body)


@pytest.mark.parametrize(
    "kind", ["application/xml", "text/xml; charset=utf-8", "application/rss+xml", "APPLICATION/ATOM+XML"]
)
def test_xml_is_read_as_xml(kind):
    page = xml(b"<r><Item>a</Item><link>b</link><E/></r>", kind)
    assert page.xpath("//Item/text()").get() == page.css("Item::text").get() == "a"
    assert page.xpath("//link/text()").get() == "b"
    assert page.xpath("//E").get() == "<E/>"


def test_xhtml_is_read_as_html():
    page = xml(b"<html xmlns='http://www.w3.org/1999/xhtml'><A HREF=x>y</html>", "application/xhtml+xml")
    assert page.xpath("//a/@href") == ["x"]


def test_xml_declares_its_encoding_and_namespaces():
    page = xml('<?xml version="1.0" encoding="gb2312"?><r xmlns:m="urn:m"><m:a>中文</m:a></r>'.encode("gbk"))
    assert page.xpath("//m:a/text()", namespaces={"m": "urn:m"}).get() == "中文"
    assert page.xpath("//*[local-name()='a']/text()").get() == "中文"


def test_broken_xml_gives_what_can_be_read():
    assert xml(b"<r><a>1</a><b>&nosuch;<a>2</a></r>").xpath("//a/text()") == ["1", "2"]


def test_no_external_entity_is_ever_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    body = f'<!DOCTYPE r [<!ENTITY e SYSTEM "{secret.as_uri()}">]><r>&e;</r>'.encode()
    for kind in ("text/xml", "text/html"):
        page = xml(body, kind)
        assert "SECRET" not in page.xpath("//r").get()
        assert "SECRET" not in page.xpath("string(//r)").get()


def test_entities_that_grow_without_end_are_not_expanded():
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = f'<!DOCTYPE r [<!ENTITY e0 "ha">{levels}]><r>&e11;</r>'.encode()
    assert len(xml(body).xpath("string(//r)").get()) < 10_000
