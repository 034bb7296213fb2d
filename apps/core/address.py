"""Where a request came from."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest

LONGEST = 64


def address_of(request: HttpRequest) -> str:
    """The address of who asks, of IPv6 its first 64 bits: one customer has all the rest.

    With TLS on, a peer that is this machine or one of PROXIES is the proxy. It adds the address it was asked from to
    X-Forwarded-For: only the last entry is its word, what stands before it anybody can send. A proxy that adds
    nothing lets its users choose their address.
    """
    return _address(str(request.META.get("REMOTE_ADDR", "")), request.META.get("HTTP_X_FORWARDED_FOR", ""))


def address_of_socket(scope: Mapping[str, Any]) -> str:
    """The same of who opens a websocket, by the scope of ASGI."""
    forwarded = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"x-forwarded-for"]
    return _address(str((scope.get("client") or ("",))[0]), ",".join(forwarded))


def client_of(peer: str) -> str | None:
    """Whose connection one of this peer is; None of who speaks for others: a proxy, and this machine, where tunnels end."""
    return None if _is_proxy(peer) else _address(peer, "")


def _address(peer: str, forwarded: str) -> str:
    if settings.TLS and _is_proxy(peer):
        peer = _without_port(forwarded.rpartition(",")[2].strip()) or peer
    found = _parsed(peer)
    if isinstance(found, IPv6Address):
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found or peer)[:LONGEST]


def _without_port(text: str) -> str:
    """Some proxies name whom they speak for with the port: 203.0.113.7:51234, [2001:db8::7]:51234."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, _, port = text.rpartition(":")
    return host if port.isdecimal() and "." in host else text


def _is_proxy(peer: str) -> bool:
    found = _parsed(peer)
    return found is not None and (found.is_loopback or str(found) in settings.PROXIES)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found  # a socket of both kinds names IPv4 peers ::ffff:192.0.2.1
