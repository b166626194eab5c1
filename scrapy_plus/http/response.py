"""A response: what came back, its text, and what can be found in it."""

from __future__ import annotations

import json as _json
import re as _re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from scrapy_plus.http.encoding import page_text, resolve
from scrapy_plus.http.follow import Links, reference_of
from scrapy_plus.http.forms import form_request
from scrapy_plus.http.headers import Headers
from scrapy_plus.http.request import Request
from scrapy_plus.http.secrets import redact
from scrapy_plus.http.selector import Pattern, SelectorList, find, matches, parse
from scrapy_plus.http.url import clean_url, join

_XML_TYPES = _re.compile(r"\s*(?:text|application)/(?:xml|(?!xhtml)[\w.+-]*\+xml)\s*(?:;|$)", _re.IGNORECASE).match
_HTTP = _re.compile(r"https?://", _re.IGNORECASE).match
_BASE_TAG = _re.compile("<base", _re.IGNORECASE | _re.ASCII).search


@lru_cache(maxsize=256)
def _is_xml(content_type: str) -> bool:
    return _XML_TYPES(content_type) is not None


class Response:
    """What came back for a request. Text and tree are made when first asked for, and once.

    `css()` and `xpath()` find elements and texts; `re()` and `re_first()` what a pattern matches in the text; `json()`
    is the body as JSON. `urljoin()` makes a link absolute, `follow()` and `follow_all()` make requests of links.
    `url` is the one that answered, `history` the redirects that led there; `status_code` is also `status`; `headers`
    are strings, asked in any case; `request` is what was asked, and `meta` its meta.
    `body` is bytes as received (decompressed); a str may be assigned, and is the text then. `encoding` may be assigned
    to correct what the page says of itself. `flags` holds "dataloss", "partial" or "cached".
    `ip_address` is the one that answered, None if it is not known (a proxy).
    """

    __slots__ = (
        "_base_url",
        "_body",
        "_encoding",
        "_explicit_encoding",
        "_lowered",
        "_meta",
        "_root",
        "_text",
        "flags",
        "headers",
        "ip_address",
        "request",
        "status_code",
        "url",
    )

    def __init__(
        self,
        url: str,
        status_code: int = 200,
        headers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
        body: bytes | str = b"",
        *,
        request: Request | None = None,
        encoding: str | None = None,
        flags: Iterable[str] = (),
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.url = url
        self.ip_address: str | None = None
        self.status_code = status_code
        self._lowered: bytes | None
        self._text: str | None
        self._root: Any
        self._base_url: str | None
        self._encoding: str
        self.headers = headers if type(headers) is Headers else Headers(headers)
        self.request = request
        self.flags = list(flags)
        self._meta = meta
        self._explicit_encoding: str | None = None
        self.body = body
        if encoding is not None:
            self.encoding = encoding

    @property
    def status(self) -> int:
        return self.status_code

    @status.setter
    def status(self, status_code: int) -> None:
        self.status_code = status_code

    code = status

    @property
    def selector(self) -> Response:
        """The response itself, which answers what Scrapy's selector does."""
        return self

    @property
    def meta(self) -> dict[str, Any]:
        """The request's meta; the response's own while it belongs to no request."""
        if self.request is not None:
            return self.request.meta
        if self._meta is None:
            self._meta = {}
        return self._meta

    @property
    def history(self) -> list[Response]:
        """The redirects that led here, oldest first, as responses without a body."""
        urls = self.meta.get("redirect_urls", ())
        reasons = self.meta.get("redirect_reasons", ())
        statuses = [reason if isinstance(reason, int) else 0 for reason in reasons]
        return [Response(url, status) for url, status in zip(urls, statuses, strict=False)]

    # -- body and text -------------------------------------------------------------------------------------------------

    @property
    def body(self) -> bytes:
        body: Any = self._body  # a str only where the user put one
        return body  # type: ignore[no-any-return]

    @body.setter
    def body(self, body: bytes | str) -> None:
        self._body = body if isinstance(body, bytes | str) else bytes(body)
        self._forget_text()

    @property
    def encoding(self) -> str:
        """The encoding of the text: assigned, or the page's own by BOM, header, declaration, or look.

        Assigning an unknown one raises LookupError.
        """
        self._decode()
        return self._encoding

    @encoding.setter
    def encoding(self, label: str | None) -> None:
        if label is not None and resolve(label) is None:
            raise LookupError(f"unknown encoding {label!r}")
        self._explicit_encoding = label
        self._forget_text()

    @property
    def text(self) -> str:
        """The body as text; bytes that are broken in its encoding are U+FFFD."""
        self._decode()
        return self._text or ""

    def _decode(self) -> None:
        if self._text is not None:
            return
        if isinstance(self._body, str):
            label = self._explicit_encoding or "utf-8"
            self._encoding, self._text = resolve(label) or label, str(self._body)
        else:
            content_type = self.headers.get("content-type")
            self._encoding, self._text = page_text(self._body, content_type, self._explicit_encoding)

    @property
    def lowered(self) -> bytes:
        """The body with the letters of ASCII in lower case, to look for markup in it; empty if it is no bytes."""
        if self._lowered is None:
            self._lowered = self._body.lower() if isinstance(self._body, bytes) else b""
        return self._lowered

    def _forget_text(self) -> None:
        self._lowered = None
        self._text = None
        self._encoding = "utf-8"
        self._root = None
        self._base_url = None

    def json(self) -> Any:
        """The body as JSON. Raises ValueError, with the URL and how the body begins, if it is none."""
        try:
            return _json.loads(self.text)
        except ValueError as error:
            start = self.text[:80]
            raise ValueError(f"no JSON at {redact(self.url)}: {error}; it begins {start!r}") from None

    # -- finding things ------------------------------------------------------------------------------------------------

    @property
    def root(self) -> Any:
        """The root element of the page, parsed at the first question."""
        if self._root is None:
            xml = _is_xml(self.headers.get("content-type") or "")
            text = self.text
            # The parser is fed valid UTF-8 always: libxml2's own decoders stop at the first broken byte.
            if self._encoding == "utf-8" and isinstance(self._body, bytes) and "\ufffd" not in text:
                body = self._body.removeprefix(b"\xef\xbb\xbf")
            else:
                body = text.encode("utf-8", "replace")
            self._root = parse(body, xml=xml)
        return self._root

    def xpath(self, expression: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> SelectorList:
        """What the XPath finds in the page: elements, and strings for text() and @attributes.

        `$name` in it stands for the keyword argument `name`. Raises ValueError, naming it, if it is no XPath.
        """
        found: SelectorList = self.root.xpath(expression, namespaces, **variables)
        return found

    def css(self, expression: str) -> SelectorList:
        """What the CSS selector finds; `::text` and `::attr(name)` give strings."""
        found: SelectorList = self.root.css(expression)
        return found

    def re(self, pattern: Pattern) -> list[str]:
        """All matches in the text: the groups if the pattern has any, else the whole."""
        return matches(pattern, self.text)

    def re_first(self, pattern: Pattern, default: Any = None) -> Any:
        return next(iter(self.re(pattern)), default)

    def re_findall(self, rule: Pattern, data: str | None = None) -> list[Any]:
        """`re.findall` on the text, or on `data`."""
        return _re.findall(rule, self.text if data is None else data)

    re_find = re_find_all = find_all = re_findall

    # -- going on ------------------------------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """What the page's relative links are relative to: its URL, or what its <base href> says."""
        if self._base_url is None:
            self._base_url = self._declared_base() or self.url
        return self._base_url

    def _declared_base(self) -> str | None:
        if self._has_no_base():
            return None
        href = next((one.get("href") for one in self.root.iter("base") if one.get("href") is not None), None)
        if href is None:
            return None
        base = join(self.url, href)
        return base if _HTTP(base) else None

    def _has_no_base(self) -> bool:
        """Whether the page certainly has no <base>; in bytes it is seen at once, but for those of wide characters."""
        if isinstance(self._body, bytes) and not self.encoding.startswith(("utf-16", "utf-32")):
            return b"<base" not in self.lowered
        return _BASE_TAG(self.text) is None

    def urljoin(self, url: str) -> str:
        """The absolute URL of a reference found on this page."""
        return join(self.base_url, url)

    def follow(self, url: Any, callback: str | Callable[..., Any] | None = None, **arguments: Any) -> Request:
        """A request for a link of this page: a URL, an <a>, <area> or <link> element, or a Link.

        `arguments` are Request's. Raises ValueError if it leads to no http(s) URL.
        """
        return self.request_for(self.link_url(reference_of(url)), callback, arguments)

    def follow_all(
        self,
        urls: Iterable[Any] | None = None,
        callback: str | Callable[..., Any] | None = None,
        *,
        css: str | None = None,
        xpath: str | None = None,
        **arguments: Any,
    ) -> Links:
        """A request for each link of `urls`, or of what `css` or `xpath` finds, one by one. What is no http(s) link is
        left out."""
        if (urls is None) + (css is None) + (xpath is None) != 2 or isinstance(urls, str):
            raise ValueError("follow_all wants one of: a list of links, css=, xpath=; for one link there is follow")
        links = self.css(css) if css is not None else find(self.root, xpath) if xpath is not None else urls
        return Links(self, links or (), callback, arguments)

    def request_for(self, url: str, callback: Any, arguments: dict[str, Any]) -> Request:
        """A request for an absolute URL of this page, which says what a form of the page is encoded in."""
        if callback is not None:
            arguments = {**arguments, "callback": callback}
        if "encoding" not in arguments and any(name in arguments for name in ("data", "formdata", "body", "params")):
            arguments = {**arguments, "encoding": self.encoding}
        return Request(url, **arguments)

    def form_request(self, formdata: Any = None, **arguments: Any) -> Request:
        """The request that sends a form of this page, filled in as a browser would and with `formdata` in it.

        The form is the first, or that of `id`, `name`, `number`, `css` or `xpath` (of the form, or of something in it).
        `formdata` replaces fields of the same name; a list is several, None takes one away. `click` is the button: the
        first by default, False for none, its name, id, value or text, or a dict of its attributes. `files` are those of
        a multipart form: {field: (name, content)}. Further arguments are Request's. Raises ValueError for no such form
        or button.
        """
        return form_request(self, formdata, **arguments)

    def link_url(self, reference: str) -> str:
        """The absolute URL that a browser would ask for: cleaned, its query encoded as the page is.

        Raises ValueError if it is no http(s) URL.
        """
        url = join(self.base_url, reference)
        if not _HTTP(url):
            raise ValueError(f"not an http(s) link: {url!r} on {redact(self.url)}")
        # A page in UTF-16 sends its forms and queries in UTF-8, as every other encoding that is no superset of ASCII.
        encoding = "utf-8" if url.isascii() or self.encoding.startswith(("utf-", "iso2022")) else self.encoding
        return clean_url(url, encoding=encoding)

    def replace(self, **changes: Any) -> Response:
        """A copy in which `changes` (constructor arguments) replace fields."""
        if "status" in changes:
            changes["status_code"] = changes.pop("status")
        fields: dict[str, Any] = {
            "url": self.url,
            "status_code": self.status_code,
            "headers": self.headers,
            "body": self._body,
            "request": self.request,
            "encoding": self._explicit_encoding,
            "flags": self.flags,
            "meta": self._meta,
        }
        if "headers" not in changes:
            fields["headers"] = self.headers.copy()
        made = type(self)(**{**fields, **changes})
        made.ip_address = self.ip_address
        return made

    copy = replace

    def __repr__(self) -> str:
        return f"<{self.status_code} {redact(self.url)}>"
