"""Which parts fit together."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from workers.engine.errors import IllegalMethod
from workers.engine.methods.method import REGISTRIES, Method
from workers.engine.registry import check
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.space import Operator, Sketch
from workers.messages.composition import Composition

KNOWING = "oracle"
"""The scheduler that is shown recorded curves: it cannot be made without."""


def check_legal(made: Method, stored: bool = False) -> None:
    """Raises UnknownPart for names nobody registered and IllegalMethod for parts that do not fit together; where a run has them
    already (`stored`) only for those with which it cannot search."""
    parts = {role: getattr(made, role) for role in REGISTRIES}
    for role, registry in REGISTRIES.items():
        check(role.replace("_", " "), registry, parts[role])
    composition = Composition.of(parts, made.parameters)
    if misfit := composition.obstacle if stored else composition.misfit:
        raise IllegalMethod(misfit)


def check_numbers(made: Method) -> None:
    """Raises IllegalMethod for parameters that a part, "search" or "rhythm" does not take."""
    nothing = Operator(0, "", "", 1, 0.0, 0.0, 1.0, (Sketch(()),), ())
    shown = {"curves": {"0": [1.0]}} if made.scheduler == KNOWING else {}
    try:
        made.make_proposer(nothing, 0)
        parts = {
            "rhythm": made.rhythm,
            "search": made.search,
            "evaluator": made.make_evaluator(),
            "cost_model": made.make_cost_model(nothing, 0),
            "explorer": made.make_explorer(nothing, np.random.default_rng(0)),
            "sampler": made.make_sampler(nothing, 0),
            "scheduler": scheduler_named(
                made.scheduler, Setting(0, 1.0), **shown | dict(made.parameters.get("scheduler", {}))
            ),
        }
        for role, part in parts.items():
            _check_whole(part, made.parameters.get(role, {}))
    except (TypeError, ValueError) as error:
        raise IllegalMethod(f"parameters {dict(made.parameters)}: {error}; leave them out or correct them") from None


def _check_whole(part: object, numbers: Mapping[str, Any]) -> None:
    """Raises ValueError for a fraction where the part counts something: it would end a run in its first slot."""
    for name, parameter in inspect.signature(type(part).__init__).parameters.items():
        if parameter.annotation in ("int", "int | None") and isinstance(numbers.get(name), float):
            raise ValueError(f"{name} {numbers[name]} must be a whole number")
