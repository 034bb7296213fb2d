"""Columns that line up, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

NOTHING = "-"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the head; the first column is left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    made = []
    for number, row in enumerate(rows):
        cells = [
            text.ljust(widths[0]) if column == 0 else text.rjust(widths[column]) for column, text in enumerate(row)
        ]
        made.append("  ".join(cells).rstrip())
        if number == 0:
            made.append("-" * len(made[0]))
    return "\n".join(made) + "\n"


def number(value: float | None, digits: int = 1) -> str:
    """A figure, or a dash for one that is not there."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def milliseconds(seconds: float | None) -> str:
    """Four significant digits; a dash for what is not there."""
    return NOTHING if seconds is None else f"{1e3 * seconds:.4g}"
