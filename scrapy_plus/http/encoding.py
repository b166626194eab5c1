"""The encoding of a page and its text, as browsers read it: what is declared, unless the bytes plainly contradict."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

from scrapy_plus.http.detect import detect

# Labels of the WHATWG Encoding Standard that neither Python nor w3lib knows.
_LABELS = {
    "csgb2312": "gb18030",
    "x-gbk": "gb18030",
    "x-x-big5": "big5hkscs",
    "x-euc-jp": "euc_jp",
    "cseuckr": "cp949",
    "ksc5601": "cp949",
    "ksc_5601": "cp949",
    "csksc56011987": "cp949",
    "windows-949": "cp949",
    "dos-874": "cp874",
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "x-mac-cyrillic": "mac_cyrillic",
    "unicode-1-1-utf-8": "utf-8",
    "unicode": "utf-16-le",
    "iso-10646-ucs-2": "utf-16-le",
    "utf-8-sig": "utf-8",
}
# Text codecs of Python that are no encoding of any page; the first would let bytes that show no tag become one.
_NO_CHARSETS = frozenset({"utf-7", "unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined"})
_BYTE_ORDERS = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_WIDE = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})
_WIDE_STARTS = {b"<\x00": "utf-16-le", b"\x00<": "utf-16-be"}
# How many characters it takes until valid or broken UTF-8 is no coincidence.
_PROOF_CHARACTERS = 16
_UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTES = bytes(range(0x80, 0x100))
# How most pages begin today, that need no search for a declaration.
_BEGINS_AS_UTF8 = re.compile(
    rb"\s*(?:<!doctype html>)?\s*(?:<html(?:\s[^<>]*)?>)?\s*(?:<head>)?\s*<meta\s+charset\s*=\s*"
    rb"""(?:"utf-8"|'utf-8'|utf-8(?=[\s>]))\s*/?>""",
    re.IGNORECASE,
).match
_HEADER_LABEL = re.compile(r""".*?;\s*charset\s*=\s*["']?([\w-]+)""", re.IGNORECASE).match
_REPLACE = "scrapy_plus_replace"


def page_text(body: bytes, content_type: str | None = None, explicit: str | None = None) -> tuple[str, str]:
    """(encoding, text) of a page, by: explicit, BOM, Content-Type, declaration in the page, UTF-8, detection.

    Labels are read as browsers do (gb2312 as gb18030, iso-8859-1 as cp1252, ...); unknown ones, and those that many
    characters contradict, count as absent. Broken bytes become U+FFFD and never take the next ASCII byte with them.
    Raises LookupError if `explicit` is no encoding.
    """
    if explicit is not None:
        encoding = resolve(explicit)
        if encoding is None:
            raise LookupError(f"unknown encoding {explicit!r}")
        return encoding, _without_bom(decode(body, encoding))
    encoding, bom = read_bom(body)
    if encoding is not None and bom is not None:
        return encoding, decode(body[len(bom) :], encoding)
    return _declared_text(body, content_type) or _undeclared_text(body)


def resolve(label: str) -> str | None:
    """Python's name of the encoding that browsers understand by `label`, or None if it names none."""
    return _resolve(label.strip().lower())


@lru_cache(maxsize=256)
def _resolve(label: str) -> str | None:
    try:
        name = resolve_encoding(_LABELS.get(label, label))
        if name is None or name in _NO_CHARSETS or not getattr(codecs.lookup(name), "_is_text_encoding", True):
            return None
    except (LookupError, ValueError):
        return None
    return _LABELS.get(name, _BYTE_ORDERS.get(name, name))


def decode(body: bytes, encoding: str) -> str:
    """The text of `body`, broken bytes as U+FFFD."""
    return body.decode(encoding, _REPLACE)


