"""What is said of a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.messages.methods import Number


@dataclass(frozen=True)
class Part:
    """A registered part in plain words; `title` stands in the form, `numbers` are its defaults."""

    name: str
    title: str
    text: str
    numbers: Sequence[Number] = ()

    @property
    def parameters(self) -> dict[str, object]:
        """Its defaults, as the engine has them."""
        return {number.name: number.value for number in self.numbers}
