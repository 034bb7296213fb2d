"""What a method is: which parts work together, and with which numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from workers.engine.cost_model import COST_MODELS
from workers.engine.evaluator import EVALUATORS, evaluator_from
from workers.engine.explorer import EXPLORERS
from workers.engine.known import NOTHING, Known
from workers.engine.methods import libraries
from workers.engine.ports import CostModel, Evaluator, Explorer, Proposer, Sampler
from workers.engine.proposer import GuidedProposer
from workers.engine.registry import make
from workers.engine.sampler import SAMPLERS
from workers.engine.scheduler import SCHEDULERS
from workers.engine.search import Search
from workers.engine.space import Operator
from workers.engine.transfer import Neighbours

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

    `slot_seconds` is the papers' slot by time; None makes a slot one plan. An operator is finished after `slots` of its own;
    None is no such end. `last` is the share of a run's seconds, at most
    (`pipeline.last_turn`), that is left for its end, when the bests in most doubt and what may be as good are measured
    once more.
    """

    plan: int = 16
    warm_up: int = 4
    slot_seconds: float | None = None
    slots: int | None = None
    last: float = 0.0

    def __post_init__(self) -> None:
        if self.plan < 1 or self.warm_up < 1 or not (self.slot_seconds is None or self.slot_seconds > 0):
            raise ValueError(
                f"plan {self.plan} and warm_up {self.warm_up} start at 1, slot_seconds {self.slot_seconds} above 0"
            )
        if self.slots is not None and self.slots < 1:
            raise ValueError(f"slots {self.slots} of an operator start at 1")
        if not 0 <= self.last < 1:
            raise ValueError(f"last {self.last} must be a share from 0 to under 1")


@dataclass(frozen=True)
class Method:
    """Names of parts by role, and `parameters[role]` for each, "search" (`Search`) and "rhythm" (`Rhythm`) included."""

    name: str
    scheduler: str
    explorer: str
    sampler: str
    cost_model: str
    evaluator: str
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def extending(cls, method: Method, **more: Any) -> Self:
        """`method` as one of this class, whose own fields are `more`."""
        return cls(**{one.name: getattr(method, one.name) for one in fields(Method)}, **more)

    @property
    def definition(self) -> str:
        """All that makes it what it is, but for its name, as text: with a number changed it is another."""
        parts = {role: getattr(self, role) for role in ROLES}
        parameters = {role: dict(numbers) for role, numbers in self.parameters.items()}
        return json.dumps({**parts, "parameters": parameters}, sort_keys=True)

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

    def prepare(self) -> None:
        """Loads the libraries that its parts will use, and no others; without it they do so in the middle of a run."""
        libraries.load({role: getattr(self, role) for role in ROLES} | {"acquisition": self.search.acquisition})

    def make_evaluator(self) -> Evaluator:
        return evaluator_from(*self.evaluation)

    def make_explorer(self, operator: Operator, rng: np.random.Generator) -> Explorer:
        """For one sketch of `operator`."""
        return make("explorer", EXPLORERS, self.explorer, rng, **self.parameters.get("explorer", {}))

    def make_sampler(self, operator: Operator, seed: int) -> Sampler:
        return make("sampler", SAMPLERS, self.sampler, seed, **self.parameters.get("sampler", {}))

    def make_cost_model(self, operator: Operator, seed: int) -> CostModel:
        """A new one for every fit."""
        return make("cost model", COST_MODELS, self.cost_model, seed, **self.parameters.get("cost_model", {}))

    def make_proposer(
        self, operator: Operator, seed: int, known: Known = NOTHING, neighbours: Neighbours | None = None
    ) -> Proposer:
        """The inner search of `operator`, which may learn from `neighbours`; equal seeds, operators and knowledge
        propose equally."""
        return GuidedProposer(
            operator,
            lambda rng: self.make_explorer(operator, rng),
            self.make_sampler(operator, seed),
            lambda: self.make_cost_model(operator, seed),
            np.random.default_rng([seed, operator.index]),
            self.search,
            known,
            neighbours,
        )
