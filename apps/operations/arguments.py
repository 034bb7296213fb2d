"""Numbers of command lines, for argparse: what is none or out of bounds is refused with its name and value."""

from __future__ import annotations

from argparse import ArgumentTypeError


def above_zero(text: str) -> float:
    """Finite, greater than 0."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text} is not a number greater than 0")
    return value


def count(text: str) -> int:
    """A whole number of at least 1."""
    value = above_zero(text)
    if value != int(value):
        raise ArgumentTypeError(f"{text} is not a whole number")
    return int(value)
