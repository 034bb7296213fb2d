"""Which parts of a method fit together: one check, asked by the engine and by the form of a new run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

UNSURE = ("xgboost", "none")
"""Cost models that do not say how sure they are: the spread of their opinions is zero."""
GREEDY = "greedy"
"""The sampler that needs no more candidates than it returns."""
CLUSTERING = ("adaptive", "adaptive-program")
DRAWING = "adaptive-program"
"""The one of CLUSTERING that leaves some of a plan to chance."""
MOST = 63
"""Configurations that the first of CLUSTERING returns at most (Chameleon, Algorithm 1: k = 8..63)."""
POOL = 8.0
"""Candidates for each place in a plan of any sampler but GREEDY: what CLUSTERING was measured with."""
KNOWING = "oracle"
"""The scheduler that is shown a landscape's recorded curves, and cannot be made without: what knowing costs has no meaning."""
EVOLVING = "metaschedule"
"""The explorer that is TVM's own search: it brings its own cost model and chooses by itself. On landscapes, which have no
programs, it evolves knobs."""
BROUGHT = {"sampler": GREEDY, "cost_model": "xgboost"}
"""The parts beside EVOLVING: others would not be asked."""

Parameters = Mapping[str, Mapping[str, Any]]
"""By role, "search" and "rhythm" included; what is not named has its default."""


def inherited(parameters: Parameters, replaced: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Of a method's parameters those that stay when parts are `replaced` by others, by role.

    A replaced part comes with its own defaults, a sampler with the pool it wants.
    """
    kept = {role: numbers for role, numbers in parameters.items() if role not in replaced}
    if "sampler" in replaced:
        search = {name: number for name, number in kept.get("search", {}).items() if name != "pool"}
        kept["search"] = search if replaced["sampler"] == GREEDY else {**search, "pool": POOL}
    return kept


@dataclass(frozen=True)
class Composition:
    """Of a method what decides whether its parts fit: three of them by name, and numbers of its sampler, inner search and
    rhythm, whose defaults are the engine's."""

    explorer: str
    sampler: str
    cost_model: str
    acquisition: str = "mean"
    contextual: bool = False
    pool: float = 1.0
    plan: int = 16
    ahead: int | None = None
    chance: int = 3
    features: str = "knobs"

    @classmethod
    def of(cls, parts: Mapping[str, str], parameters: Parameters) -> Self:
        """`parts` by role; others than the three may be among them."""
        given = {
            name: number
            for role in ("sampler", "search", "rhythm")
            for name, number in parameters.get(role, {}).items()
        }
        deciding = {one.name: given[one.name] for one in fields(cls) if one.name in given}
        return cls(parts["explorer"], parts["sampler"], parts["cost_model"], **deciding)

    @property
    def misfit(self) -> str:
        """Which value does not fit, why, and what to choose instead; empty where all do. No run is made of such parts."""
        if unasked := self._unasked:
            return (
                f"explorer {self.explorer!r} brings its own cost model and chooses by itself, it would not ask "
                f"{', '.join(unasked)}; choose sampler {BROUGHT['sampler']} and cost_model {BROUGHT['cost_model']} in a "
                "method that scores by the mean of knob features, or another explorer"
            )
        planned = self.ahead or self.plan
        if self.sampler == DRAWING and planned <= self.chance:
            return (
                f"sampler {self.sampler!r} leaves the last {self.chance} of a plan to chance, and a plan of {planned} has no "
                f"others; set {'search.ahead' if self.ahead else 'rhythm.plan'} to {self.chance + 1} or more"
            )
        return self.obstacle

    @property
    def obstacle(self) -> str:
        """A misfit with which nothing can be searched. The others change nothing: runs that were made of them before they were
        refused go on."""
        if self.cost_model == "none" and self.explorer != "random":
            return (
                f"explorer {self.explorer!r} follows a cost model and there is none; "
                "choose cost_model xgboost or explorer random"
            )
        if self.contextual and self.explorer == "random":
            return (
                "the contextual optimizer weighs chance against the explorer, and explorer 'random' is all chance; "
                "choose another explorer, or a method with a fixed share of chance"
            )
        if self.cost_model in UNSURE and (self.contextual or self.acquisition != "mean"):
            wants = "the contextual optimizer" if self.contextual else f"acquisition {self.acquisition!r}"
            return (
                f"{wants} asks how sure the cost model is, and {self.cost_model!r} does not tell; "
                "choose cost_model random_forest, or a method that scores by the mean"
            )
        thinning = self.sampler in CLUSTERING and self.plan > MOST  # a plan larger than it returns at most
        if self.sampler != GREEDY and self.pool == 1 and not thinning:
            return (
                f"sampler {self.sampler!r} chooses among more candidates than a plan holds, and search.pool 1 gives it no "
                f"more; set search.pool to {POOL:g}"
            )
        return ""

    @property
    def _unasked(self) -> list[str]:
        """What EVOLVING has in place of a part or number of this method."""
        if self.explorer != EVOLVING:
            return []
        others = [f"{role} {part!r}" for role, brought in BROUGHT.items() if (part := getattr(self, role)) != brought]
        others += [f"acquisition {self.acquisition!r}"] * (self.acquisition != "mean")
        others += [f"features {self.features!r}"] * (self.features != "knobs")
        return [*others, "the contextual optimizer"] if self.contextual else others
