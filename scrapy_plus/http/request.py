"""A request: what to fetch, and which method of the spider gets the answer."""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Mapping
from operator import index
from types import MethodType
from typing import TYPE_CHECKING, Any

from scrapy_plus.errors import NotStorable
from scrapy_plus.http.headers import Headers
from scrapy_plus.http.multipart import as_file, multipart
from scrapy_plus.http.multipart import pairs as form_pairs
from scrapy_plus.http.secrets import redact
from scrapy_plus.http.storable import check_storable
from scrapy_plus.http.url import add_params, clean_url, encode_form

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

PRIORITY_LIMIT = 1000
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Request:
    """What to fetch and which spider method gets the answer; every field can be stored, or it is refused here.

    `parse` (or Scrapy's `callback`) and `errback` are methods of the spider or their names; `cb_kwargs` are further
    arguments of the callback. `filter=False` (Scrapy's `dont_filter=True`) crawls the URL even if it was seen.
    `params` (mapping or pairs) go into the URL's query. `data` is a form (mapping or pairs) or a raw body (str, bytes),
    `body` its other name, `json` any JSON value; they leave `method` as it is. `formdata` is a form that makes a GET a
    POST, `files` ({field: (name, content)}) go with the form in a multipart body. `encoding` is that of params, forms
    and texts. `cookies` is a dict, or a list of dicts (name, value, domain, path). `priority` is a whole number from
    -1000 to 1000, the highest goes first. `timeout` is the total deadline in seconds; `proxy` is a URL (`proxies`, a
    dict of them by scheme).

    `meta` travels along, to `response.meta`. Keys that mean something: cookiejar, dont_merge_cookies, dont_redirect,
    dont_retry, max_retry_times, handle_httpstatus_list, handle_httpstatus_all, download_timeout, download_maxsize,
    download_fail_on_dataloss, allow_offsite, proxy; set by the framework: depth, redirect_times, redirect_urls,
    redirect_reasons.
    Raises: ValueError (no http(s) URL, bad method), TypeError (a priority that is no whole number), NotStorable (a
    lambda, a lock in meta), naming the field.
    """

    __slots__ = (
        "_headers",
        "_meta",
        "cb_kwargs",
        "cookies",
        "data",
        "encoding",
        "errback",
        "filter",
        "fp",
        "from_public",
        "json",
        "lease",
        "method",
        "params",
        "parse",
        "priority",
        "proxy",
        "retry_time",
        "spider_name",
        "timeout",
        "url",
    )

    def __init__(
        self,
        url: str,
        method: str = "GET",
        headers: Mapping[str, Any] | None = None,
        params: Any = None,
        data: Any = None,
        parse: str | Callable[..., Any] | None = "parse",
        filter: bool = True,  # noqa: A002  the name that users of the historical framework write
        meta: dict[str, Any] | None = None,
        *,
        callback: str | Callable[..., Any] | None = None,
        dont_filter: bool | None = None,
        body: str | bytes | None = None,
        json: Any = None,
        cookies: Any = None,
        priority: int = 0,
        cb_kwargs: dict[str, Any] | None = None,
        errback: str | Callable[..., Any] | None = None,
        timeout: float | None = None,
        proxy: str | None = None,
        encoding: str = "utf-8",
        formdata: Any = None,
        dofilter: bool | None = None,
        proxies: Mapping[str, str] | str | None = None,
        files: Mapping[str, Any] | None = None,
    ) -> None:
        if formdata is not None:
            data, method = formdata, "POST" if method == "GET" else method
        if files:
            entries = form_pairs(data) + [(name, as_file(file)) for name, file in files.items()]
            data, kind = multipart(entries, encoding=encoding)
            headers, method = {**(headers or {}), "Content-Type": kind}, "POST" if method == "GET" else method
        if dofilter is not None:
            filter = dofilter  # noqa: A001
        self.url = clean_url(url, encoding=encoding)
        self.method = "GET" if method == "GET" else _method(method)
        self._headers = Headers(headers) if headers else None
        self.params = params
        self.data = data if body is None else body
        self.json = json
        self.parse = "parse" if parse == "parse" and callback is None else method_name(callback or parse, "callback")
        self.errback = None if errback is None else method_name(errback, "errback")
        self.filter = filter if dont_filter is None else not dont_filter
        self._meta = meta if meta is None else dict(meta)
        self.cookies = cookies
        self.priority = priority if type(priority) is int else _whole(priority)
        self.cb_kwargs = cb_kwargs
        self.timeout = timeout
        self.proxy = proxy if proxies is None else _proxy(proxies, self.url)
        self.encoding = encoding
        self.retry_time = 0
        self.from_public = False
        self.spider_name = ""
        self.fp: bytes | None = None
        self.lease: Any = None
        if params or self.data or json is not None or meta or cookies or cb_kwargs:
            self._check_storable()

    def _check_storable(self) -> None:
        for field in ("params", "data", "json", "cookies", "meta", "cb_kwargs"):
            value = getattr(self, field)
            if value:
                check_storable(value, field)

    @property
    def headers(self) -> Headers:
        if self._headers is None:
            self._headers = Headers()
        return self._headers

    @headers.setter
    def headers(self, fields: Mapping[str, Any] | None) -> None:
        self._headers = fields.copy() if type(fields) is Headers else Headers(fields)

    @property
    def has_headers(self) -> bool:
        """Whether any header is set; asking does not make the empty mapping that `headers` would."""
        return bool(self._headers)

    @property
    def meta(self) -> dict[str, Any]:
        if self._meta is None:
            self._meta = {}
        return self._meta

    @meta.setter
    def meta(self, values: dict[str, Any] | None) -> None:
        self._meta = values

    @property
    def has_meta(self) -> bool:
        return bool(self._meta)

    @property
    def callback(self) -> str:
        return self.parse

    @property
    def dont_filter(self) -> bool:
        return not self.filter

    @property
    def attempt(self) -> int:
        """Which try this is, 1 for the first."""
        return self.retry_time + 1

    @property
    def full_url(self) -> str:
        """The URL with `params` in it: what is asked of the server, without the fragment."""
        url = add_params(self.url, self.params, encoding=self.encoding) if self.params else self.url
        return url.partition("#")[0] if "#" in url else url

    @property
    def body(self) -> bytes:
        """The body as it is sent; empty for a plain GET."""
        if self.json is not None:
            return _json.dumps(self.json, ensure_ascii=False, separators=(",", ":")).encode()
        if not self.data:
            return b""
        if isinstance(self.data, bytes):
            return self.data
        if isinstance(self.data, str):
            return self.data.encode(self.encoding)
        return encode_form(self.data, encoding=self.encoding).encode()

    @property
    def content_type(self) -> str | None:
        """What the body is by how it was given; None for raw bytes, whose sender knows better."""
        if self.json is not None:
            return "application/json"
        if self.data and not isinstance(self.data, str | bytes):
            return "application/x-www-form-urlencoded"
        return None

    def copy(self) -> Request:
        """A request of its own: changing its headers or meta leaves this one alone; it is not leased."""
        return self.replace()

    def replace(self, **changes: Any) -> Request:
        """A copy in which `changes` (constructor arguments) replace fields; the retry count is kept."""
        for alias, name in (("callback", "parse"), ("body", "data")):
            if alias in changes:
                changes[name] = changes.pop(alias)
        if "dont_filter" in changes:
            changes["filter"] = not changes.pop("dont_filter")
        fields = {name: getattr(self, name) for name in FIELDS if name not in changes}
        fields["headers"] = None if self._headers is None else self._headers.copy()
        fields["meta"] = self._meta
        made = type(self)(**{**fields, **changes})
        made.retry_time = self.retry_time
        made.from_public = self.from_public
        made.spider_name = self.spider_name
        return made

    def __repr__(self) -> str:
        return f"<{self.method} {redact(self.full_url)}>"


