"""A configuration knob by knob, in words.

What a child told of knobs may be anything, where the file that it read made it say so: what cannot be read is shown by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from apps.tuning.models import Measurement, Operator
from workers.messages import knobs

MEANINGS = {
    "structure": "which of the sketch's programs",
    "parallel": "most pieces that run in parallel",
    "vectorize": "longest loop that becomes a vector",
    "tile": "loop of {extent}, outer to inner",
    "location": "where the block is computed",
}
"""By a knob's name, or else by its kind; of a category see `_category`."""
PLACES = {-2: "inlined", -1: "in loops of its own"}


@dataclass(frozen=True)
class Setting:
    """What one knob is set to: `option` is the number that the log keeps; `value` is empty where no more is known."""

    name: str
    option: Any
    value: str = ""
    meaning: str = ""


def settings(operator: Operator, found: Measurement) -> list[Setting]:
    """One a knob, in order; by number where the run's knobs were never told."""
    choices = found.choices if isinstance(found.choices, list) else []
    told: Any = ()
    with suppress(LookupError, TypeError):
        told = operator.knobs[found.sketch]
    if not isinstance(told, list) or len(told) != len(choices):
        return [Setting(str(number), choice) for number, choice in enumerate(choices)]
    return [_setting(number, knob, choice) for number, (knob, choice) in enumerate(zip(told, choices, strict=True))]


def _setting(number: int, knob: Mapping[str, Any], choice: Any) -> Setting:
    with suppress(LookupError, TypeError, ValueError):
        name, kind = str(knob["name"]), str(knob["kind"])
        numbers = knobs.option(knob, choice)
        if numbers is None:
            return Setting(name, choice)
        meaning = MEANINGS.get(name) or (_category(knob["options"]) if kind == "category" else MEANINGS.get(kind, ""))
        return Setting(name, choice, _value(kind, numbers), meaning.format(extent=knob.get("extent", "some length")))
    return Setting(str(number), choice)


def _category(options: Sequence[int]) -> str:
    """Told from what may be chosen: TVM's sketches for processors have unrolling alone, which may be none; a GPU's two more."""
    if 0 in options:
        return "unrolling: most steps that are written out"
    return "numbers that a thread fetches at once" if min(options) == 1 else "threads of a block"


def _value(kind: str, numbers: Sequence[int]) -> str:
    if kind == "location":
        return PLACES.get(numbers[0], f"under loop {numbers[0]} of the one that reads it")
    return " x ".join(str(number) for number in numbers)
