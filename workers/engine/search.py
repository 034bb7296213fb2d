"""The numbers of the inner search, and what it counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from workers.engine.acquisition import ACQUISITIONS
from workers.engine.ports import KNOWN
from workers.engine.registry import check

FIGURES = ("steps_to_best", "evaluations", "evaluations_to_best")
FEATURES = ("knobs", "lowered")
GROUPING = ("clusters", "synthesised")
HANDED = ("samplings", "handed")
COUNTERS = (
    "proposed", "start", KNOWN, "random", "explorer", "twin", "confirm", "reached", "enumerated", "not_greedy", "left_out",
    "duplicates", "unmapped", "walks", "steps", *FIGURES, *GROUPING, *HANDED, "fits", "steered", "chance", "doubted",
)  # fmt: skip
"""Candidates by origin, and of the explorer's: "reached" by its walks, which without a step would have given others, and
"enumerated", of sketches that were scored whole. Those that a sampler chose against greedy, and those that it found
superfluous. "duplicates" turned out to be a program already known; of TVM's own search they were proposed before, and
"unmapped" are those that no knobs stand for. Walks of the explorer and, summed over them, their steps and figures
(`Explorer`) and those of the sampler (`Sampler`); fits of the cost model; candidates proposed with a model at hand, and how
many of them were expected to be random, what a sampler draws included: chance / steered is the mean share of exploration, which
followed the model's doubt for those "doubted". "samplings" are calls of the sampler, and "handed" the candidates that it was
given in them."""


@dataclass(frozen=True)
class Search:
    """Numbers of the inner search.

    `first` measured points, failures included, an operator needs before its cost models are asked, each sketch an equal
    part of them, rounded up; until then its share of a plan is random (AutoTVM: the first plan). With 0 explorer and
    sampler choose that plan too, by a model that knows nothing (Chameleon, 3.1: whatever is measured was sampled).
    `epsilon` is the random share of a plan afterwards (AutoTVM: the last 5 %). `pool` x the plan is what the explorer hands
    to the sampler. The model is refitted when its points grew by `refit` of their number or by `refit_points`, whichever is
    less, and by `RARELY` of it at least. `patience` consecutive duplicates or invalid configurations close a sketch.
    `power` and `curiosity` set the sketches' shares, see `SketchShares`.

    `starts` is how many of the configurations that the rules of the machine begin with are measured before anything else,
    None for all (AutoTVM's default configuration is one).

    With `ahead` a plan is of so many, made when the one before is used up, and handed out in what is asked for at a time
    (program of DynaTune: 32, of which the next few are measured whenever the operator has a slice of time left).

    `acquisition` says what makes a candidate worth measuring (`ACQUISITIONS`). With `contextual` the random share
    follows the model's doubt in place of `epsilon` (AdaTune's optimizer, which scores by "expected_improvement"); that
    and every acquisition but "mean" want a cost model that tells its spread. `confirm` is the share of an operator's
    seconds, builds and timed runs, that may go into measuring a doubtful best once more.

    A sketch with its part of `first` and fewer own points than `transfer` learns from those of similar operators of the run too
    (`transfer.Neighbours`), where these foretell its own; 0 is off. One with fewer than `earlier` learns in the same way from
    what earlier runs found of others with its knobs. With `twins` an operator tries the best of those that
    have the same knobs as soon as anyone gets a slot. With `informed` what is random is drawn by the rules of the machine,
    where that is known (`InformedDraws`).

    `features` are what a cost model sees: "knobs", table look-ups, or "lowered", what TVM sees in the loops of each
    program. A program must be scheduled for that: see `tvm_backend.lowered` for what it costs, and give it an explorer
    that asks seldom. A landscape has no programs.
    """

    first: int = 8
    epsilon: float = 0.05
    pool: float = 1.0
    refit: float = 0.1
    refit_points: int = 8
    patience: int = 64
    power: float = 3.0
    curiosity: float = 0.15
    acquisition: str = "mean"
    contextual: bool = False
    confirm: float = 0.0
    transfer: int = 0
    earlier: int = 0
    twins: bool = False
    informed: bool = False
    features: str = "knobs"
    ahead: int | None = None
    starts: int | None = None

    def __post_init__(self) -> None:
        check("acquisition", ACQUISITIONS, self.acquisition)
        if self.features not in FEATURES:
            raise ValueError(f"features {self.features!r} must be one of {', '.join(FEATURES)}")
        if self.ahead is not None and self.ahead < 1:
            raise ValueError(
                f"ahead {self.ahead} must be 1 configuration or more, or none for plans of what is asked for"
            )
        if self.starts is not None and self.starts < 1:
            raise ValueError(f"starts {self.starts} must be 1 configuration or more, or none for all")
        if not 0 <= self.confirm <= 1:
            raise ValueError(f"confirm {self.confirm} must be a share from 0 to 1")
        if not (self.refit >= 0 and self.power >= 0 and self.curiosity >= 0):
            raise ValueError(f"refit {self.refit}, power {self.power} and curiosity {self.curiosity} start at 0")
        if not 0 <= self.epsilon <= 1 or self.pool < 1 or self.patience < 1 or self.first < 0:
            raise ValueError(f"epsilon must be from 0 to 1, pool and patience at least 1, first at least 0, not {self}")

    def of_each(self, sketches: int) -> Self:
        """For one of so many sketches of an operator."""
        return replace(self, first=math.ceil(self.first / max(1, sketches)))
