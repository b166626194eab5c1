"""Which addresses belong to the public internet, and which only to a machine, a home or a company.

A page of the public internet must not lead a crawler into the network that it runs in. So what counts is the address
that is connected to, however it is written; of names only what they say by themselves is known here.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

MODES = ("redirect", "always", "off")
"""What is kept from private addresses: what a public page leads to, everything, nothing."""

Address = IPv4Address | IPv6Address
# Addresses that carry another one: it is that one which is reached. Sources: RFC 6052, RFC 8215, RFC 3056.
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_6TO4 = ip_network("2002::/16")
_COMPATIBLE = ip_network("::/96")


def is_guarded(mode: str, *, from_public: bool) -> bool:
    """Whether a request is kept from private addresses in this mode."""
    return mode == "always" or (mode == "redirect" and from_public)


@lru_cache(maxsize=4096)
def is_public(address: str) -> bool:
    """Whether this numeric address is one of the public internet. Raises ValueError if it is none."""
    return _is_public(ip_address(address.partition("%")[0]))


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    if any(address in network for network in _NAT64) or (address in _COMPATIBLE and number > 1):
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _6TO4:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    return None


def literal(host: str) -> Address | None:
    """The address that a URL's host is, in any of the forms that resolvers take: 127.1, 0x7f000001, 017700000001, ::1.

    None if it is a name. Source: WHATWG URL §3.5, the IPv4 parser; inet_aton(3).
    """
    host = host.strip("[]").partition("%")[0].rstrip(".")
    if ":" in host:
        try:
            return IPv6Address(host)
        except ValueError:
            return None
    parts = host.split(".")
    if len(parts) > 4:
        return None
    numbers = [_number(part) for part in parts]
    *head, last = numbers
    if last is None or any(number is None or number > 255 for number in head):
        return None
    value = last
    if value >= 256 ** (5 - len(parts)):
        return None
    for place, number in enumerate(head):
        value += (number or 0) << (8 * (3 - place))
    return IPv4Address(value)


def _number(part: str) -> int | None:
    try:
        if part[:2] in ("0x", "0X"):
            return int(part[2:] or "0", 16) if part[2:].isalnum() or not part[2:] else None
        if not part.isdigit() or not part.isascii():
            return None
        return int(part, 8) if part[0] == "0" and len(part) > 1 else int(part)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def is_private_host(host: str) -> bool:
    """Whether a URL's host is private by what it says itself: a private address, or localhost (RFC 6761 §6.3)."""
    address = literal(host)
    if address is not None:
        return not _is_public(address)
    name = host.rstrip(".").lower()
    return name in ("localhost", "ip6-localhost", "ip6-loopback") or name.endswith((".localhost", ".localdomain"))
