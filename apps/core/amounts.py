"""Amounts of bytes, as who runs the site writes them and as people read them."""

from __future__ import annotations

import re

_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)b)?\s*", re.ASCII | re.IGNORECASE)


def bytes_of(text: str) -> int | None:
    """20GB, 500 MiB or a plain number of bytes; None for what is no amount."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    number, prefix, binary = found.groups()
    power = " kmgt".index((prefix or " ").lower())
    return int(float(number) * (1024 if binary else 1000) ** power)


def shown(size: float) -> str:
    """4.96 MB: three significant digits, by thousands."""
    unit = "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if abs(size) < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:#.3g} {unit}".replace(". ", " ")