def plain_request(url: str, parse: str = "parse") -> Request:
    """`Request(url, parse=parse)` for a URL that is clean and a name that is one: without a look at what is not given,
    which takes three times as long, twenty times a page."""
    made = Request.__new__(Request)
    made.url = url
    made.parse = parse
    made.method = "GET"
    made.encoding = "utf-8"
    made.filter = True
    made.priority = made.retry_time = 0
    made.from_public = False
    made.spider_name = ""
    made._headers = made._meta = made.fp = made.errback = made.timeout = made.proxy = None
    made.params = made.data = made.json = made.cookies = made.cb_kwargs = made.lease = None
    return made


FIELDS = (
    "url",
    "method",
    "headers",
    "params",
    "data",
    "json",
    "parse",
    "errback",
    "filter",
    "meta",
    "cookies",
    "priority",
    "cb_kwargs",
    "timeout",
    "proxy",
    "encoding",
)
"""The constructor arguments that make up a request; the codec stores exactly these."""


class FormRequest:
    """Makes a Request (no more than that) which sends a form: by POST, or with method="GET" in the URL's query."""

    def __new__(  # type: ignore[misc]
        cls, url: str, formdata: Any = None, *, method: str | None = None, **arguments: Any
    ) -> Request:
        if formdata and method and method.upper() == "GET":
            return Request(url, params=formdata, **arguments)
        return Request(url, method or ("POST" if formdata else "GET"), data=formdata or None, **arguments)

    @classmethod
    def from_response(
        cls,
        response: Response,
        formname: str | None = None,
        formid: str | None = None,
        formnumber: int | None = None,
        formdata: Any = None,
        clickdata: Mapping[str, Any] | None = None,
        dont_click: bool = False,
        formxpath: str | None = None,
        formcss: str | None = None,
        **arguments: Any,
    ) -> Request:
        """The same as `response.form_request(...)`, in Scrapy's words."""
        which = {"id": formid, "name": formname, "number": formnumber, "css": formcss, "xpath": formxpath}
        return response.form_request(formdata, click=False if dont_click else clickdata, **which, **arguments)


def JsonRequest(url: str, data: Any = None, *, method: str | None = None, **arguments: Any) -> Request:  # noqa: N802
    """A Request that sends `data` as JSON, by POST."""
    return Request(url, method or ("GET" if data is None else "POST"), json=data, **arguments)


def _proxy(proxies: Mapping[str, str] | str, url: str) -> str | None:
    """The proxy for this URL out of a dict by scheme, as `requests` takes one."""
    if isinstance(proxies, str):
        return proxies
    scheme = url.partition(":")[0]
    return next((proxies[key] for key in (scheme, f"{scheme}://", "all", "all://") if key in proxies), None)


def _method(method: str) -> str:
    name = str(method).upper()
    if not name or not _TOKEN.issuperset(name):
        raise ValueError(f"not an HTTP method: {method!r}")
    return name


def _whole(priority: Any) -> int:
    try:
        return index(priority)
    except TypeError:
        raise TypeError(f"priority is a whole number, higher goes first; not {priority!r}") from None


def method_name(method: str | Callable[..., Any] | None, field: str) -> str:
    """The name under which a spider's method is found again, in this process or another."""
    if method is None:
        return "parse"
    if isinstance(method, str):
        if not method.isidentifier():
            raise NotStorable(f"{field}: {method!r} is no method name")
        return method
    name = getattr(method, "__name__", "")
    if not isinstance(method, MethodType) or getattr(method.__self__, name, None) != method:
        raise NotStorable(f"{field}: {method!r} cannot be stored; give a method of the spider or its name")
    return name
