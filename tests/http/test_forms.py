"""Forms of pages, sent as the HTML standard has it."""

from __future__ import annotations

import io
from urllib.parse import parse_qsl

import pytest

from scrapy_plus import FormRequest, Request, Spider, crawl
from scrapy_plus.http.codec import decode, encode
from scrapy_plus.http.response import Response
from scrapy_plus.rules.fingerprint import fingerprint
from scrapy_plus.transport.requests_session import RequestsTransport
from tests.transport.servers import serving

URL = "http://h.test/d/p?old=1#f"


def page(body: str, *, encoding: str = "utf-8", url: str = URL) -> Response:
    headers = {"Content-Type": f"text/html; charset={encoding}"}
    return Response(url, headers=headers, body=body.encode(encoding, "xmlcharrefreplace"))


def fields(request: Request, encoding: str = "utf-8") -> list[tuple[str, str]]:
    text = request.body.decode() if request.method == "POST" else request.url.partition("?")[2]
    return parse_qsl(text, keep_blank_values=True, encoding=encoding)


# what stands in the form, and what is sent of it
CONTROLS = {
    "<input name=a value=1>": [("a", "1")],
    "<input name=a>": [("a", "")],
    "<input value=1>": [],
    "<input name='' value=1>": [],
    "<input type=hidden name=t value='x y&amp;z'>": [("t", "x y&z")],
    "<input type=odd name=a value=1><input type=number name=b value=2>": [("a", "1"), ("b", "2")],
    "<input name=a disabled value=1>": [],
    "<fieldset disabled><input name=a></fieldset><input name=b>": [("b", "")],
    "<fieldset disabled><legend><input name=a></legend><legend><input name=c></legend></fieldset>": [("a", "")],
    "<datalist><input name=a></datalist>": [],
    "<input type=checkbox name=a><input type=checkbox name=b checked><input type=checkbox name=c value=3 checked>": [
        ("b", "on"), ("c", "3"),
    ],
    "<input type=radio name=r value=1><input type=radio name=r value=2 checked>": [("r", "2")],
    "<input type=radio name=r value=1 checked><input type=radio name=r value=2 checked>": [("r", "2")],
    "<input type=radio name=r value=1>": [],
    "<input type=RADIO name=r checked>": [("r", "on")],
    "<textarea name=t>\nline\nnext</textarea>": [("t", "line\r\nnext")],
    "<textarea name=t></textarea>": [("t", "")],
    "<select name=s><option>A  b</option><option value=2>B</option></select>": [("s", "A b")],
    "<select name=s><option value=1><option value=2 selected></select>": [("s", "2")],
    "<select name=s><option value=1 selected><option value=2 selected></select>": [("s", "2")],
    "<select name=s><option value=1 disabled><option value=2></select>": [("s", "2")],
    "<select name=s><optgroup disabled><option value=1></optgroup><option value=2></select>": [("s", "2")],
    "<select name=s><option value='' selected>-</option></select>": [("s", "")],
    "<select name=s><option value=1 selected disabled><option value=2></select>": [],
    "<select name=s multiple><option value=1><option value=2></select>": [],
    "<select name=s multiple><option value=1 selected><option value=2 selected></select>": [("s", "1"), ("s", "2")],
    "<select name=s size=4><option value=1></select>": [],
    "<select name=s></select>": [],
    "<input type=file name=f>": [("f", "")],
    "<input type=reset name=r value=1><button type=button name=b>x</button><input type=button name=c>": [],
    "<input type=submit name=go value=Go><input type=submit name=no value=No>": [("go", "Go")],
    "<button name=b value=1>x</button>": [("b", "1")],
    "<button name=b>x</button>": [("b", "")],
    "<button type=odd name=b value=1>x</button>": [("b", "1")],
    "<input type=submit disabled name=a><input type=submit name=b value=2>": [("b", "2")],
    "<input type=image name=i value=9>": [("i.x", "0"), ("i.y", "0")],
    "<input type=image>": [("x", "0"), ("y", "0")],
    "<input name=b value=1><input name=a value=2><input name=b value=3>": [("b", "1"), ("a", "2"), ("b", "3")],
    "<input type=hidden name=_charset_ value=x>": [("_charset_", "utf-8")],
    "<input name=o form=other>": [],
    "</form><input name=late form=f value=1><form>": [("late", "1")],
}  # fmt: skip


@pytest.mark.parametrize(("controls", "expected"), CONTROLS.items())
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_form_sends_what_a_browser_would(controls, expected, method):
    request = page(f"<form id=f method={method} action=/go>{controls}</form>").form_request()
    assert request.method == method.upper()
    assert fields(request) == expected


