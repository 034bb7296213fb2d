"""Timing the parts of methods on this machine, for replays to charge."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from workers.engine.methods import METHODS, REGISTRIES, Method
from workers.engine.ports import CostModel, Progress
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.space import Choices, Features, Knob, Operator, Sketch, tilings
from workers.landscapes.costs import UNITS, Costs, key_of
from workers.landscapes.parameters import walking
from workers.messages.composition import KNOWING, inherited

Clock = Callable[[], float]

OPERATORS = (8, 24)
"""Of the networks whose decisions are timed: what one costs grows with them."""
ROWS = (64, 320)
PREDICTED = (16, 1024)
WALKING = 128
"""Configurations that walks look up at a time, as annealing does: each is dearer where there are few."""
LONG, MOST = 0.5, 100
"""Seconds and calls of which the cheapest is what a walk costs: a machine that others share is slow for tenths of a second."""
VISITED = 300
"""Configurations that an operator has measured when its search is timed: elites are looked for among them."""


def every_part() -> list[Method]:
    """Methods that have every preset's parts, and every registered part with its own parameters and a sampler's pool."""
    plain = METHODS["dynatune"]
    found = list(METHODS.values())
    for role, registry in REGISTRIES.items():
        found += [
            replace(plain, parameters=inherited(plain.parameters, {role: name}), **{role: name}) for name in registry
        ]
    return found


def calibrate(machine: str, methods: Sequence[Method] | None = None, now: Clock = time.perf_counter) -> Costs:
    """Times the parts of `methods` (None: `every_part`) on an operator like a convolution's; run it alone."""
    operator = _convolution()
    seconds: dict[str, dict[str, float]] = {}
    for method in every_part() if methods is None else methods:
        for role, timed in TIMERS.items():
            key = key_of(role, method)
            if key not in seconds and (role, method.scheduler) != ("scheduler", KNOWING):
                seconds[key] = timed(method, operator, now)
    return Costs(seconds, machine)


def untimed(costs: Costs, methods: Iterable[Method]) -> list[tuple[str, Method, Method]]:
    """(role, method, the same with parameters of that part that were timed) for each part that nobody timed with its
    parameters; a part that nobody timed at all is left out."""
    found: dict[str, tuple[str, Method, Method]] = {}
    for method in methods:
        for role in UNITS:
            like = _alike(costs, role, method)
            if costs.known(role, method) is None and like is not None:
                found.setdefault(key_of(role, method), (role, method, like))
    return list(found.values())


def completed(costs: Costs, methods: Iterable[Method]) -> Costs:
    """`costs` with what is `untimed`: timed here beside its like, and taken to be as much slower there as that was.

    Seconds of one machine mean nothing on another; how much dearer a walk of twice the chains is does.
    """
    operator, seconds = _convolution(), dict(costs.seconds)
    for role, method, like in untimed(costs, methods):
        mine, known = (TIMERS[role](one, operator, time.perf_counter) for one in (method, like))
        slower = _whole(role, costs.of(role, like)) / max(_whole(role, known), 1e-12)
        # Of its own units: its like may have none of some, as deep trees have no table.
        seconds[key_of(role, method)] = {unit: slower * mine[unit] for unit in UNITS[role]}
    return Costs(seconds, costs.machine, costs.sources)


def _whole(role: str, seconds: Mapping[str, float]) -> float:
    """Of one of each unit, but of the most operators and rows that are timed: slopes and offsets alone are differences of
    times, whose ratios may be anything."""
    most = {
        "decision_operator": OPERATORS[-1],
        "fit_row": ROWS[-1],
        "predict_row": PREDICTED[-1],
        "feature_row": PREDICTED[-1],
        "asked_row": PREDICTED[-1],
    }
    return sum(most.get(unit, 1) * seconds[unit] for unit in UNITS[role])


def _alike(costs: Costs, role: str, method: Method) -> Method | None:
    """`method` with the first parameters of its part that were timed."""
    start = f"{role} {getattr(method, role)} "
    for key in sorted(key for key in costs.seconds if key.startswith(start)):
        like = replace(method, parameters={**method.parameters, role: json.loads(key.removeprefix(start))})
        if costs.known(role, like) is not None:
            return like
    return None


def _convolution() -> Operator:
    """With the knobs that convolutions of recorded networks have: four tiles of four parts, three of two, three categories."""
    tiles = [Knob(f"loop{place}", "tile", tilings(extent, 4)) for place, extent in enumerate((4, 8, 32, 56))]
    tiles += [Knob(f"reduction{place}", "tile", tilings(extent, 2)) for place, extent in enumerate((64, 4, 4))]
    choices = [Knob(name, "category", ((0,), (16,), (64,), (512,))) for name in ("parallel", "vectorize", "unroll")]
    return Operator(0, "conv", "conv", 1, 1e8, 1e6, 1e8, (Sketch((*tiles, *choices)),), ())


def _explorer(method: Method, operator: Operator, now: Clock) -> dict[str, float]:
    sketch = operator.sketches[0]
    slopes = np.linspace(-1, 1, sketch.width)
    method = walking(method)
    visited = {tuple(row) for row in sketch.random(np.random.default_rng(1), VISITED).tolist()}
    explorer = method.make_explorer(operator, np.random.default_rng(0))
    scoring = 0.0

    def score(choices: Choices) -> NDArray[np.float64]:
        nonlocal scoring
        began = now()
        found: NDArray[np.float64] = sketch.features(choices) @ slopes
        scoring += now() - began
        return found

    # Loads what it needs, on another's account: torch takes a second.
    method.make_explorer(operator, np.random.default_rng(0)).explore(sketch, score, method.rhythm.plan, visited)
    steps, end = list[float](), now() + LONG
    while not steps or (now() < end and len(steps) < MOST):
        scoring, began = 0.0, now()
        walked = max(explorer.explore(sketch, score, method.rhythm.plan, visited)[1], 1)
        steps.append(max(0.0, now() - began - scoring) / walked)
    return {"step": min(steps)}  # what else the machine did made the others dearer


