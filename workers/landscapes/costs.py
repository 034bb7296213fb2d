"""What the parts of a method cost, in seconds a unit of their work: replays charge counters, not the processor.

Real time differs from run to run; a charge by counters makes a replay repeat itself exactly, and on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from workers.engine.methods import Method
from workers.engine.ports import CostModel, Explorer, Prediction, Proposer, Sampler, Score
from workers.engine.space import Choices, Features, Operator, Sketch
from workers.landscapes.clock import SimulatedClock
from workers.landscapes.landscape import LandscapeError
from workers.landscapes.parameters import resolved
from workers.landscapes.sources import digests
from workers.messages.composition import KNOWING
from workers.messages.whole import write_whole

UNITS = {
    "explorer": ("step",),
    "sampler": ("candidate",),
    "cost_model": ("fit", "fit_row", "predict", "predict_row", "feature_row", "table", "asked", "asked_row"),
    "scheduler": ("decision", "decision_operator"),
}
"""A decision costs "decision" and for each operator of the network "decision_operator"; every row that a model is fitted to or
predicts costs "feature_row" too, for it is looked up first. A "table" of a model costs once, a call of it "asked" and each row
"asked_row"; 0 of models that have none."""


COSTS = "costs.json"
"""Its name beside the landscapes that are charged by it."""
FREE = dict.fromkeys(UNITS["scheduler"], 0.0)


def key_of(role: str, method: Method) -> str:
    """The part and all its parameters: annealing with 32 chains is cheaper a step than with 128, whoever says so. Whether a
    small sketch is scored whole is left out, and what annealing's temperature and the agent's entropy are of: a step that is
    walked costs the same, as does a decision whether curves are cut at jumps or not."""
    parameters = resolved(role, method)
    for name in ("exhaustive", "differences", "spread", "pieces"):
        parameters.pop(name, None)
    return f"{role} {getattr(method, role)} {json.dumps(parameters, sort_keys=True, default=asdict)}"


@dataclass(frozen=True)
class Costs:
    """`seconds[key_of(role, method)][unit]`, see UNITS; `machine` says where they were measured, `sources[role]` of which
    code (`sources.digests`)."""

    seconds: Mapping[str, Mapping[str, float]]
    machine: str = ""
    sources: Mapping[str, str] = field(default_factory=digests)

    @property
    def older(self) -> list[str]:
        """Roles whose code is another than what was timed: their prices may be wrong."""
        return [role for role, digest in digests().items() if self.sources.get(role) != digest]

    def of(self, role: str, method: Method) -> Mapping[str, float]:
        """LandscapeError for a part that was never timed."""
        found = self.known(role, method)
        if found is None:
            raise LandscapeError(
                f"nobody timed {key_of(role, method)} for these landscapes; run manage.py landscape calibrate --out "
                "their folder"
            )
        return found

    def known(self, role: str, method: Method) -> Mapping[str, float] | None:
        """The same, None for such a part, and for one that was timed before it had all its units."""
        if role == "scheduler" and method.scheduler == KNOWING:
            return FREE
        found = self.seconds.get(key_of(role, method), {})
        return found if found.keys() >= set(UNITS[role]) else None

    def decision(self, method: Method, operators: int) -> float:
        """Seconds of a decision for a network of so many operators."""
        found = self.of("scheduler", method)
        return found["decision"] + found["decision_operator"] * operators

    def digest(self, method: Method) -> str:
        """Of what is charged for `method`: sixteen hexadecimal digits."""
        charged = [self.known(role, method) for role in UNITS]
        return hashlib.sha256(json.dumps(charged, sort_keys=True).encode()).hexdigest()[:16]

    def write(self, path: Path) -> None:
        found = {"machine": self.machine, "seconds": self.seconds, "sources": self.sources}
        write_whole(path, json.dumps(found, indent=1, sort_keys=True))

    @classmethod
    def read(cls, path: Path) -> Costs:
        try:
            found = json.loads(path.read_text())
            return cls(found["seconds"], found["machine"], found["sources"])
        except FileNotFoundError:
            raise LandscapeError(
                f"{path} is missing; make it (manage.py landscape calibrate --out {path.parent})"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise LandscapeError(
                f"{path} is damaged ({error}); make it anew (manage.py landscape calibrate --out {path.parent})"
            ) from None


@dataclass
class Walks:
    """Calls of an operator's explorers, the steps they walked, those up to the best they met (Chameleon, 4.1), and the
    configurations that they had scored by then: steps of different explorers are of different widths."""

    calls: int = 0
    steps: int = 0
    to_best: int = 0
    scored_to_best: int = 0


@dataclass(frozen=True)
class Charged(Method):
    """A method whose inner search lets time pass on `clock` for the work it does."""

    costs: Costs | None = None
    clock: SimulatedClock | None = None
    walks: dict[int, Walks] = field(default_factory=dict, compare=False)
    """What the explorers of each operator walked so far."""

    @classmethod
    def over(cls, method: Method, costs: Costs, clock: SimulatedClock) -> Charged:
        """Raises LandscapeError when a part was never timed."""
        for role in UNITS:
            costs.of(role, method)
        return cls.extending(method, costs=costs, clock=clock)

    def make_explorer(self, operator: Operator, rng: np.random.Generator) -> Explorer:
        """See `Method`; this and the others here are the real ones, in a wrapper that counts."""
        costs, clock = self._charging
        walks = self.walks.setdefault(operator.index, Walks())
        explorer = super().make_explorer(operator, rng)
        return cast(Explorer, _Explorer(explorer, costs.of("explorer", self)["step"], clock, walks))

    def make_sampler(self, operator: Operator, seed: int) -> Sampler:
        costs, clock = self._charging
        return _Sampler(super().make_sampler(operator, seed), costs.of("sampler", self)["candidate"], clock)

    def make_cost_model(self, operator: Operator, seed: int) -> CostModel:
        costs, clock = self._charging
        return cast(CostModel, _CostModel(super().make_cost_model(operator, seed), costs.of("cost_model", self), clock))

    def make_proposer(self, operator: Operator, seed: int, *given: Any, **named: Any) -> Proposer:
        """See `Method`; what was walked before is forgotten."""
        self.walks[operator.index] = Walks()
        return super().make_proposer(operator, seed, *given, **named)

    @property
    def _charging(self) -> tuple[Costs, SimulatedClock]:
        assert self.costs is not None
        assert self.clock is not None
        return self.costs, self.clock


class _Explorer:
    """Lets the steps' time pass; what it is not asked here goes to the explorer itself, as in the two below."""

    def __init__(self, inner: Explorer, step: float, clock: SimulatedClock, walks: Walks) -> None:
        self._inner, self._step, self._clock, self._walks = inner, step, clock, walks

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        found, steps = self._inner.explore(sketch, score, count, visited)
        self._clock.advance(self._step * max(steps, 1))
        self._walks.calls += 1
        self._walks.steps += steps
        self._walks.to_best += self._inner.figures.get("steps_to_best", steps)
        self._walks.scored_to_best += self._inner.figures.get("evaluations_to_best", 0)
        return found, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Sampler:
    def __init__(self, inner: Sampler, candidate: float, clock: SimulatedClock) -> None:
        self._inner, self._candidate, self._clock = inner, candidate, clock

    def sample(self, sketch: Sketch, candidates: Choices, *rest: Any) -> Choices:
        self._clock.advance(self._candidate * len(candidates))
        return self._inner.sample(sketch, candidates, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _CostModel:
    def __init__(self, inner: CostModel, costs: Mapping[str, float], clock: SimulatedClock) -> None:
        self._inner, self._costs, self._clock = inner, costs, clock

    def fit(self, features: Features, speeds: NDArray[np.float64]) -> None:
        self._advance("fit", len(features))
        self._inner.fit(features, speeds)

    def predict(self, features: Features) -> Prediction:
        self._advance("predict", len(features))
        return self._inner.predict(features)

    def tabled(self, *given: Any) -> Callable[[Choices], Prediction] | None:
        opinion = self._inner.tabled(*given)
        if opinion is None:
            return None
        self._clock.advance(self._costs["table"])

        def charged(choices: Choices) -> Prediction:
            self._clock.advance(self._costs["asked"] + self._costs["asked_row"] * len(choices))
            return opinion(choices)

        return charged

    def _advance(self, work: str, rows: int) -> None:
        a_row = self._costs[f"{work}_row"] + self._costs["feature_row"]
        self._clock.advance(self._costs[work] + a_row * rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