ACTIONS = [
    ("", "post", URL.partition("#")[0]),
    ("action=''", "post", URL.partition("#")[0]),
    ("action=?x=1", "post", "http://h.test/d/p?x=1"),
    ("action=' /go '", "post", "http://h.test/go"),
    ("action=//b.test/go", "post", "http://b.test/go"),
    ("action=/go?x=1#y", "get", "http://h.test/go?a=1"),
    ("", "get", "http://h.test/d/p?a=1"),
    ("action=/go", "dialog", "http://h.test/go?a=1"),
    ("action=/go", "odd", "http://h.test/go?a=1"),
]


@pytest.mark.parametrize(("action", "method", "url"), ACTIONS)
def test_a_form_is_sent_to_its_action(action, method, url):
    request = page(f"<form {action} method={method}><input name=a value=1></form>").form_request()
    assert request.full_url == url


def test_an_action_heeds_the_base_and_none_does_not():
    body = "<base href=http://b.test/x/><form action=go method=post></form><form method=post></form>"
    assert [page(body).form_request(number=n).url for n in (0, 1)] == ["http://b.test/x/go", URL]


def test_an_action_that_is_no_page_is_refused():
    with pytest.raises(ValueError):
        page("<form action='javascript:x' method=post></form>").form_request()


MANY = """<form id=one><input name=a value=1></form><form name=two><input name=a value=2></form>
<div class=box><form><p><input id=inside name=a value=3></p></form></div>"""
CHOICES = [
    ({}, "1"),
    ({"id": "one"}, "1"),
    ({"name": "two"}, "2"),
    ({"number": 2}, "3"),
    ({"number": -1}, "3"),
    ({"css": ".box form"}, "3"),
    ({"css": "#inside"}, "3"),
    ({"xpath": "//form[2]"}, "2"),
]


@pytest.mark.parametrize(("which", "value"), CHOICES)
def test_a_form_is_chosen(which, value):
    assert fields(page(MANY).form_request(**which)) == [("a", value)]


@pytest.mark.parametrize("which", [{"id": "no"}, {"number": 3}, {"css": "b"}, {"css": "div"}, {"name": "one"}])
def test_a_form_that_is_not_there_is_named_with_those_that_are(which):
    with pytest.raises(ValueError, match="one, two, unnamed"):
        page(MANY).form_request(**which)


BUTTONS = """<form method=post action=/f><input type=submit name=a value=A><input type=submit name=b id=bb value=B>
<button name=c value=C formaction=/c formmethod=get>Call  me</button></form>"""
CLICKS = [
    (None, [("a", "A")]),
    (True, [("a", "A")]),
    (False, []),
    ("b", [("b", "B")]),
    ("bb", [("b", "B")]),
    ("B", [("b", "B")]),
    ("Call me", [("c", "C")]),
    ({"name": "b"}, [("b", "B")]),
    ({"nr": 1}, [("b", "B")]),
    ({"value": "A", "type": "submit"}, [("a", "A")]),
]


@pytest.mark.parametrize(("click", "expected"), CLICKS)
def test_a_button_is_pressed(click, expected):
    assert fields(page(BUTTONS).form_request(click=click)) == expected


def test_a_button_may_send_the_form_elsewhere():
    request = page(BUTTONS).form_request(click="c")
    assert (request.method, request.url) == ("GET", "http://h.test/c?c=C")


@pytest.mark.parametrize("click", ["no", {"type": "submit"}, {"nr": 9}])
def test_a_button_that_is_none_or_several_is_refused(click):
    with pytest.raises(ValueError, match="buttons of the form"):
        page(BUTTONS).form_request(click=click)


def test_given_fields_take_the_place_of_those_of_the_page():
    form = page(
        "<form method=post><input name=a value=1><input name=b value=2><input name=a value=3><input name=c></form>"
    )
    request = form.form_request({"a": ["x", "y"], "c": None, "new": 5})
    assert fields(request) == [("a", "x"), ("a", "y"), ("b", "2"), ("new", "5")]
    assert fields(form.form_request([("b", "1"), ("b", "2")]))[1:3] == [("b", "1"), ("b", "2")]


def test_a_form_is_written_in_the_encoding_of_the_page_or_its_own():
    body = "<form method=post {}><input name=q value='茶€'></form>"
    assert page(body, encoding="gb18030").form_request().body == b"q=%B2%E8%A2%E3"
    assert page(body, encoding="iso-8859-1").form_request().body == b"q=%26%2333590%3B%80"
    assert (
        page(body.format("accept-charset='odd utf-8'"), encoding="gb18030").form_request().body
        == b"q=%E8%8C%B6%E2%82%AC"
    )
    assert page(body, encoding="utf-16").form_request().body == b"q=%E8%8C%B6%E2%82%AC"


