"""Which transport a crawl gets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scrapy_plus.conf.settings import load_settings
from scrapy_plus.errors import SettingsError
from scrapy_plus.transport.base import Transport
from scrapy_plus.transport.requests_session import RequestsTransport
from scrapy_plus.wiring import build_transport


def chosen(**settings: object) -> Transport:
    return build_transport(load_settings(None, environ={}, overrides=settings))


def test_libcurl_serves_where_it_is_installed():
    pytest.importorskip("pycurl")
    from scrapy_plus.transport.curl import CurlTransport

    assert isinstance(chosen(), CurlTransport) and isinstance(chosen(TRANSPORT="curl"), CurlTransport)


def test_requests_serves_if_it_is_asked_for():
    assert isinstance(chosen(TRANSPORT="requests"), RequestsTransport)


def test_requests_serves_where_libcurl_is_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycurl", None)
    assert isinstance(chosen(), RequestsTransport)


def test_libcurl_that_is_asked_for_and_missing_is_a_wrong_setting_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycurl", None)
    with pytest.raises(SettingsError, match=r"TRANSPORT.*pip install 'scrapyplus\[speed\]'"):
        chosen(TRANSPORT="curl")


def test_a_libcurl_that_looks_names_up_while_all_wait_is_not_used(monkeypatch):
    pycurl = pytest.importorskip("pycurl")
    about = list(pycurl.version_info())
    about[4] &= ~pycurl.VERSION_ASYNCHDNS
    monkeypatch.setattr(pycurl, "version_info", lambda: tuple(about))
    assert isinstance(chosen(), RequestsTransport)


def test_importing_the_framework_does_not_load_libcurl():
    command = "import scrapy_plus, sys; print('pycurl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False"
