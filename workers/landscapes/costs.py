"""What the parts of a method cost, in seconds a unit of their work: replays charge counters, not the processor.

Real time differs from run to run; a charge by counters makes a replay repeat itself exactly, and on every machine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from workers.engine.methods import METHODS, REGISTRIES, Method
from workers.engine.ports import CostModel, Explorer, Prediction, Progress, Sampler, Score
from workers.engine.proposer import Proposer
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.space import Choices, Features, Operator, Sketch
from workers.landscapes.clock import SimulatedClock
from workers.landscapes.landscape import LandscapeError
from workers.landscapes.synthetic import synthetic_operators

UNITS = {
    "explorer": ("step",),
    "sampler": ("candidate",),
    "cost_model": ("fit", "fit_row", "predict", "predict_row"),
    "scheduler": ("decision",),
}
ORACLE = "oracle"
"""It knows the future of a landscape; what knowing costs has no meaning."""

ROWS = (64, 320)
PREDICTED = (16, 1024)


def key_of(role: str, method: Method) -> str:
    """The part and its parameters: annealing with 32 chains is cheaper a step than with 128."""
    parameters = method.parameters.get(role, {})
    return f"{role} {getattr(method, role)} {json.dumps(dict(parameters), sort_keys=True)}"


@dataclass(frozen=True)
class Costs:
    """`seconds[key_of(role, method)][unit]`, see UNITS; `machine` says where they were measured."""

    seconds: Mapping[str, Mapping[str, float]]
    machine: str = ""

    def of(self, role: str, method: Method) -> Mapping[str, float]:
        """LandscapeError for a part that was never timed."""
        try:
            return self.seconds[key_of(role, method)]
        except KeyError:
            raise LandscapeError(
                f"nobody timed {key_of(role, method)} for these landscapes; run manage.py landscape calibrate"
            ) from None

    def write(self, path: Path) -> None:
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps({"machine": self.machine, "seconds": self.seconds}, indent=1, sort_keys=True))
        partial.replace(path)

    @classmethod
    def read(cls, path: Path) -> Costs:
        try:
            found = json.loads(path.read_text())
            return cls(found["seconds"], found["machine"])
        except FileNotFoundError:
            raise LandscapeError(f"{path} is missing; make it (manage.py landscape calibrate)") from None
        except (ValueError, KeyError, TypeError) as error:
            raise LandscapeError(f"{path} is damaged ({error}); make it anew (manage.py landscape calibrate)") from None


@dataclass
class Walks:
    """Calls of an operator's explorers, the steps they walked, and those up to the best they met (Chameleon, 4.1)."""

    calls: int = 0
    steps: int = 0
    to_best: int = 0


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
        kept = {name: getattr(method, name) for name in Method.__dataclass_fields__}
        return cls(**kept, costs=costs, clock=clock)

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
        self._clock.advance(self._costs["fit"] + self._costs["fit_row"] * len(features))
        self._inner.fit(features, speeds)

    def predict(self, features: Features) -> Prediction:
        self._clock.advance(self._costs["predict"] + self._costs["predict_row"] * len(features))
        return self._inner.predict(features)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def every_part() -> list[Method]:
    """Methods that have every preset's parts, and every registered part with its own parameters."""
    plain = METHODS["dynatune"]
    found = list(METHODS.values())
    for role, registry in REGISTRIES.items():
        kept = {of: numbers for of, numbers in plain.parameters.items() if of != role}
        found += [replace(plain, parameters=kept, **{role: name}) for name in registry]
    return found


def calibrate(
    machine: str, methods: Sequence[Method] | None = None, now: Callable[[], float] = time.perf_counter
) -> Costs:
    """Times the parts of `methods` (None: `every_part`) on an operator of thousands of configurations; run it alone."""
    operator = max(synthetic_operators(1, 5), key=lambda one: one.size)
    seconds: dict[str, dict[str, float]] = {}
    for method in every_part() if methods is None else methods:
        for role, measured in (
            ("explorer", _explorer), ("sampler", _sampler), ("cost_model", _cost_model), ("scheduler", _scheduler),
        ):  # fmt: skip
            key = key_of(role, method)
            if key not in seconds:
                seconds[key] = measured(method, operator, now)
    return Costs(seconds, machine)