def _declared_text(body: bytes, content_type: str | None) -> tuple[str, str] | None:
    utf8 = _utf8_text(body)
    for encoding in _declarations(body, content_type):
        if encoding == "utf-8":
            if utf8 is not None:
                return encoding, utf8
            if _is_no_utf8(body):
                continue
        elif utf8 is not None and not body.isascii() and _is_contradicted(body, encoding):
            return "utf-8", utf8
        return encoding, _without_bom(decode(body, encoding))
    return ("utf-8", utf8) if utf8 is not None and body[:2] not in _WIDE_STARTS else None


def _declarations(body: bytes, content_type: str | None) -> Iterator[str]:
    if header := _header_encoding(content_type):
        yield header
    if declared := _page_encoding(body):
        yield declared


def _undeclared_text(body: bytes) -> tuple[str, str]:
    """For bodies that are not valid UTF-8: a mostly valid one was cut or damaged, others are detected."""
    encoding = _WIDE_STARTS.get(body[:2])
    if encoding is None:
        valid, broken = _utf8_counts(body)
        encoding = "utf-8" if valid > broken else detect(body)
    return encoding, decode(body, encoding)


def _utf8_text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=256)
def _header_encoding(content_type: str | None) -> str | None:
    if not content_type or "charset" not in content_type.lower():
        return None
    match = _HEADER_LABEL(content_type)
    label = match[1].lower() if match and match[1].lower() in _LABELS else http_content_type_encoding(content_type)
    return None if label is None else resolve(label)


def _page_encoding(body: bytes) -> str | None:
    """The first declaration inside the page's first 4 kB. One of UTF-16 that could be read as ASCII is wrong."""
    if _BEGINS_AS_UTF8(body):
        return "utf-8"
    head = body[:4096].lower()
    if b"charset" not in head and b"encoding" not in head:  # tenfold faster than to scan the tags of 4 kB for nothing
        return None
    encoding = html_body_declared_encoding(body)
    if encoding is None:
        return None
    encoding = resolve(encoding)
    return None if encoding is None or encoding in _WIDE else encoding


def _is_no_utf8(body: bytes) -> bool:
    """Whether a page that calls itself UTF-8 holds mostly other bytes: servers add the label to any file they have."""
    valid, broken = _utf8_counts(body)
    return broken > _PROOF_CHARACTERS and broken > valid


def _is_contradicted(body: bytes, encoding: str) -> bool:
    """Whether a valid UTF-8 body calls itself something else: many such sequences in a row do not come by chance."""
    return encoding not in _WIDE and _utf8_counts(body)[0] > _PROOF_CHARACTERS


def _utf8_counts(body: bytes) -> tuple[int, int]:
    """(UTF-8 characters, bytes that belong to none) among the non-ASCII bytes of the first 64 kB."""
    sample = body[: 1 << 16]
    rest, valid = _UTF8_CHARACTER.subn(b"", sample)
    return valid, len(rest) - len(rest.translate(None, _HIGH_BYTES))


def _without_bom(text: str) -> str:
    return text[1:] if text.startswith("\ufeff") else text


def _replace(error: UnicodeError) -> tuple[str, int]:
    """U+FFFD for the broken bytes, going on at the first ASCII one; two that Python's codecs lack are read as meant."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start, broken = error.start, error.object[error.start : error.end]
    if error.encoding == "gb18030" and broken[:1] == b"\x80":
        return "€", start + 1
    if error.encoding == "euc_jp" and (character := _nec_row(error.object[start : start + 2])):
        return character, start + 2
    ascii_at = next((at for at, byte in enumerate(broken) if at and byte < 0x80), len(broken))
    return "\ufffd", start + ascii_at


def _nec_row(pair: bytes) -> str:
    """The circled digits and units of JIS row 13, which pages in EUC-JP use and Python's codec lacks."""
    if len(pair) < 2 or pair[0] != 0xAD or not 0xA1 <= pair[1] <= 0xFE:
        return ""
    column = pair[1] - 0xA1
    return bytes((0x87, column + 0x40 + (column >= 0x3F))).decode("cp932", "ignore")


codecs.register_error(_REPLACE, _replace)
