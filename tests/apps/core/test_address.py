"""Whose word it is where a request came from."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from apps.core.address import address_of, address_of_socket, client_of

FORGED = "192.0.2.66, 198.51.100.7"


@pytest.mark.parametrize(
    ("tls", "peer", "forwarded", "address"),
    [
        (False, "203.0.113.5", None, "203.0.113.5"),
        (False, "203.0.113.5", FORGED, "203.0.113.5"),
        (False, "127.0.0.1", FORGED, "127.0.0.1"),
        (True, "127.0.0.1", FORGED, "198.51.100.7"),
        (True, "::1", FORGED, "198.51.100.7"),
        (True, "::ffff:127.0.0.1", FORGED, "198.51.100.7"),
        (True, "10.0.0.2", FORGED, "198.51.100.7"),
        (True, "10.0.0.3", FORGED, "10.0.0.3"),
        (True, "127.0.0.1", None, "127.0.0.1"),
        (True, "127.0.0.1", "192.0.2.66, ", "127.0.0.1"),
        (True, "127.0.0.1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (True, "127.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"),
        (True, "127.0.0.1", "203.0.113.7:51234", "203.0.113.7"),
        (True, "127.0.0.1", "192.0.2.66:80, 203.0.113.7:51235", "203.0.113.7"),
        (True, "127.0.0.1", "[2001:db8::7]:51234", "2001:db8::"),
        (True, "127.0.0.1", "[2001:db8::7]", "2001:db8::"),
        (True, "127.0.0.1", "[::ffff:203.0.113.7]:51234", "203.0.113.7"),
        (True, "127.0.0.1", "2001:db8::7:5123", "2001:db8::"),
        (True, "127.0.0.1", "unknown", "unknown"),
        (True, "127.0.0.1", "x" * 100_000, "x" * 64),
        (False, "", None, ""),
    ],
)
def test_only_a_proxy_is_believed_and_only_its_last_word(
    settings: Any, tls: bool, peer: str, forwarded: str | None, address: str
) -> None:
    settings.TLS, settings.PROXIES = tls, ["10.0.0.2"]
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    assert address_of(RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer)) == address
    scope = {
        "client": [peer, 4711],
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    assert address_of_socket(scope) == address


def test_a_peer_on_a_unix_socket_has_no_address() -> None:
    assert address_of_socket({"client": None, "headers": []}) == ""


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("203.0.113.5", "203.0.113.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("10.0.0.2", None),
        ("127.0.0.1", None),
        ("::1", None),
    ],
)
def test_who_speaks_for_others_is_no_client(settings: Any, peer: str, client: str | None) -> None:
    settings.PROXIES = ["10.0.0.2"]
    assert client_of(peer) == client
