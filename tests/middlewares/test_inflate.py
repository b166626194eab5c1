"""Content-Encoding undone: every coding, every fault, and within bounds."""

from __future__ import annotations

import gzip
import zlib

import pytest

from scrapy_plus.errors import BodyCorrupt, BodyTooLarge
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.compression import Compression
from scrapy_plus.middlewares.inflate import ACCEPTED, DECODERS, inflate

PAGE = b"<p>tea and more tea</p>" * 5000
LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


def brotli(data: bytes) -> bytes:
    return pytest.importorskip("brotli").compress(data)


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").compress(data)


CODINGS = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate as zlib": ("deflate", zlib.compress),
    "deflate as raw": ("deflate", raw_deflate),
    "br": ("br", brotli),
    "zstd": ("zstd", zstd),
}
every_coding = pytest.mark.parametrize(("coding", "compress"), CODINGS.values(), ids=CODINGS)


@every_coding
@pytest.mark.parametrize("data", [PAGE, b"x", b"", bytes(range(256)) * 4000], ids=["page", "byte", "empty", "binary"])
def test_a_body_comes_out_as_it_was(coding, compress, data):
    assert inflate(compress(data), [coding], LIMIT) == (data, [], True)


@every_coding
@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_a_body_that_is_cut_is_corrupt_or_kept_as_far_as_it_goes(coding, compress, share):
    data = b"".join(b"%d," % (i * i) for i in range(40_000))
    whole = compress(data)
    cut = whole[: max(1, min(len(whole) - 1, int(len(whole) * share)))]
    with pytest.raises(BodyCorrupt, match=coding):
        inflate(cut, [coding], LIMIT)
    body, _, is_whole = inflate(cut, [coding], LIMIT, keep_partial=True)
    assert not is_whole and data.startswith(body)


@every_coding
def test_a_body_that_is_no_such_stream_is_corrupt(coding, compress):
    compress(b"")
    with pytest.raises(BodyCorrupt):
        inflate(b"<html>plain text, whatever the header says</html>", [coding], LIMIT)


@pytest.mark.parametrize("place", [12, 200, -6])
def test_a_gzip_body_with_a_wrong_byte_is_corrupt(place):
    broken = bytearray(gzip.compress(bytes(i * i % 251 for i in range(5000))))
    broken[place] ^= 0x55
    with pytest.raises(BodyCorrupt):
        inflate(bytes(broken), ["gzip"], LIMIT)


@every_coding
def test_a_bomb_is_stopped_near_the_limit(coding, compress):
    bomb = compress(bytes(48 << 20))
    assert len(bomb) < 1 << 20
    made = 0
    with pytest.raises(BodyTooLarge):
        inflate(bomb, [coding], LIMIT)
    for piece in DECODERS[coding](bomb, LIMIT):
        made = max(made, len(piece))
    assert made <= 32 << 20


@every_coding
def test_a_body_of_exactly_the_limit_is_taken(coding, compress):
    assert inflate(compress(PAGE), [coding], len(PAGE))[0] == PAGE
    with pytest.raises(BodyTooLarge):
        inflate(compress(PAGE), [coding], len(PAGE) - 1)


def test_a_bomb_within_a_bomb_is_stopped():
    with pytest.raises(BodyTooLarge):
        inflate(gzip.compress(gzip.compress(bytes(48 << 20))), ["gzip", "gzip"], LIMIT)


def test_all_members_of_a_gzip_body_are_read_and_garbage_after_them_is_not():
    assert inflate(gzip.compress(b"tea") + gzip.compress(b"pot"), ["gzip"], LIMIT)[0] == b"teapot"
    assert inflate(gzip.compress(b"tea") + b"\0\0garbage", ["gzip"], LIMIT) == (b"tea", [], True)
    with pytest.raises(BodyCorrupt):
        inflate(gzip.compress(b"tea") + gzip.compress(b"pot")[:-3], ["gzip"], LIMIT)


def test_codings_are_undone_in_reverse():
    body = zlib.compress(gzip.compress(PAGE))
    assert inflate(body, ["gzip", "identity", "deflate"], LIMIT) == (PAGE, [], True)


def test_what_is_before_an_unknown_coding_is_left():
    assert inflate(gzip.compress(b"x"), ["deflate", "rot13", "gzip"], LIMIT) == (b"x", ["deflate", "rot13"], True)
    assert inflate(b"x", ["utf-8"], LIMIT) == (b"x", ["utf-8"], True)


def answer(body, coding="gzip", status=200, meta=None, **options):
    request = Request("http://a.test/", meta=meta)
    headers = {"Content-Encoding": coding, "Content-Type": "text/plain"}
    return Compression(**options).process_response(
        request, Response(request.url, status, headers, body, request=request)
    )


def test_what_can_be_inflated_is_asked_for_unless_the_request_says_itself():
    request = Request("http://a.test/")
    Compression().process_request(request)
    assert request.headers["Accept-Encoding"] == ACCEPTED and ACCEPTED.startswith("gzip, deflate")
    own = Request("http://a.test/", headers={"accept-encoding": "identity"})
    Compression().process_request(own)
    assert own.headers["Accept-Encoding"] == "identity"


def test_the_header_goes_with_the_coding():
    response = answer(gzip.compress(b"tea"), "GZIP")
    assert (response.body, response.text, dict(response.headers)) == (b"tea", "tea", {"Content-Type": "text/plain"})
    assert answer(gzip.compress(b"tea"), "rot13, gzip").headers["content-encoding"] == "rot13"


def test_an_empty_body_is_not_inflated():
    assert answer(b"").body == b""


def test_a_cut_body_is_a_failure_that_names_the_site():
    with pytest.raises(BodyCorrupt, match=r"http://a\.test:80"):
        answer(gzip.compress(PAGE)[:-4])


@pytest.mark.parametrize("options", [{"fail_on_dataloss": False}, {"meta": {"download_fail_on_dataloss": False}}])
def test_a_cut_body_is_kept_and_flagged_when_loss_is_forgiven(options):
    response = answer(gzip.compress(PAGE)[:-4], **options)
    assert (response.body, response.flags) == (PAGE, ["dataloss"])


def test_the_request_may_set_its_own_limit():
    with pytest.raises(BodyTooLarge):
        answer(gzip.compress(PAGE), meta={"download_maxsize": 10})
    assert answer(gzip.compress(PAGE), max_bytes=10, meta={"download_maxsize": 0}).body == PAGE


@pytest.mark.parametrize("status", [302, 404, 503])
def test_an_error_with_a_broken_body_is_still_that_error(status):
    response = answer(b"plain", status=status)
    assert (response.status_code, response.body, response.flags) == (status, b"plain", ["dataloss"])
