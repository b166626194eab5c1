"""The transport on `requests`: a Session whose adapters say one request and hear one answer, and do nothing else.

`Session.send` would look up proxies and netrc in the environment, follow redirects, keep cookies and inflate, all of
which are decided above the transport; so prepared requests go straight to the adapter of their URL.
"""

from __future__ import annotations

import socket
import ssl
from collections import OrderedDict
from typing import Any
from urllib.parse import unquote

import requests
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.poolmanager import ProxyManager
from urllib3.util.ssl_ import create_urllib3_context

from scrapy_plus.errors import ProxyFailed
from scrapy_plus.http.headers import Headers
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.rules.addresses import is_guarded
from scrapy_plus.transport.base import Resolve, Transport
from scrapy_plus.transport.failures import FAILURES, as_download_error
from scrapy_plus.transport.outgoing import Origin, body_of, fields_of, parse_proxy, proxy_of, serialize, split
from scrapy_plus.transport.wire import POOLS, Answer, socks_pools


class RequestsTransport(Transport):
    """Fetches through a `requests.Session` of its own; `session.mount` puts another adapter under a URL.

    `verify_tls` may name a file of certificates to trust instead of those of `certifi`, `client_certificate` a PEM file
    with a certificate and its key. `pool_size` is how many idle
    connections are kept to a site, `max_sites` to how many sites. `block_private` is one of `rules.addresses.MODES`;
    `resolve` stands for `socket.getaddrinfo`.
    """

    def __init__(
        self,
        *,
        verify_tls: bool | str = True,
        client_certificate: str | None = None,
        connect_timeout_seconds: float | None = None,
        pool_size: int = 32,
        max_sites: int = 128,
        block_private: str = "off",
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self._block_private = block_private
        self._adapter = CrawlAdapter(
            verify_tls=verify_tls,
            client_certificate=client_certificate,
            connect_timeout_seconds=connect_timeout_seconds,
            pool_size=pool_size,
            max_sites=max_sites,
            resolve=resolve,
        )
        self.session.mount("https://", self._adapter)
        self.session.mount("http://", self._adapter)

    def fetch(
        self, request: Request, *, timeout_seconds: float, max_bytes: int, fail_on_dataloss: bool = True
    ) -> Response:
        url = request.full_url
        origin, _ = split(url)
        proxy = proxy_of(request)
        prepared = prepare(request, url, origin)
        prepared.only_public = is_guarded(  # type: ignore[attr-defined]
            self._block_private, from_public=request.from_public
        )
        try:
            heard = self.session.get_adapter(url).send(
                prepared,
                stream=True,
                timeout=timeout_seconds,
                proxies={origin.scheme: proxy} if proxy else None,
            )
            answer: Answer = heard.raw  # type: ignore[assignment]
            body, flags = answer.read(max_bytes, fail_on_dataloss=fail_on_dataloss)
        except FAILURES as error:
            raise as_download_error(error, origin.shown) from error
        response = Response(url, answer.status, Headers(answer.fields), body, request=request, flags=flags)
        response.ip_address = answer.ip_address
        return response

    def close(self) -> None:
        self.session.close()


class CrawlAdapter(HTTPAdapter):
    """A `requests` adapter over `transport.wire`: exact request lines and header order, strict framing, and one TLS
    context for all connections (the stock one reads all certificates again for each, 20 ms of CPU)."""

    def __init__(
        self,
        *,
        verify_tls: bool | str = True,
        client_certificate: str | None = None,
        connect_timeout_seconds: float | None = None,
        pool_size: int = 32,
        max_sites: int = 128,
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        self._verify_tls = verify_tls
        self._client_certificate = client_certificate
        self._connect_timeout_seconds = connect_timeout_seconds
        self._resolve = resolve
        self._pool_size = pool_size
        self._max_sites = max_sites
        self._pools: OrderedDict[tuple[str, str, int, str], Any] = OrderedDict()
        self._context: ssl.SSLContext | None = None
        super().__init__(pool_connections=1, pool_maxsize=pool_size)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """The head of the answer; `raw` is the `Answer` whose body is still to be read."""
        url, method = str(request.url), str(request.method)
        origin, target = split(url)
        headers: dict[str, str] = dict(request.headers)
        proxy_url = proxies[origin.scheme] if proxies else ""
        proxy = parse_proxy(proxy_url) if proxy_url else None
        way = "direct" if proxy is None else _way(origin.scheme, proxy.scheme)
        if proxy is not None and way == "forward":
            target = f"{origin.scheme}://{origin.shown}{target}"
            if proxy.authorization:
                headers["Proxy-Authorization"] = proxy.authorization
        response = requests.Response()
        response.raw = self._pool(origin, proxy, proxy_url, way).exchange(
            method,
            serialize(method, target, headers),
            request.body or b"",
            timeout_seconds=timeout,
            proxy=proxy.shown if proxy else "",
            tunnel=way == "tunnel",
            only_public=proxy is None and getattr(request, "only_public", False),
        )
        response.status_code = response.raw.status
        response.url = url
        response.request = request
        return response

    def _pool(self, origin: Origin, proxy: Origin | None, proxy_url: str, way: str) -> Any:
        site = ("", "", 0) if way == "forward" else (origin.scheme, origin.host, origin.port)
        key = (*site, proxy_url)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = self._new_pool(origin, proxy)
            pool.resolve = self._resolve
            pool.connect_timeout_seconds = self._connect_timeout_seconds
            while len(self._pools) > self._max_sites:
                self._pools.popitem(last=False)[1].close()
        else:
            self._pools.move_to_end(key)
        return pool

    def _new_pool(self, origin: Origin, proxy: Origin | None) -> Any:
        options: dict[str, Any] = {"maxsize": self._pool_size}
        if origin.scheme == "https" or (proxy is not None and proxy.scheme == "https"):
            options["ssl_context"] = self.context()
            if not self._verify_tls:
                options |= {"cert_reqs": "CERT_NONE", "assert_hostname": False}
        if proxy is None:
            return POOLS[origin.scheme](origin.host, origin.port, **options)
        if proxy.scheme.startswith("socks"):
            return _socks_pool(origin, proxy, options)
        manager = ProxyManager(
            f"{proxy.scheme}://{proxy.shown}",
            num_pools=1,
            proxy_headers={"Proxy-Authorization": proxy.authorization} if proxy.authorization else {},
            **options,
        )
        manager.pool_classes_by_scheme = POOLS
        return manager.connection_from_host(origin.host, origin.port, origin.scheme)

    def context(self) -> ssl.SSLContext:
        """What all TLS connections share; made when the first is."""
        if self._context is None:
            context = create_urllib3_context()
            if self._verify_tls:
                trusted = DEFAULT_CA_BUNDLE_PATH if self._verify_tls is True else self._verify_tls
                context.load_verify_locations(cafile=trusted)
                context.verify_mode = ssl.CERT_REQUIRED
                context.check_hostname = True
            else:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self._client_certificate:
                context.load_cert_chain(self._client_certificate)
            self._context = context
        return self._context

    def close(self) -> None:
        while self._pools:
            self._pools.popitem()[1].close()
        super().close()


def _way(scheme: str, proxy_scheme: str) -> str:
    """How a proxy is used: it is asked for the URL, for a tunnel to the site, or (SOCKS) it is below HTTP."""
    if proxy_scheme.startswith("socks"):
        return "below"
    return "tunnel" if scheme == "https" else "forward"


def _socks_pool(origin: Origin, proxy: Origin, options: dict[str, Any]) -> Any:
    try:
        from urllib3.contrib.socks import SOCKSProxyManager

        pools = socks_pools()
    except ImportError:
        raise ProxyFailed(f"a {proxy.scheme} proxy needs PySocks: pip install PySocks") from None
    # The name is always looked up by the proxy: looked up here, it would tell a resolver what the proxy is to hide.
    scheme = {"socks5": "socks5h", "socks4": "socks4a"}.get(proxy.scheme, proxy.scheme)
    user, _, password = proxy.userinfo.partition(":")
    login: dict[str, Any] = {"username": unquote(user), "password": unquote(password)} if user else {}
    manager = SOCKSProxyManager(f"{scheme}://{proxy.shown}", num_pools=1, **login, **options)
    manager.pool_classes_by_scheme = pools
    return manager.connection_from_host(origin.host, origin.port, origin.scheme)


def prepare(request: Request, url: str, origin: Origin) -> requests.PreparedRequest:
    """The request as `requests` has it, filled by hand: 20 times cheaper than `PreparedRequest.prepare`, which would
    also rewrite the URL and bring headers of its own."""
    body = body_of(request)
    prepared = requests.PreparedRequest()
    prepared.method = request.method
    prepared.url = url
    prepared.headers = fields_of(request, origin, body)  # type: ignore[assignment]
    prepared.body = body or None
    return prepared
