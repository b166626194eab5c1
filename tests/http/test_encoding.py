"""The encoding of pages, declared and undeclared, and their text."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_plus.http import encoding as encodings
from scrapy_plus.http.encoding import decode, page_text, resolve

# The first draw builds tables of all characters, which takes seconds where nothing is cached.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SIMPLIFIED = "国务院办公厅关于进一步做好春节期间安全工作的通知"
TRADITIONAL = "台北市政府今天宣布，新的捷運路線將於明年春天正式通車。"
JAPANESE = "東京都は昨日、新しい図書館の開館時間について発表しました。"
KOREAN = "서울시는 오늘 새로운 지하철 노선을 내년 봄에 개통한다고 발표했다."
RUSSIAN = "Правительство Москвы сообщило сегодня об открытии новой станции метро."
FRENCH = "Le ministère a annoncé hier l'ouverture d'une nouvelle bibliothèque à côté de l'école."
PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1><p>{1}</p></body></html>"


def html(text: str, encoding: str, declared: str = "") -> bytes:
    return f"<html><head>{declared}<title>x</title></head><body><p>{text}</p></body></html>".encode(encoding)


# -- declared


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("utf-8", "utf-8"),
        ("UTF8", "utf-8"),
        ("gb2312", "gb18030"),
        ("GBK", "gb18030"),
        ("x-gbk", "gb18030"),
        ("gb18030", "gb18030"),
        ("big5", "big5hkscs"),
        ("iso-8859-1", "cp1252"),
        ("latin1", "cp1252"),
        ("us-ascii", "cp1252"),
        ("shift_jis", "cp932"),
        ("Shift-JIS", "cp932"),
        ("x-sjis", "cp932"),
        ("euc-jp", "euc_jp"),
        ("ks_c_5601-1987", "cp949"),
        ("ks_c_5601", "cp949"),
        ("euc-kr", "cp949"),
        ("windows-949", "cp949"),
        ("windows-1251", "cp1251"),
        ("koi8-r", "koi8-r"),
        ("utf-16", "utf-16-le"),
        (" GBK ", "gb18030"),
    ],
)
def test_labels_are_read_as_browsers_read_them(label, encoding):
    assert resolve(label) == encoding


@pytest.mark.parametrize(
    "label", ["", "nonsense", "hex", "base64", "rot13", "utf-7", "unicode_escape", "idna", "a\0b", "é"]
)
def test_labels_of_no_charset_name_none(label):
    assert resolve(label) is None


@pytest.mark.parametrize(
    "declared", ['<meta charset="gb2312">', '<meta http-equiv=Content-Type content="text/html; charset=gbk">']
)
def test_the_declaration_in_the_page_is_read(declared):
    encoding, text = page_text(html(SIMPLIFIED, "gbk", declared))
    assert encoding == "gb18030" and SIMPLIFIED in text


def test_an_xml_declaration_is_read():
    body = f'<?xml version="1.0" encoding="big5"?><r>{TRADITIONAL}</r>'.encode("big5")
    encoding, text = page_text(body)
    assert encoding == "big5hkscs" and TRADITIONAL in text


def test_a_declaration_in_a_comment_counts_for_nothing():
    body = html(SIMPLIFIED, "gbk", '<!-- <meta charset="utf-8"> --><meta charset="gbk">')
    assert page_text(body)[0] == "gb18030"


def test_explicit_goes_before_bom_before_header_before_declaration():
    body = html("é", "utf-8", '<meta charset="big5">')
    header = "text/html; charset=windows-1251"
    assert page_text(b"\xef\xbb\xbf" + body, header, "gbk")[0] == "gb18030"
    assert page_text(b"\xef\xbb\xbf" + body, header)[0] == "utf-8"
    assert page_text(body, header)[0] == "cp1251"
    assert page_text(body, "text/html")[0] == "big5hkscs"


@pytest.mark.parametrize(
    "header",
    ["text/html; charset=nonsense", "text/html; charset=", 'text/html; charset="', "charset", "; =", "hex", None],
)
def test_an_unknown_label_counts_as_absent(header):
    encoding, text = page_text(html(SIMPLIFIED, "gbk", '<meta charset="gbk">'), header)
    assert encoding == "gb18030" and SIMPLIFIED in text


def test_an_unknown_explicit_label_is_an_error():
    with pytest.raises(LookupError, match="nonsense"):
        page_text(b"", None, "nonsense")


def test_labels_that_only_the_web_knows_count_in_the_header():
    assert page_text(html(SIMPLIFIED, "gbk"), "text/html; charset=x-gbk")[0] == "gb18030"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides_and_is_no_text(encoding):
    assert page_text("<p>中</p>".encode(encoding), "text/html; charset=gbk")[1] == "<p>中</p>"


def test_utf16_without_a_mark_is_little_endian():
    assert page_text("<p>中</p>".encode("utf-16-le"), "text/html; charset=utf-16")[1] == "<p>中</p>"


def test_a_declaration_of_utf16_that_could_be_read_as_ascii_is_wrong():
    encoding, text = page_text(html(SIMPLIFIED, "utf-8", '<meta charset="utf-16">'))
    assert encoding == "utf-8" and SIMPLIFIED in text


def test_a_page_that_is_plainly_not_the_utf8_it_says_is_read_as_what_it_is():
    encoding, text = page_text(html(SIMPLIFIED, "gbk", '<meta charset="gbk">'), "text/html; charset=utf-8")
    assert encoding == "gb18030" and SIMPLIFIED in text


def test_utf8_that_calls_itself_something_else_is_read_as_utf8():
    encoding, text = page_text(html(SIMPLIFIED, "utf-8", '<meta charset="gb2312">'))
    assert encoding == "utf-8" and SIMPLIFIED in text


def test_a_short_text_does_not_refute_its_declaration():
    assert page_text("é".encode(), "text/html; charset=iso-8859-1") == ("cp1252", "Ã©")
    assert page_text(b"caf\xe9", "text/html; charset=utf-8") == ("utf-8", "caf\ufffd")


# -- undeclared


@pytest.mark.parametrize("text", [SIMPLIFIED, TRADITIONAL, JAPANESE, KOREAN, RUSSIAN, FRENCH, "plain", ""])
def test_undeclared_utf8_is_utf8(text):
    assert page_text(html(text, "utf-8")) == ("utf-8", html(text, "utf-8").decode())


TITLES = [
    ("gb18030", "新闻中心", SIMPLIFIED),
    ("gb18030", "红楼梦在线阅读", "满纸荒唐言，一把辛酸泪。都云作者痴，谁解其中味？"),
    ("gb18030", "天气预报", "明天白天多云转阴，有小雨，最高气温十八度。"),
    ("gb18030", "手机数码商城", "全场满二百元包邮，欢迎选购各类数码产品"),
    ("gb18030", "中文字符测试", "这是一个没有声明编码的网页，用来测试能不能读出来。"),
    ("big5", "最新消息", TRADITIONAL),
    ("big5", "紅樓夢", "滿紙荒唐言，一把辛酸淚。都云作者痴，誰解其中味？"),
    ("big5", "會員專區", "歡迎光臨本網站，請先登入會員帳號再訂購商品。"),
    ("cp932", "お知らせ", JAPANESE),
    ("cp932", "会社概要", "当社は一九八〇年に設立された電子部品のメーカーです。"),
    ("cp932", "ニュース", "プロ野球のドラフト会議が開かれ、十二人が指名された。"),
    ("euc-jp", "お知らせ", JAPANESE),
    ("euc-jp", "会社概要", "当社は一九八〇年に設立された電子部品のメーカーです。"),
    ("euc-jp", "ニュース", "プロ野球のドラフト会議が開かれ、十二人が指名された。"),
    ("cp949", "공지사항", KOREAN),
    ("cp949", "회사 소개", "저희 회사는 고객 여러분께 더 좋은 제품을 제공하기 위해 노력합니다."),
    ("cp949", "뉴스", "프로야구 한국시리즈가 다음 주 토요일에 시작된다."),
    ("cp1251", "Новости", RUSSIAN),
    ("cp1251", "О КОМПАНИИ", "Мы предлагаем широкий выбор товаров по низким ценам с доставкой по всей России."),
    ("cp1252", "Café des artistes", FRENCH),
    ("cp1252", "Über uns", "Die Universität Tübingen hat für Studierende neue Räume eröffnet."),
    ("cp1252", "Información", "El ministro anunció ayer la apertura de una nueva estación en España."),
]


@pytest.mark.parametrize(("encoding", "title", "sentence"), TITLES)
@pytest.mark.parametrize("repeats", [1, 3, 500])
def test_an_undeclared_title_and_a_sentence_are_read_right(encoding, title, sentence, repeats):
    page = PAGE.format(title, " ".join([sentence] * repeats))
    assert page_text(page.encode(encoding), "text/html")[1] == page


@pytest.mark.parametrize(
    ("encoding", "title"),
    [one[:2] for one in TITLES if one[0] != "cp1252"],
)
def test_an_undeclared_title_alone_is_read_right(encoding, title):
    page = f"<title>{title}</title>"
    assert page_text(page.encode(encoding))[1] == page


def test_scripts_before_the_text_do_not_hide_it():
    page = f"<html><script>{'var a = 1;' * 2000}</script><p>{SIMPLIFIED}</p>"
    assert page_text(page.encode("gbk"))[1] == page


def test_a_few_broken_bytes_do_not_change_what_an_undeclared_page_is():
    page = html(SIMPLIFIED * 5, "gbk")
    damaged = page[:90] + b"\xff" + page[90:]
    assert page_text(damaged)[0] == "gb18030"


def test_utf8_that_was_cut_or_damaged_is_still_utf8():
    whole = html(SIMPLIFIED, "utf-8")
    cut = whole[: whole.index(SIMPLIFIED.encode()) + 10]
    encoding, text = page_text(cut)
    assert encoding == "utf-8" and text.endswith(SIMPLIFIED[:3] + "\ufffd")


def test_undeclared_utf16_is_seen_by_its_zeros():
    for encoding in ("utf-16-le", "utf-16-be"):
        assert page_text("<p>中</p>".encode(encoding)) == (encoding, "<p>中</p>")


@UNHURRIED
@given(st.binary(max_size=200))
def test_any_bytes_have_a_text(body):
    for header in (None, "text/html; charset=gbk", "text/html; charset=big5", "text/html; charset=utf-16"):
        encoding, text = page_text(body, header)
        assert isinstance(text, str) and resolve(encoding) == encoding


# -- broken bytes

MULTIBYTE = ["utf-8", "gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "iso2022_jp"]


@pytest.mark.parametrize("encoding", MULTIBYTE)
def test_no_broken_character_takes_a_tag_with_it(encoding):
    for lead in range(0x80, 0x100):
        for more in (b"", b"0", b"0\x81", b"\x81", b"\xa1", b"\xfe", b"\xff"):
            text = decode(b"a" + bytes([lead]) + more + b"<p>b", encoding)
            assert text.startswith("a") and text.endswith("<p>b"), (lead, more)
            assert more not in (b"0", b"0\x81") or "0" in text or "\ufffd" not in text


@pytest.mark.parametrize("encoding", MULTIBYTE)
def test_a_lone_lead_byte_becomes_one_replacement_character(encoding):
    assert decode(b"\xff<p>" if encoding != "cp932" else b"\x81<p>", encoding).endswith("\ufffd<p>")


def test_the_euro_sign_of_gbk_is_read():
    assert decode(b"\x80 5", "gb18030") == "€ 5"


def test_the_circled_digits_of_euc_jp_are_read():
    assert decode(b"\xad\xa1\xad\xea<p>\xad<p>", "euc_jp") == "①㈱<p>\ufffd<p>"


# -- cost


def test_utf8_costs_little_more_than_its_decoding():
    body = html("<p class=x>中文 text</p>" * 20_000, "utf-8")
    started = time.perf_counter()
    for _ in range(20):
        body.decode()
    alone = time.perf_counter() - started
    started = time.perf_counter()
    for _ in range(20):
        page_text(body, "text/html")
    assert time.perf_counter() - started < 5 * alone + 0.1


def test_detection_looks_at_a_bounded_part_of_the_page():
    body = html(SIMPLIFIED * 100_000, "gbk")
    started = time.perf_counter()
    assert page_text(body)[0] == "gb18030"
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("tag", ["<meta charset=utf-8>", '<META  Charset = "UTF-8" />', "<meta charset='utf-8'>"])
@pytest.mark.parametrize(
    "start", ["", "<!DOCTYPE html>", "\n<!doctype HTML>\n<html lang='de'>\n<head>\n", "<html><head>"]
)
def test_a_page_that_begins_with_its_encoding_is_read_at_a_glance_as_by_a_search(start, tag):
    page = f"{start}{tag}<meta charset=latin-1><p>ä".encode()
    assert encodings._BEGINS_AS_UTF8(page)
    assert encodings._page_encoding(page) == encodings._page_encoding(b"<title>" + page) == "utf-8"


@pytest.mark.parametrize(
    "page",
    [b"<!--<meta charset=utf-8>-->", b"<meta charset=utf-16>", b"<meta charset=utf-8x>", b"<body><meta charset=utf-8>"]
    + [
        b"<meta name=x charset=utf-8>",
        b"<meta charset=utf-8",
        b"<meta charset='utf-8\">",
        b"<meta charset=utf-8/>",
        b"<html x='>'><meta charset=utf-8>",
    ],
)
def test_other_beginnings_are_searched(page):
    assert not encodings._BEGINS_AS_UTF8(page)
