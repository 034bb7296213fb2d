"""Where a device is, as it is typed."""

from __future__ import annotations

import pytest

from workers.messages.device import PORT, Address

KEY = "k" * 32


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("board", "board", PORT, f"board:{PORT}"),
        (" 10.0.0.7:9200 ", "10.0.0.7", 9200, "10.0.0.7:9200"),
        ("::1", "::1", PORT, f"[::1]:{PORT}"),
        ("[fe80::1]:9200", "fe80::1", 9200, "[fe80::1]:9200"),
        ("[fe80::1]", "fe80::1", PORT, f"[fe80::1]:{PORT}"),
    ],
)
def test_an_address_is_read_and_told(text: str, host: str, port: int, shown: str) -> None:
    address = Address.read(text, f"{KEY}\n")
    assert address == Address(host, port, KEY)
    assert str(address) == shown
    assert Address.from_json(address.to_json()) == address


@pytest.mark.parametrize("text", ["", ":9200", "a/b", "ada@board", "board:", "board:0", "board:65536", "board:9²"])
def test_what_is_none_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write "):
        Address.read(text, KEY)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16 to 200 letters"):
        Address.read("board", "key")
