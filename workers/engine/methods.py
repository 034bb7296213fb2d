"""Methods: which parts work together, and with which numbers.

`auto` is what measures best; the presets reproduce the papers, `-paper` with the papers' budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workers.engine.cost_model import COST_MODELS
from workers.engine.errors import IllegalMethod
from workers.engine.evaluator import EVALUATORS, evaluator_from
from workers.engine.evaluator.fixed import PAPER as FIXED_PAPER
from workers.engine.explorer import EXPLORERS
from workers.engine.ports import CostModel, Evaluator, Explorer
from workers.engine.proposer import Proposer, Search
from workers.engine.registry import check, make
from workers.engine.sampler import SAMPLERS
from workers.engine.scheduler import SCHEDULERS
from workers.engine.space import Operator

REGISTRIES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "scheduler": SCHEDULERS,
    "explorer": EXPLORERS,
    "sampler": SAMPLERS,
    "cost_model": COST_MODELS,
    "evaluator": EVALUATORS,
}
ROLES = tuple(REGISTRIES)


@dataclass(frozen=True)
class Rhythm:
    """How a run spends its trials: `plan` candidates a slot, at most `warm_up` an operator before the scheduler starts.

    `slot_seconds` is the papers' slot by time; None makes a slot one plan.
    """

    plan: int = 16
    warm_up: int = 4
    slot_seconds: float | None = None


@dataclass(frozen=True)
class Method:
    """Names of parts by role, and `parameters[role]` for each, "search" (`Search`) and "rhythm" (`Rhythm`) included."""

    name: str
    scheduler: str
    explorer: str
    sampler: str
    cost_model: str
    evaluator: str
    summary: str
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def search(self) -> Search:
        return Search(**self.parameters.get("search", {}))

    @property
    def rhythm(self) -> Rhythm:
        return Rhythm(**self.parameters.get("rhythm", {}))

    @property
    def evaluation(self) -> tuple[str, dict[str, Any]]:
        """Name and JSON parameters for `evaluator_from` in the measuring process."""
        return self.evaluator, dict(self.parameters.get("evaluator", {}))

    def make_evaluator(self) -> Evaluator:
        return evaluator_from(*self.evaluation)

    def make_proposer(self, operator: Operator, seed: int) -> Proposer:
        """The inner search of `operator`; equal seeds and operators propose equally."""

        def explorer(rng: np.random.Generator) -> Explorer:
            return make("explorer", EXPLORERS, self.explorer, rng, **self.parameters.get("explorer", {}))

        def cost_model() -> CostModel:
            return make("cost model", COST_MODELS, self.cost_model, seed, **self.parameters.get("cost_model", {}))

        sampler = make("sampler", SAMPLERS, self.sampler, seed, **self.parameters.get("sampler", {}))
        rng = np.random.default_rng([seed, operator.index])
        return Proposer(operator, explorer, sampler, cost_model, rng, self.search)


_ANNEALING_PAPER = {"chains": 128, "steps": 500, "patience": 50, "elite": 0.0, "exhaustive": False}

_PRESETS = [
    Method(
        name="dynatune",
        scheduler="dynatune",
        explorer="simulated_annealing",
        sampler="greedy",
        cost_model="xgboost",
        evaluator="fixed",
        summary="DynaTune (ICLR 2021): a Bayesian belief of each operator's curve and UCB give the time to the "
        "operators that promise the largest gain; inside an operator boosted trees and annealing. Small "
        "slots, short timings.",
    ),
    Method(
        name="dynatune-paper",
        scheduler="dynatune-paper",
        explorer="simulated_annealing",
        sampler="greedy",
        cost_model="xgboost",
        evaluator="fixed",
        summary="DynaTune with the budgets of the paper and its program: slots of 100 s, plans of 64, 500 runs a "
        "measurement, annealing of 500 steps, ranking trees. Meant for runs of hours.",
        parameters={
            "explorer": _ANNEALING_PAPER,
            "cost_model": {"objective": "rank", "rounds": 100, "subsample": 1.0},
            "evaluator": FIXED_PAPER,
            "search": {"first": 64},
            "rhythm": {"plan": 64, "warm_up": 64, "slot_seconds": 100.0},
        },
    ),
    Method(
        name="autotvm",
        scheduler="sequential",
        explorer="simulated_annealing",
        sampler="greedy",
        cost_model="xgboost",
        evaluator="fixed",
        summary="AutoTVM (Chameleon, Table 8): one operator after the other, annealing of 500 steps on 128 "
        "chains, trees on normalised speed, plans of 64 of which 5 % are random, 500 runs a measurement.",
        parameters={
            "explorer": _ANNEALING_PAPER,
            "cost_model": {"objective": "reg", "target": "speed", "rounds": 100, "subsample": 1.0},
            "evaluator": FIXED_PAPER,
            "search": {"first": 64},
            "rhythm": {"plan": 64, "warm_up": 1},
        },
    ),
    Method(
        name="round_robin",
        scheduler="round_robin",
        explorer="simulated_annealing",
        sampler="greedy",
        cost_model="xgboost",
        evaluator="fixed",
        summary="The inner search of dynatune with slots given in turn: what a scheduler has to beat (DynaTune, 5.2).",
    ),
    Method(
        name="sequential",
        scheduler="sequential",
        explorer="simulated_annealing",
        sampler="greedy",
        cost_model="xgboost",
        evaluator="fixed",
        summary="The inner search of dynatune, one operator after the other in equal parts of the budget.",
    ),
    Method(
        name="random",
        scheduler="round_robin",
        explorer="random",
        sampler="greedy",
        cost_model="none",
        evaluator="fixed",
        summary="Random configurations, operators in turn: what every method has to beat.",
    ),
]

METHODS: dict[str, Method] = {preset.name: preset for preset in _PRESETS}
METHODS["auto"] = replace(
    METHODS["dynatune"],
    name="auto",
    summary="What measures best so far: the same as dynatune. " + METHODS["dynatune"].summary,
)


def method(name: str, parts: Mapping[str, str] | None = None) -> Method:
    """The preset `name`, with parts replaced by role, for example {"scheduler": "round_robin"}.

    A replaced part comes with its own default parameters. UnknownPart for names nobody registered, IllegalMethod for
    roles that do not exist and parts that do not fit together; both messages list what is legal.
    """
    check("method", METHODS, name)
    chosen = METHODS[name]
    parts = dict(parts or {})
    for role in parts:
        if role not in REGISTRIES:
            raise IllegalMethod(f"{role!r} is no part of a method; parts are {', '.join(ROLES)}")
    changed = {role: part for role, part in parts.items() if part != getattr(chosen, role)}
    kept = {role: numbers for role, numbers in chosen.parameters.items() if role not in changed}
    made = replace(chosen, parameters=kept, **changed)
    for role, registry in REGISTRIES.items():
        check(role.replace("_", " "), registry, getattr(made, role))
    if made.cost_model == "none" and made.explorer != "random":
        raise IllegalMethod(
            f"explorer {made.explorer!r} follows a cost model and there is none; "
            "choose cost_model xgboost or explorer random"
        )
    return made


__all__ = ["METHODS", "ROLES", "Method", "Rhythm", "method"]
