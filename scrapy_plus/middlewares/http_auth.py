"""HTTP authentication with one account, bound to the domain it is for."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

from scrapy_plus.errors import SettingsError
from scrapy_plus.http.request import Request


class HttpAuth:
    """Adds `Authorization: Basic` to requests for `domain` and its subdomains that bring none of their own.

    It is put on a copy, so that no redirect carries it elsewhere; and it is not sent in the clear to where a redirect
    led from https. Raises SettingsError for an account without a domain: it would be shown to every site.
    """

    def __init__(self, user: str, password: str, domain: str) -> None:
        if not domain:
            raise SettingsError(
                "http_user (HTTP_USER) needs http_auth_domain (HTTP_AUTH_DOMAIN), the domain that the password is for"
            )
        self._domain = domain.lower().lstrip(".")
        self._value = "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")

    @classmethod
    def of(cls, spider: Any, user: str | None, password: str | None, domain: str | None) -> HttpAuth | None:
        """As the spider's http_user, http_pass and http_auth_domain say, or else the arguments; None: no account."""
        user = getattr(spider, "http_user", None) or user
        password = getattr(spider, "http_pass", None) or password
        domain = getattr(spider, "http_auth_domain", None) or domain
        return cls(user or "", password or "", domain or "") if user or password else None

    def process_request(self, request: Request) -> Request | None:
        if "authorization" in request.headers or not self._is_for(request):
            return None
        sent = request.copy()
        sent.headers["Authorization"] = self._value
        return sent

    def _is_for(self, request: Request) -> bool:
        parts = urlsplit(request.url)
        host = (parts.hostname or "").rstrip(".")
        if host != self._domain and not host.endswith(f".{self._domain}"):
            return False
        came_from = request.meta.get("redirect_urls", ()) if request.has_meta else ()
        is_downgrade = parts.scheme == "http" and any(str(url).startswith("https:") for url in came_from)
        return "@" not in parts.netloc and not is_downgrade