def test_other_arguments_are_the_requests():
    request = page("<form><input name=a></form>").form_request(
        method="POST", callback="found", meta={"n": 1}, headers={"X": "y"}, priority=3, dont_filter=True
    )
    assert (request.method, request.parse, request.meta, request.priority, request.filter) == (
        "POST",
        "found",
        {"n": 1},
        3,
        False,
    )
    assert (request.headers["X"], request.content_type) == ("y", "application/x-www-form-urlencoded")


UPLOAD = """<form method=post action=/up enctype=multipart/form-data><input type=hidden name=token value=t>
<input type=file name=doc><textarea name=note>a
b</textarea></form>"""


def test_a_file_goes_up_in_a_multipart_body():
    request = page(UPLOAD).form_request(files={"doc": ('r"1.txt', b"\x00\xff", "text/plain")})
    kind = request.headers["Content-Type"]
    line = kind.partition("boundary=")[2].encode()
    assert kind.startswith("multipart/form-data; boundary=") and request.method == "POST"
    assert request.body == b"".join(
        b"--" + line + b"\r\n" + part + b"\r\n"
        for part in (
            b'Content-Disposition: form-data; name="token"\r\n\r\nt',
            b'Content-Disposition: form-data; name="doc"; filename="r%221.txt"\r\n'
            b'Content-Type: text/plain\r\n\r\n\x00\xff',
            b'Content-Disposition: form-data; name="note"\r\n\r\na\r\nb',
        )
    ) + b"--" + line + b"--\r\n"  # fmt: skip


def test_a_file_that_is_not_chosen_is_sent_as_an_empty_one():
    body = page(UPLOAD).form_request().body
    assert b'name="doc"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n' in body


FILES = [
    (b"x", ("file", b"x", "application/octet-stream")),
    ("é", ("file", "é".encode(), "application/octet-stream")),
    (("a.png", b"x"), ("a.png", b"x", "image/png")),
    (("a.png", io.BytesIO(b"x")), ("a.png", b"x", "image/png")),
    (("a", "x", "text/csv"), ("a", b"x", "text/csv")),
]


@pytest.mark.parametrize(("given", "expected"), FILES)
def test_a_file_may_be_given_in_several_ways(given, expected):
    body = Request("http://h.test/", files={"f": given}).body
    name, content, kind = expected
    assert f'name="f"; filename="{name}"\r\nContent-Type: {kind}\r\n\r\n'.encode() + content + b"\r\n" in body


@pytest.mark.parametrize("given", [5, None, ("a",), ("a", 5)])
def test_what_is_no_file_is_refused(given):
    with pytest.raises(TypeError):
        Request("http://h.test/", files={"f": given})


def test_an_upload_is_stored_and_found_again():
    request = Request("http://h.test/", data={"a": "b"}, files={"f": ("x", bytes(range(256)))})
    again = decode(encode(request))
    assert (again.method, again.body, again.headers["Content-Type"]) == (
        "POST",
        request.body,
        request.headers["Content-Type"],
    )
    assert fingerprint(again) == fingerprint(
        Request("http://h.test/", data={"a": "b"}, files={"f": ("x", bytes(range(256)))})
    )
    assert fingerprint(again) != fingerprint(Request("http://h.test/", data={"a": "b"}, files={"f": ("x", b"")}))


def test_the_names_of_scrapy_do_the_same():
    form = page(BUTTONS)
    request = FormRequest.from_response(
        form, formnumber=0, formdata={"q": "1"}, clickdata={"name": "b"}, callback="found"
    )
    assert (request.url, request.parse, fields(request)) == ("http://h.test/f", "found", [("b", "B"), ("q", "1")])
    assert fields(FormRequest.from_response(form, formcss="form", dont_click=True)) == []
    assert fields(FormRequest.from_response(page(MANY), formname="two")) == [("a", "2")]
    made = FormRequest(URL, formdata={"a": "b"})
    copied = made.replace(url="http://h.test/x")
    assert isinstance(made, Request) and (copied.method, copied.body, copied.url) == ("POST", b"a=b", "http://h.test/x")
    assert decode(encode(made)).body == b"a=b"


def test_a_crawl_logs_in_by_the_form_of_a_page():
    def script(conversation):
        while head := conversation.hear():
            if head.startswith(b"POST /login?next=1 ") and head.endswith(b"token=t1&user=me&pass=s%26cret"):
                conversation.answer(b"welcome", b"Content-Type: text/html")
            else:
                conversation.answer(
                    b"<form method=post action='/login?next=1'><input type=hidden name=token value=t1>"
                    b"<input name=user><input type=password name=pass></form>", b"Content-Type: text/html",
                )  # fmt: skip

    class Logs(Spider):
        name = "logs"

        def parse(self, response):
            yield response.form_request({"user": "me", "pass": "s&cret"}, callback=self.inside)

        def inside(self, response):
            yield {"text": response.text}

    with serving(script) as server:
        Logs.start_urls = [server.url]
        assert crawl(Logs, RequestsTransport()).items == [{"text": "welcome"}]
