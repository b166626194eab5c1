"""Header fields that are read when they are asked for are the same as those that are read at once."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_plus.http.headers import Headers
from scrapy_plus.transport.http1 import parse_head
from scrapy_plus.transport.raw_headers import RawHeaders

PIECES = st.sampled_from(
    [b"A", b"a", b"B-c", b":", b" ", b"\t", b"\r\n", b"\n", b"\r", b"x: y", b"\x85", b"\xa0", b"\xff", b"\0", b"\x1c"]
)


@example(b"\rx: y")
@given(st.lists(PIECES, max_size=20).map(b"".join))
def test_any_bytes_give_the_same_fields(lines):
    head = b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\n"
    fields = Headers(parse_head(head).fields)
    assert list(RawHeaders(head).pairs()) == list(fields.pairs())
    for name in ("A", "b-C", "x", "A:", "", " A", "\x85", "HTTP/1.1 200 OK\r\nA"):
        raw = RawHeaders(head)
        assert raw.get(name, "none") == fields.get(name, "none")
        assert (name in RawHeaders(head)) == (name in raw) == (name in fields)
        assert raw.getlist(name) == fields.getlist(name)


def test_they_are_a_mapping_as_any():
    headers = RawHeaders(b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\nSet-Cookie: x\r\n\r\n")
    assert (headers["a"], headers.getlist("A"), len(headers), "set-cookie" in headers) == ("1, 2", ["1", "2"], 2, True)
    copied = headers.copy()
    headers["a"] = "3"
    assert headers["A"] == headers.get("A") == "3" and copied["A"] == "1, 2" and type(copied) is Headers
