"""Which domains are nobody's, and which hosts are one owner's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.cookies import Cookies
from scrapy_plus.middlewares.public_suffix import is_public_suffix, owned_domain

# host, its public suffix, the part that somebody registered
HOSTS = [
    ("www.example.com", "com", "example.com"),
    ("a.b.example.co.uk", "co.uk", "example.co.uk"),
    ("me.github.io", "github.io", "me.github.io"),
    ("x.me.github.io", "github.io", "me.github.io"),
    ("www.city.kawasaki.jp", "kawasaki.jp", "city.kawasaki.jp"),  # an exception to *.kawasaki.jp
    ("a.b.c.kawasaki.jp", "c.kawasaki.jp", "b.c.kawasaki.jp"),
    ("www.example.xn--55qx5d.cn", "xn--55qx5d.cn", "example.xn--55qx5d.cn"),
    ("www.shop.test", "test", "shop.test"),
    ("WWW.Example.COM.", "com", "example.com"),
]


@pytest.mark.parametrize(("host", "suffix", "owned"), HOSTS)
def test_a_name_has_a_public_suffix_and_an_owned_domain(host, suffix, owned):
    assert is_public_suffix(suffix)
    assert owned_domain(host) == owned


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "com", "co.uk"])
def test_what_has_no_owner_stands_for_itself(host):
    assert owned_domain(host) == host


@pytest.mark.parametrize("domain", ["example.com", "example.co.uk", "me.github.io", "city.kawasaki.jp", "shop.test"])
def test_an_owned_domain_is_no_public_suffix(domain):
    assert not is_public_suffix(domain)


# who sets it, for which domain, and which hosts are sent it
DOMAINS = [
    ("shop.co.uk", "co.uk", []),
    ("shop.co.uk", ".co.uk", []),
    ("shop.co.uk", "uk", []),
    ("shop.co.uk", "shop.co.uk", ["shop.co.uk", "www.shop.co.uk"]),
    ("me.github.io", "github.io", []),
    ("me.github.io", "me.github.io", ["me.github.io", "x.me.github.io"]),
    ("github.io", "github.io", ["github.io"]),  # the owner of a public suffix may have one for itself alone
    ("www.city.kawasaki.jp", "city.kawasaki.jp", ["www.city.kawasaki.jp", "city.kawasaki.jp"]),
    ("c.kawasaki.jp", "kawasaki.jp", []),
]
ASKED = sorted({host for _, _, hosts in DOMAINS for host in hosts} | {"you.github.io", "other.co.uk", "x.github.io"})


@pytest.mark.parametrize(("host", "domain", "sent_to"), DOMAINS)
def test_no_cookie_is_for_all_of_a_public_suffix(host, domain, sent_to):
    cookies = Cookies()
    request = Request(f"http://{host}/")
    cookies.process_response(request, Response(request.url, headers={"Set-Cookie": f"x=1; Domain={domain}"}))
    assert [asked for asked in ASKED if cookies.process_request(Request(f"http://{asked}/"))] == sorted(sent_to)


def test_nor_one_that_a_request_brings():
    cookies = Cookies()
    brought = [{"name": "x", "value": "1", "domain": "co.uk"}, {"name": "y", "value": "2", "domain": "shop.co.uk"}]
    cookies.process_request(Request("http://shop.co.uk/", cookies=brought))
    assert cookies.process_request(Request("http://other.co.uk/")) is None
    assert cookies.process_request(Request("http://www.shop.co.uk/")).headers["Cookie"] == "y=2"


def test_the_list_is_read_when_it_is_needed_and_not_before():
    code = "import scrapy_plus, sys; sys.exit('publicsuffixlist' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
