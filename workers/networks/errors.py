"""Why a network is refused, in words for the person who uploaded it."""


class NetworkError(Exception):
    """A network that cannot be taken: the value at fault, the reason and the next step; one line as text."""

    def __init__(self, value: object, reason: str, next_step: str) -> None:
        self.value = shown(value)
        self.reason = one_line(reason)
        self.next_step = one_line(next_step)
        super().__init__(f"{self.value}: {self.reason}; {self.next_step}")


def one_line(text: str, length: int = 300) -> str:
    """`text` without line breaks and control characters, cut to `length` characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * length]).split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def shown(value: object) -> str:
    """`value` made fit to be printed: names of a hostile file may hold anything."""
    return one_line(str(value), 80) or "(empty)"