def _explorer(method: Method, operator: Operator, now: Callable[[], float]) -> dict[str, float]:
    sketch = operator.sketches[0]
    slopes = np.linspace(-1, 1, sketch.width)
    explorer = method.make_explorer(operator, np.random.default_rng(0))
    scoring, walked = 0.0, 0

    def score(choices: Choices) -> NDArray[np.float64]:
        nonlocal scoring
        began = now()
        found: NDArray[np.float64] = sketch.features(choices) @ slopes
        scoring += now() - began
        return found

    began = now()
    for _ in range(3):
        walked += max(explorer.explore(sketch, score, method.rhythm.plan, set())[1], 1)
    return {"step": max(0.0, now() - began - scoring) / walked}


def _sampler(method: Method, operator: Operator, now: Callable[[], float]) -> dict[str, float]:
    sketch, rng = operator.sketches[0], np.random.default_rng(0)
    plan = method.rhythm.plan
    count = math.ceil(method.search.pool * plan)
    sampler = method.make_sampler(operator, 0)
    rows = np.unique(sketch.random(rng, count), axis=0)
    scores = np.sort(rng.normal(size=len(rows)))[::-1].copy()
    sampler.sample(sketch, rows, scores, plan, set())  # loads what it needs
    taken = [_timed(now, lambda: sampler.sample(sketch, rows, scores, plan, set())) for _ in range(3)]
    return {"candidate": float(np.median(taken)) / len(rows)}


def _cost_model(method: Method, operator: Operator, now: Callable[[], float]) -> dict[str, float]:
    sketch, rng = operator.sketches[0], np.random.default_rng(0)

    def features(rows: int) -> Features:
        return sketch.features(sketch.random(rng, rows))

    model = method.make_cost_model(operator, 0)
    slopes = rng.normal(size=sketch.width)
    fits, predictions = [], []
    for rows in (*ROWS, *ROWS, *ROWS):
        shown = features(rows)
        speeds = np.exp(0.2 * (shown @ slopes))
        fits.append(_timed(now, lambda shown=shown, speeds=speeds: model.fit(shown, speeds)))  # type: ignore[misc]
    for rows in PREDICTED * 3:
        asked = features(rows)
        predictions.append(_timed(now, lambda asked=asked: model.predict(asked)))  # type: ignore[misc]
    fit, fit_row = _line(ROWS, [float(np.median(fits[i::2])) for i in (0, 1)])
    predict, predict_row = _line(PREDICTED, [float(np.median(predictions[i::2])) for i in (0, 1)])
    return {"fit": fit, "fit_row": fit_row, "predict": predict, "predict_row": predict_row}


def _scheduler(method: Method, operator: Operator, now: Callable[[], float]) -> dict[str, float]:
    """Mean over 24 slots of 12 operators with curves that fall and flatten."""
    operators = [Operator(i, f"o{i}", str(i), 1, 1e8, 1e6, 1e8, operator.sketches, ()) for i in range(12)]
    setting = Setting(0, 1e12, slots_per_operator=dict.fromkeys(range(12), 2))
    if method.scheduler == ORACLE:
        return {"decision": 0.0}
    scheduler = scheduler_named(method.scheduler, setting, **method.parameters.get("scheduler", {}))
    slots, taken = [1] * 12, 0.0
    for _ in range(24):
        progress = [
            Progress(o, [1e-3 * (1 + i + 1 / (1 + n)) for n in range(16 * slots[i])], slots[i], 2.0 * slots[i], False)
            for i, o in enumerate(operators)
        ]
        began = now()
        decision = scheduler.choose(progress, 2.0)
        if decision is not None:
            slots[decision.operator] += 1
            scheduler.observe(progress[decision.operator])
        taken += now() - began
    return {"decision": taken / 24}


def _timed(now: Callable[[], float], work: Callable[[], object]) -> float:
    began = now()
    work()
    return now() - began


def _line(at: tuple[int, int], seconds: list[float]) -> tuple[float, float]:
    """Offset and slope through two points, neither negative."""
    slope = max(0.0, (seconds[1] - seconds[0]) / (at[1] - at[0]))
    return max(0.0, seconds[0] - slope * at[0]), slope
