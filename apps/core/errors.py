"""How a service says that the user asked for something that cannot be."""

from __future__ import annotations


class Refused(Exception):
    """A user's mistake: the bad value, the reason, and what to do next. Nothing was changed."""

    def __init__(self, value: object, reason: str, next_step: str) -> None:
        super().__init__(f"{value}: {reason}; {next_step}")
        self.value = str(value)
        self.reason = reason
        self.next_step = next_step

    @property
    def sentence(self) -> str:
        """For a page."""
        return f"{self.value}: {self.reason}. Next step: {self.next_step}."
