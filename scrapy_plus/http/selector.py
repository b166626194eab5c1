"""XPath and CSS on lxml's own elements: lists that can be indexed as lxml's and asked as Scrapy's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, overload

from lxml import etree, html
from parsel.csstranslator import GenericTranslator, HTMLTranslator
from parsel.xpathfuncs import has_class

NAMESPACES = {
    "re": "http://exslt.org/regular-expressions",
    "set": "http://exslt.org/sets",
    "str": "http://exslt.org/strings",
    "math": "http://exslt.org/math",
}
HUGE_TREE_BYTES = 5_000_000
Pattern = str | re.Pattern[str]
Default = TypeVar("Default")

_tostring: Any = etree.tostring
_html_translator = HTMLTranslator()
_xml_translator = GenericTranslator()
etree.FunctionNamespace(None)["has-class"] = has_class


class Text(str):
    """A string that a page gave; a plain `str` but for the questions that every result of a query answers."""

    __slots__ = ()

    def get(self) -> str:
        return str(self)

    def getall(self) -> list[str]:
        return [str(self)]

    def re(self, pattern: Pattern) -> list[str]:
        return matches(pattern, self)

    def re_first(self, pattern: Pattern, default: Any = None) -> Any:
        return next(iter(self.re(pattern)), default)

    extract = get


class SelectorList(list[Any]):
    """What a query found: elements and texts, to be indexed like any list, or asked all at once."""

    __slots__ = ()

    @overload
    def get(self) -> str | None: ...
    @overload
    def get(self, default: Default) -> str | Default: ...
    def get(self, default: Any = None) -> Any:
        """The first member as a string (an element as its HTML), or `default` if nothing was found."""
        return self[0].get() if self else default

    def getall(self) -> list[str]:
        """Every member as a string."""
        return [one.get() for one in self]

    def re(self, pattern: Pattern) -> list[str]:
        """All matches in all members, in one list."""
        return [match for one in self for match in one.re(pattern)]

    def re_first(self, pattern: Pattern, default: Any = None) -> Any:
        """The first match in any member, or `default`."""
        return next((match for one in self for match in one.re(pattern)), default)

    def xpath(self, expression: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> SelectorList:
        """What every element among the members finds, in one list."""
        return SelectorList(one for node in self._elements() for one in node.xpath(expression, namespaces, **variables))

    def css(self, expression: str) -> SelectorList:
        """What every element among the members finds, in one list."""
        return SelectorList(one for node in self._elements() for one in node.css(expression))

    @property
    def attrib(self) -> Mapping[str, str]:
        """The attributes of the first element; empty if there is none."""
        first: Mapping[str, str] = next((node.attrib for node in self._elements()), {})
        return first

    def _elements(self) -> Iterable[Any]:
        return (one for one in self if not isinstance(one, str))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return SelectorList(found) if isinstance(index, slice) else found

    extract = getall
    extract_first = get


class Queries:
    """What elements answer beyond lxml's own methods."""

    _translate: Callable[[str], str]
    _method: str

    def xpath(self, expression: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> SelectorList:
        """What `expression` finds from here; `$name` in it stands for the keyword argument `name`.

        Raises ValueError, naming the expression, if it is no XPath.
        """
        return select(self, expression, namespaces, variables)

    def css(self, expression: str) -> SelectorList:
        """What the CSS selector finds at or below here; `::text` and `::attr(name)` give strings."""
        return select(self, self._translate(expression), None, {})

    def get(self, key: str | None = None, default: Any = None) -> Any:
        """The element as HTML, without what follows it; with an argument, the attribute of that name."""
        if key is None:
            return _tostring(self, encoding="unicode", method=self._method, with_tail=False)
        return super().get(key, default)  # type: ignore[misc]

    def getall(self) -> list[str]:
        return [self.get()]

    def extract(self) -> str:
        text: str = self.get()
        return text

    def re(self, pattern: Pattern) -> list[str]:
        """All matches in the element's HTML: the groups if the pattern has any, else the whole."""
        return matches(pattern, self.get())

    def re_first(self, pattern: Pattern, default: Any = None) -> Any:
        return next(iter(self.re(pattern)), default)


def _css_to_xpath(translator: HTMLTranslator | GenericTranslator) -> Callable[[str], str]:
    def translate(expression: str) -> str:
        try:
            return translator.css_to_xpath(expression)
        except (SyntaxError, ValueError, TypeError, RuntimeError) as error:
            raise ValueError(f"not a CSS selector: {expression!r} ({error})") from None

    return translate


class _HtmlQueries(Queries):
    _translate = staticmethod(_css_to_xpath(_html_translator))
    _method = "html"


class _XmlQueries(Queries):
    _translate = staticmethod(_css_to_xpath(_xml_translator))
    _method = "xml"


class HtmlElement(_HtmlQueries, html.HtmlElement):  # type: ignore[misc]
    """An element of an HTML page: lxml's, which also answers `css()`, `xpath()`, `re()` and `get()`."""


class XmlElement(_XmlQueries, etree.ElementBase):  # type: ignore[misc]
    """An element of an XML document, with the same answers."""


class _HtmlComment(_HtmlQueries, html.HtmlComment):  # type: ignore[misc]
    pass


class _XmlComment(_XmlQueries, etree.CommentBase):  # type: ignore[misc]
    pass


class _Form(_HtmlQueries, html.FormElement):  # type: ignore[misc]
    pass


class _Input(_HtmlQueries, html.InputElement):  # type: ignore[misc]
    pass


class _Select(_HtmlQueries, html.SelectElement):  # type: ignore[misc]
    pass


class _Textarea(_HtmlQueries, html.TextareaElement):  # type: ignore[misc]
    pass


def select(
    node: Any, expression: str, namespaces: Mapping[str, str] | None, variables: Mapping[str, Any]
) -> SelectorList:
    """What `expression` finds from `node`, its strings with the answers of a selector."""
    found = find(node, expression, namespaces, variables)
    return SelectorList([Text(one) if type(one) is str else one for one in found])


def find(
    node: Any, expression: str, namespaces: Mapping[str, str] | None = None, variables: Mapping[str, Any] | None = None
) -> list[Any]:
    """The elements and strings that an XPath finds from `node`; one number or truth value becomes a list of its text.

    Raises ValueError, naming the expression, if it is no XPath.
    """
    try:
        compiled = _compiled(expression, tuple(namespaces.items()) if namespaces else ())
        found = compiled(node, **(variables or {}))
    except (etree.XPathError, ValueError) as error:
        raise ValueError(f"not an XPath: {expression!r} ({error})") from None
    if type(found) is list:
        return found
    return [str(int(found) if type(found) is bool else found)]


@lru_cache(maxsize=1024)
def _compiled(expression: str, namespaces: tuple[tuple[str, str], ...]) -> etree.XPath:
    # lxml makes all prefixes known at each evaluation, which takes 1.5 us: only where one may be used.
    known = {**NAMESPACES, **dict(namespaces)} if ":" in expression else None
    return etree.XPath(expression, namespaces=known, smart_strings=False)


def matches(pattern: Pattern, text: str) -> list[str]:
    """All matches in `text`: the group named "extract" if there is one, the groups if there are any, else the whole."""
    compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
    if "extract" in compiled.groupindex:
        return [match["extract"] for match in compiled.finditer(text) if match["extract"] is not None]
    found = compiled.findall(text)
    return [group for match in found for group in match] if compiled.groups > 1 else found


# -- parsing -----------------------------------------------------------------------------------------------------------


def _html_parser(*, huge_tree: bool = False) -> etree.HTMLParser:
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=huge_tree)
    lookup = etree.ElementNamespaceClassLookup(
        etree.ElementDefaultClassLookup(element=HtmlElement, comment=_HtmlComment)
    )
    forms = lookup.get_namespace(None)
    for tag, kind in (("form", _Form), ("input", _Input), ("select", _Select), ("textarea", _Textarea)):
        forms[tag] = kind
    parser.set_element_class_lookup(lookup)
    return parser


