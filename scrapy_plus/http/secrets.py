"""What must not be shown of a text: one redactor for logs, the reasons of dead letters, statistics and displays."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)([^/?#\s:@]*):[^/?#\s]*@")
_NAMES = r"password|passwd|pwd|secret|client_secret|token|access_token|auth_token|refresh_token|api_?key|apikey|api-key"
_ARGUMENT = re.compile(rf"(?<=[?&;#])((?:{_NAMES})=)[^&#;\s'\"<>]+", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"(authorization['\"]?\s*[:=,]\s*(?:b?['\"])?(?:(?:basic|bearer|digest|token)\s+)?)[^\s'\",]+", re.IGNORECASE
)


def redact(text: str) -> str:
    """The text with *** for passwords in URLs, arguments of URLs that are secrets by their name, and credentials of an
    Authorization or Proxy-Authorization header. A text without any comes back as it is."""
    if "@" in text and "://" in text:
        text = _USERINFO.sub(r"\1:***@", text)
    if "=" in text and ("?" in text or "&" in text or "#" in text):
        text = _ARGUMENT.sub(r"\1***", text)
    if "uthorization" in text or "UTHORIZATION" in text:
        text = _AUTHORIZATION.sub(r"\1***", text)
    return text
