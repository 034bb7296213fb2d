"""What is said of a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workers.messages.values import word


@dataclass(frozen=True)
class Number:
    """A parameter under the name it has in the engine, and where its value is from."""

    role: str
    name: str
    value: object
    source: str

    @property
    def shown(self) -> str:
        return _shown(self.value)


@dataclass(frozen=True)
class Words:
    """`text` stands in the form, `more` on the page of methods; `parts` by role, `numbers` that the method sets."""

    name: str
    title: str
    text: str
    paper: str
    parts: Mapping[str, str]
    numbers: Sequence[Number] = field(default=())
    more: str = ""

    @property
    def parameters(self) -> dict[str, dict[str, object]]:
        """By role, as the engine has them."""
        found: dict[str, dict[str, object]] = {}
        for number in self.numbers:
            found.setdefault(number.role, {})[number.name] = number.value
        return found


@dataclass(frozen=True)
class Group:
    """Methods under one heading; an `everyday` one is shown at once."""

    title: str
    text: str
    methods: Sequence[Words]
    everyday: bool = False


@dataclass(frozen=True)
class Part:
    """A registered part in plain words; `title` stands in the form, `numbers` are its defaults."""

    name: str
    title: str
    text: str
    numbers: Sequence[Number] = field(default=())

    @property
    def parameters(self) -> dict[str, object]:
        """Its defaults, as the engine has them."""
        return {number.name: number.value for number in self.numbers}


def parts(scheduler: str, explorer: str, sampler: str, cost_model: str, evaluator: str) -> dict[str, str]:
    return {
        "scheduler": scheduler, "explorer": explorer, "sampler": sampler, "cost_model": cost_model,
        "evaluator": evaluator,
    }  # fmt: skip


def numbers(role: str, source: str, **values: object) -> tuple[Number, ...]:
    """Parameters of one part that have one source."""
    return tuple(Number(role, name, value, source) for name, value in values.items())


def _shown(value: object) -> str:
    if (plain := word(value)) is not None:
        return plain
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return f"{value:g}" if isinstance(value, float) else f"{value}"