def _xml_parser(*, huge_tree: bool = False) -> etree.XMLParser:
    parser = etree.XMLParser(
        encoding="utf-8", recover=True, resolve_entities=False, load_dtd=False, no_network=True, huge_tree=huge_tree
    )
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=XmlElement, comment=_XmlComment))
    return parser


_PARSERS: dict[tuple[bool, bool], Any] = {
    (False, False): _html_parser(),
    (False, True): _html_parser(huge_tree=True),
    (True, False): _xml_parser(),
    (True, True): _xml_parser(huge_tree=True),
}
_OPEN_TAG = re.compile(rb"<([a-zA-Z][a-zA-Z0-9]*)")


def parse(body: bytes, *, xml: bool = False) -> Any:
    """The root element of a document in UTF-8, however broken; of an empty one, if there is nothing in it."""
    body = body.replace(b"\x00", b"") if b"\x00" in body else body
    root, is_cut = _parse(body, xml, huge=False)
    if is_cut and len(body) < HUGE_TREE_BYTES:
        root, is_cut = _parse(body, xml, huge=True)
        if is_cut and not xml:
            root, _ = _parse(_flattened(body), xml, huge=True)
    return root


def _parse(body: bytes, xml: bool, *, huge: bool) -> tuple[Any, bool]:
    """The root, and whether libxml2 stopped before the end, at 254 nested elements (2,048 in a huge tree)."""
    parser = _PARSERS[xml, huge]
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError:
        root = None
    is_cut = any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log)
    return (etree.fromstring(b"<html/>", parser) if root is None else root), is_cut


def _flattened(body: bytes) -> bytes:
    """The page without the element that it has most of, links apart: one that is opened thousands of times."""
    counts: dict[bytes, int] = {}
    for tag in _OPEN_TAG.findall(body):
        counts[tag.lower()] = counts.get(tag.lower(), 0) + 1
    counts.pop(b"a", None)
    commonest = max(counts, key=lambda tag: counts[tag])
    return re.sub(rb"</?%s\b[^<>]*>" % commonest, b"", body, flags=re.IGNORECASE)
