"""Which domains belong to nobody in particular, "co.uk" and "github.io" say: no cookie may be for all of one."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any


@cache
def _suffixes() -> Any:
    """The list of publicsuffix.org as the package brings it; read at the first cookie that is for a whole domain, since
    that takes 50 ms."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=True)


@lru_cache(maxsize=4096)
def is_public_suffix(domain: str) -> bool:
    """Whether everybody may have a name below it. A name without a dot is one, whether it is on the list or not."""
    name = domain.strip(".").lower()
    return "." not in name or bool(_suffixes().is_public(name))


@lru_cache(maxsize=4096)
def owned_domain(host: str) -> str:
    """The part of a host's name that somebody has registered: all hosts that may share cookies have the same one."""
    name = host.strip(".").lower()
    if ":" in name or name.replace(".", "").isdigit() or "." not in name:
        return name
    return str(_suffixes().privatesuffix(name) or name)
