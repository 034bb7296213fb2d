"""The plain words for values of parameters: what the pages show is what may be typed."""

from __future__ import annotations

WORDS: dict[str, bool | None] = {"on": True, "off": False, "none": None}
"""As JSON has them: true, false, null."""


def word(value: object) -> str | None:
    """The word for a value; None for one that has none."""
    return next((word for word, meant in WORDS.items() if meant is value), None)
