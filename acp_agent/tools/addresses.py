"""Which addresses of the network may be fetched from: those of the public internet."""

from __future__ import annotations

import ipaddress
import socket

import anyio

from acp_agent.errors import ToolError

__all__ = ["is_public", "literal_address", "resolve_host"]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether `address` is one of the public internet, and hides no other one inside (mapped, 6to4, Teredo, NAT64)."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    candidates: list[ipaddress.IPv4Address | ipaddress.IPv6Address | None] = [ip]
    if isinstance(ip, ipaddress.IPv6Address):
        candidates += [ip.ipv4_mapped, ip.sixtofour, ip.teredo[1] if ip.teredo else None]
        if ip in _NAT64:
            candidates.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
        if ip.ipv4_mapped:
            candidates.remove(ip)  # what it maps to is what counts
    return all(one.is_global and not one.is_multicast for one in candidates if one is not None)


def literal_address(host: str) -> str:
    """The address that `host` spells, in whatever way; empty for a name. Asks nobody."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return ""
    return str(found[0][4][0])


async def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of `host`, in the system's order. Raises `ToolError` when there are none."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"There is no host {host!r}: {error}.") from error
    return list(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in found))
