"""The head of an answer, as a table."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import BadAnswer
from scrapy_plus.transport.http1 import Frame, Head, chunk_size, frame, parse_head

HEADS = {
    b"HTTP/1.1 200 OK\r\nA: b\r\n": Head(11, 200, [("A", "b")]),
    b"HTTP/1.0 404": Head(10, 404, []),
    b"HTTP/1.1 200 \r\nA:b \t\r\nA:\r\n": Head(11, 200, [("A", "b"), ("A", "")]),
    b"HTTP/2 999 \xff\r\nN : v\r\n": Head(20, 999, [("N", "v")]),
    b"HTTP/1.1 200 OK\n: nameless\nno colon\nA: b:c": Head(11, 200, [("A", "b:c")]),
    b"HTTP/1.1 200 OK\r\n folded into nothing\r\nA: b\r\n\tc\r\n d": Head(11, 200, [("A", "b c d")]),
    "HTTP/1.1 200 OK\r\nA: Å…\r\nB: c".encode(): Head(11, 200, [("A", "Å…".encode().decode("latin-1")), ("B", "c")]),
}


@pytest.mark.parametrize(("raw", "head"), HEADS.items())
def test_a_head_is_read_line_by_line(raw, head):
    assert parse_head(raw) == head


@pytest.mark.parametrize(
    "line", [b"", b"HTTP/1.1", b"HTTP/1.1 2x0", b"HTTP/1.1 2000", b"http/1.1 200", b"HTTP/1.1 099 X"]
)
def test_no_status_line_is_no_answer(line):
    with pytest.raises(BadAnswer):
        parse_head(line)


LENGTH, CHUNKS = ("Content-Length", "5"), ("Transfer-Encoding", "Chunked")
FRAMES = [
    ("GET", 11, 200, [LENGTH], Frame(5, False, True)),
    ("GET", 11, 200, [], Frame(None, False, False)),
    ("GET", 11, 200, [CHUNKS], Frame(None, True, True)),
    ("GET", 11, 200, [CHUNKS, LENGTH], Frame(None, True, False)),
    ("GET", 11, 200, [("transfer-encoding", "identity"), LENGTH], Frame(5, False, True)),
    ("GET", 11, 200, [LENGTH, ("Connection", "TE, Close")], Frame(5, False, False)),
    ("GET", 10, 200, [LENGTH], Frame(5, False, False)),
    ("GET", 10, 200, [LENGTH, ("connection", "Keep-Alive")], Frame(5, False, True)),
    ("HEAD", 11, 200, [("Content-Length", "nonsense")], Frame(0, False, True)),
    ("GET", 11, 204, [LENGTH], Frame(0, False, True)),
    ("GET", 11, 304, [CHUNKS], Frame(0, False, True)),
]


@pytest.mark.parametrize(("method", "version", "status", "fields", "expected"), FRAMES)
def test_the_frame_of_a_body_follows_from_its_head(method, version, status, fields, expected):
    assert frame(method, Head(version, status, fields)) == expected


@pytest.mark.parametrize("length", ["", "a", "-5", "+5", "5.0", "5 5", "5,6", "²", "1" * 30, "0x5"])
def test_a_length_that_is_none_is_no_answer(length):
    with pytest.raises(BadAnswer):
        frame("GET", Head(11, 200, [("Content-Length", length)]))


@pytest.mark.parametrize(("line", "size"), [(b"a\r\n", 10), (b"0\r\n", 0), (b" 1F ;x=y\r\n", 31), (b"00012\n", 18)])
def test_a_chunk_size_is_hexadecimal(line, size):
    assert chunk_size(line) == size


@pytest.mark.parametrize(
    "line", [b"\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b"1_0\r\n", b"g\r\n", b"1 2\r\n", b"f" * 16]
)
def test_other_chunk_sizes_are_refused(line):
    with pytest.raises(BadAnswer):
        chunk_size(line)
