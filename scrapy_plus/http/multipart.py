"""multipart/form-data: the body of a form that carries files."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_NEWLINE = re.compile(r"\r\n|\r|\n")
_QUOTED = str.maketrans({"\r": "%0D", "\n": "%0A", '"': "%22"})
OCTETS = "application/octet-stream"


class File(NamedTuple):
    """A file of a form: its name, its bytes, its type."""

    name: str = ""
    content: bytes = b""
    type: str = OCTETS


def as_file(given: Any) -> File:
    """A file as it may be given: bytes, a text, an open file, or (name, one of these[, type])."""
    name, kind = "", ""
    if isinstance(given, tuple | list):
        if not 2 <= len(given) <= 3:
            raise TypeError(f"a file is (name, content) or (name, content, type), not {len(given)} values")
        name, kind, given = str(given[0]), str(given[2]) if len(given) > 2 else "", given[1]
    if hasattr(given, "read"):
        name = name or str(getattr(given, "name", "")).replace("\\", "/").rpartition("/")[2]
        given = given.read()
    content = given.encode() if isinstance(given, str) else given
    if not isinstance(content, bytes | bytearray):
        raise TypeError(f"the content of a file is bytes, a text or an open file, not {type(given).__name__}")
    return File(name or "file", bytes(content), kind or mimetypes.guess_type(name)[0] or OCTETS)


def pairs(given: Any) -> list[tuple[str, Any]]:
    """The fields of a mapping or of pairs, a list as value being several fields; those of None are left out."""
    rows = given.items() if isinstance(given, Mapping) else given or ()
    found = []
    for name, value in rows:
        for one in value if isinstance(value, list | tuple) and not isinstance(value, File) else (value,):
            if one is not None:
                found.append((str(name), one))
    return found


def multipart(entries: Iterable[tuple[str, Any]], *, encoding: str = "utf-8") -> tuple[bytes, str]:
    """The body and its Content-Type. The same entries give the same bytes: a request is found again by its body.

    Source: WHATWG HTML, "multipart/form-data encoding algorithm".
    """
    parts = [_part(name, value, encoding) for name, value in entries]
    boundary = "----form" + hashlib.sha1(b"\0".join(parts)).hexdigest()
    line = boundary.encode()
    body = b"".join(b"--" + line + b"\r\n" + part + b"\r\n" for part in parts)
    return body + b"--" + line + b"--\r\n", f"multipart/form-data; boundary={boundary}"


def _part(name: str, value: Any, encoding: str) -> bytes:
    head = f'Content-Disposition: form-data; name="{_NEWLINE.sub(chr(13) + chr(10), name).translate(_QUOTED)}"'
    if isinstance(value, File):
        head += f'; filename="{value.name.translate(_QUOTED)}"\r\nContent-Type: {value.type}'
        content = value.content
    elif isinstance(value, bytes):
        content = value
    else:
        content = _NEWLINE.sub("\r\n", str(value)).encode(encoding, "xmlcharrefreplace")
    return head.encode(encoding, "xmlcharrefreplace") + b"\r\n\r\n" + content