def _sampler(method: Method, operator: Operator, now: Clock) -> dict[str, float]:
    sketch, rng = operator.sketches[0], np.random.default_rng(0)
    plan = method.rhythm.plan
    count = math.ceil(method.search.pool * plan)
    sampler = method.make_sampler(operator, 0)
    rows = np.unique(sketch.random(rng, count), axis=0)
    scores = np.sort(rng.normal(size=len(rows)))[::-1].copy()
    sampler.sample(sketch, rows, scores, plan, set())  # loads what it needs
    taken = [_timed(now, lambda: sampler.sample(sketch, rows, scores, plan, set())) for _ in range(3)]
    return {"candidate": float(np.median(taken)) / len(rows)}


def _cost_model(method: Method, operator: Operator, now: Clock) -> dict[str, float]:
    sketch, rng = operator.sketches[0], np.random.default_rng(0)

    def features(rows: int) -> Features:
        return sketch.features(sketch.random(rng, rows))

    model = method.make_cost_model(operator, 0)
    slopes = rng.normal(size=sketch.width)
    model.fit(features(ROWS[0]), np.ones(ROWS[0]))  # loads what it needs
    model.predict(features(PREDICTED[0]))
    fits, predictions = [], []
    for rows in (*ROWS, *ROWS, *ROWS):
        shown = features(rows)
        speeds = np.exp(0.2 * (shown @ slopes))
        fits.append(_timed(now, lambda shown=shown, speeds=speeds: model.fit(shown, speeds)))  # type: ignore[misc]
    for rows in PREDICTED * 3:
        asked = features(rows)
        predictions.append(_timed(now, lambda asked=asked: model.predict(asked)))  # type: ignore[misc]
    # The quickest of each: what else the machine did made the others dearer.
    fit, fit_row = _line(ROWS, [min(fits[i::2]) for i in (0, 1)])
    predict, predict_row = _line(PREDICTED, [min(predictions[i::2]) for i in (0, 1)])
    drawn = sketch.random(rng, WALKING)
    looked_up = min(_timed(now, lambda: sketch.features(drawn)) for _ in range(99))
    return {
        "fit": fit,
        "fit_row": fit_row,
        "predict": predict,
        "predict_row": predict_row,
        "feature_row": looked_up / WALKING,
        **_tabled(model, sketch, rng, now),
    }


def _tabled(model: CostModel, sketch: Sketch, rng: np.random.Generator, now: Clock) -> dict[str, float]:
    """Of a fitted model."""
    tables, fixed = sketch.tables, np.zeros(0, dtype=np.float32)
    assert tables is not None
    if (opinion := model.tabled(tables, fixed)) is None:
        return {"table": 0.0, "asked": 0.0, "asked_row": 0.0}
    table = min(_timed(now, lambda: model.tabled(tables, fixed)) for _ in range(9))
    drawn = [sketch.random(rng, count) for count in PREDICTED]
    answers = [min(_timed(now, lambda rows=rows: opinion(rows)) for _ in range(9)) for rows in drawn]  # type: ignore[misc]
    asked, asked_row = _line(PREDICTED, answers)
    return {"table": table, "asked": asked, "asked_row": asked_row}


def _scheduler(method: Method, operator: Operator, now: Clock) -> dict[str, float]:
    decision, decision_operator = _line(OPERATORS, [_decision(method, operator, count, now) for count in OPERATORS])
    return {"decision": decision, "decision_operator": decision_operator}


def _decision(method: Method, operator: Operator, count: int, now: Clock) -> float:
    """Mean over as many slots as there are operators, whose curves fall: every fit begins anew. In a run an operator is first
    fitted after its first slot, as after each: what is fitted before the first one here is not counted."""
    operators = [Operator(i, f"o{i}", str(i), 1, 1e8, 1e6, 1e8, operator.sketches, ()) for i in range(count)]
    setting = Setting(0, 1e12, trials=32 * count)
    scheduler = scheduler_named(method.scheduler, setting, **method.parameters.get("scheduler", {}))
    slots, taken = [1] * count, 0.0

    def progress(i: int) -> Progress:
        curve = [1e-3 * (1 + i + 1 / (1 + n)) for n in range(16 * slots[i])]
        return Progress(operators[i], curve, slots[i], 2.0 * slots[i], False)

    for one in range(count):
        scheduler.observe(progress(one))
    for _ in range(count):
        every = [progress(one) for one in range(count)]
        began = now()
        decision = scheduler.choose(every, 2.0)
        taken += now() - began
        if decision is not None:
            slots[decision.operator] += 1
            after = progress(decision.operator)
            began = now()
            scheduler.observe(after)
            taken += now() - began
    return taken / count


def _timed(now: Clock, work: Callable[[], object]) -> float:
    began = now()
    work()
    return now() - began


def _line(at: tuple[int, int], seconds: list[float]) -> tuple[float, float]:
    """Offset and slope through two points, neither negative; what falls is flat, at the mean."""
    slope = (seconds[1] - seconds[0]) / (at[1] - at[0])
    return (sum(seconds) / 2, 0.0) if slope < 0 else (max(0.0, seconds[0] - slope * at[0]), slope)


TIMERS: dict[str, Callable[[Method, Operator, Clock], dict[str, float]]] = {
    "explorer": _explorer,
    "sampler": _sampler,
    "cost_model": _cost_model,
    "scheduler": _scheduler,
}
