"""What a preset is: a method by name, as the engine makes it and as the pages tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.messages.values import word


@dataclass(frozen=True)
class Number:
    """A parameter of a part, of "search" or of "rhythm" under its name there, and where its value is from."""

    role: str
    name: str
    value: Any
    source: str

    @property
    def shown(self) -> str:
        return _shown(self.value)


@dataclass(frozen=True)
class Preset:
    """`text` stands in the form, `more` on the page of methods; `parts` by role, `numbers` that the method sets: the others
    are the parts' own."""

    name: str
    title: str
    text: str
    paper: str
    parts: Mapping[str, str]
    numbers: Sequence[Number] = ()
    more: str = ""

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Values by role and name."""
        found: dict[str, dict[str, Any]] = {}
        for number in self.numbers:
            found.setdefault(number.role, {})[number.name] = number.value
        return found


def parts(scheduler: str, explorer: str, sampler: str, cost_model: str, evaluator: str) -> dict[str, str]:
    return {
        "scheduler": scheduler, "explorer": explorer, "sampler": sampler, "cost_model": cost_model,
        "evaluator": evaluator,
    }  # fmt: skip


def numbers(role: str, source: str, **values: Any) -> tuple[Number, ...]:
    """Parameters of one role that have one source."""
    return tuple(Number(role, name, value, source) for name, value in values.items())


def _shown(value: object) -> str:
    if (plain := word(value)) is not None:
        return plain
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return f"{value:g}" if isinstance(value, float) else f"{value}"
