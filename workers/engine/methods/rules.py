"""Which parts fit together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workers.engine.errors import IllegalMethod
from workers.engine.methods.method import REGISTRIES, Method
from workers.engine.methods.values import check_kinds
from workers.engine.registry import check
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.space import Operator, Sketch
from workers.messages.composition import KNOWING, Composition


def check_legal(made: Method, stored: bool = False) -> None:
    """Raises UnknownPart for names nobody registered and IllegalMethod for parts that do not fit together; where a run has them
    already (`stored`) only for those with which it cannot search."""
    parts = {role: getattr(made, role) for role in REGISTRIES}
    for role, registry in REGISTRIES.items():
        check(role.replace("_", " "), registry, parts[role])
    composition = Composition.of(parts, made.parameters)
    if misfit := composition.obstacle if stored else composition.misfit:
        raise IllegalMethod(misfit)


def check_numbers(made: Method, stored: bool = False) -> None:
    """Raises IllegalMethod for parameters that a part, "search" or "rhythm" does not take, and for values that it does not;
    where a run has them already (`stored`) only for those with which nothing can be made."""
    given = made.parameters
    try:
        for role, part in _parts(replace(made, parameters={})).items():
            if not stored:
                check_kinds(role, part, given.get(role, {}))
        _parts(made)
    except (TypeError, ValueError, OverflowError) as error:
        raise IllegalMethod(f"parameters {dict(given)}: {error}; leave them out or correct them") from None


def _parts(made: Method) -> dict[str, object]:
    """By role what takes parameters, each made once."""
    nothing = Operator(0, "", "", 1, 0.0, 0.0, 1.0, (Sketch(()),), ())
    shown = {"curves": {"0": [1.0]}} if made.scheduler == KNOWING else {}
    made.make_proposer(nothing, 0)
    return {
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
