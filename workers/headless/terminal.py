"""Words of a file or of a child on their way to a terminal, which would obey some of them."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with what is no character to look at spelled out (\\x1b), line ends and tabs left: a network's name or a
    child's last words may hold codes that move the cursor, hide what stands there or write to the clipboard."""
    return "".join(char if char.isprintable() or char in "\n\t" else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode()
