"""Public and private addresses in every way to write them."""

from __future__ import annotations

import pytest

from scrapy_plus.http.url import clean_url, host_of, site
from scrapy_plus.rules.addresses import is_guarded, is_private_host, is_public, literal

PRIVATE_URLS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://0177.0.0.01/",
    "http://127.0.0.1./",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.1.2.3/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://[ff02::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://shop.localhost:8000/",
    "http://user:secret@127.0.0.1:80/",
    "http://①②⑦.0.0.1/",
    "http://127。0。0。1/",
]
PUBLIC_URLS = [
    "http://93.184.216.34/",
    "http://1.1.1.1/",
    "http://172.32.0.1/",
    "http://192.167.255.255/",
    "http://16843009/",
    "http://[2606:4700::1111]/",
    "http://[::ffff:1.1.1.1]/",
    "http://[64:ff9b::101:101]/",
    "http://shop.test/",
    "http://127.0.0.1.shop.test/",
    "http://localhost.shop.test/",
    "http://notlocalhost/",
    "http://1.2.3.4.5/",
    "http://0xfg/",
    "http://256.256.256.256/",
]
NO_ADDRESSES = ["256.256.256.256", "4294967296", "1.2.3.256", "127.0.65536", "[::zz]", "1.2.3.4.5", "0xg", ""]


@pytest.mark.parametrize("url", PRIVATE_URLS)
def test_a_private_host_is_known_however_it_is_written(url):
    assert is_private_host(host_of(site(clean_url(url))))


@pytest.mark.parametrize("url", PUBLIC_URLS)
def test_a_public_host_or_a_name_that_says_nothing_is_not_taken_for_private(url):
    assert not is_private_host(host_of(site(clean_url(url))))


@pytest.mark.parametrize("host", NO_ADDRESSES)
def test_a_host_that_is_almost_an_address_is_a_name(host):
    assert literal(host) is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", False), ("8.8.8.8", True), ("fe80::1%eth0", False), ("::ffff:10.0.0.1", False), ("2001:db8::1", 0)],
)
def test_an_address_that_was_resolved_is_public_or_not(address, expected):
    assert is_public(address) == expected


def test_the_mode_says_which_requests_are_kept_from_private_addresses():
    cases = [(mode, led) for mode in ("redirect", "always", "off") for led in (False, True)]
    guarded = [(mode, led) for mode, led in cases if is_guarded(mode, from_public=led)]
    assert guarded == [("redirect", True), ("always", False), ("always", True)]
