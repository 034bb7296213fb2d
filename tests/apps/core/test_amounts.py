"""Amounts of bytes are read as they are written, and shown in three digits."""

from __future__ import annotations

import pytest

from apps.core.amounts import bytes_of, shown


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("20GB", 20_000_000_000), ("20 gib", 20 << 30), ("1.5MB", 1_500_000), ("512", 512), ("7b", 7), (" 1 KiB ", 1024),
        ("2TB", 2 * 10**12), ("0", 0),
    ],
)  # fmt: skip
def test_an_amount_is_read_as_it_is_written(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "20 pounds", "1e9", "20GBs", "1,5GB", "٣GB", "inf", "20G"])
def test_what_is_no_amount_is_none(text: str) -> None:
    assert bytes_of(text) is None


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (5, "5 B"), (999, "999 B"), (999.6, "1.00 kB"), (4_956_208, "4.96 MB"), (20e9, "20.0 GB"),
        (123e6, "123 MB"), (999.6e6, "1.00 GB"), (3e12, "3.00 TB"),
    ],
)  # fmt: skip
def test_three_digits_are_shown(size: float, text: str) -> None:
    assert shown(size) == text
