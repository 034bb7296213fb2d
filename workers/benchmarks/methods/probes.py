"""What is asked of a landscape itself, beside the runs: how long evaluators measure and how well they rank, how often a
surrogate's and a belief's intervals hold, whether a belief that is sampled in a tenth of the time decides alike, how soon
explorers find the best of a large space, and how many measurements a sampler saves there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.benchmarks.interval import median
from workers.benchmarks.methods.arms import AE, AE_AS_ON, SA, SA_AS, arm_named
from workers.benchmarks.methods.replayed import CURVE, SPACE, Source, run_cell
from workers.benchmarks.methods.samplings import saved
from workers.benchmarks.methods.walks import Gain, walks
from workers.engine.belief import PAPER
from workers.engine.cost_model.random_forest import Z
from workers.engine.evaluator import evaluator_from
from workers.engine.evaluator.timing import timed_runs
from workers.engine.explorer.ppo import Settings
from workers.engine.methods import METHODS
from workers.engine.ports import CostModel, Decision, Progress
from workers.engine.ranks import rank_correlation
from workers.engine.scheduler import DynaTune, Setting, scheduler_named
from workers.engine.space import Operator
from workers.landscapes import CurveLandscape, CurveRecording, SimulatedClock, SpaceRecording
from workers.landscapes.spaces import Draws, Measured
from workers.messages.causes import UNBUILT
from workers.messages.composition import POOL
from workers.messages.events import Event

Array = NDArray[np.float64]
Figures = dict[str, float]

PROGRAMS = 150
"""Of each operator that evaluators time."""
OPERATORS = 30
"""Of the network whose decisions are told: DynaTune's had about as many."""
KNOWN = 128
"""Configurations that a surrogate has seen, and as many that it is asked for."""
WALKED = 3
"""Operators of a network that explorers and samplers search in: each takes a quarter of a minute."""
DECISIONS = 100
"""That are made twice, of a run: with the paper's sampling each slot takes some tenths of a second."""
FLOOR = -6.0
"""The forest's: log2 of a speed relative to the best."""
GUIDED = "explorer"
"""Origin of what a surrogate's opinion chose; the others of a plan are drawn."""
MIDDLE = (0.1, 0.9)
"""Quantiles between which a belief's middle 80 % lie."""
TIMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "fixed": METHODS[SA].evaluation,
    "again": METHODS[SA].evaluation,
    "metaschedule": METHODS["metaschedule"].evaluation,
    "paper": METHODS["adatune-paper"].evaluation,
    "product": METHODS["adatune"].evaluation,
}
"""Evaluators as `evaluator_from` takes them; the papers' scripts time programs 500 times, here twice."""
POOLED = f"+search.pool={POOL:g}"
BEST_OF_CLUSTER = f'+sampler=adaptive+sampler.mode="literal"+search.first=0{POOLED}'
SAMPLED = {
    "annealing_paper": (SA, SA_AS),
    "annealing_best": (f"{SA}{POOLED}", f"{SA}{BEST_OF_CLUSTER}"),
    "agent_paper": (AE, AE_AS_ON),
    "agent_best": (f"{AE}{POOLED}", f"{AE}{BEST_OF_CLUSTER}"),
}
"""Greedy and adaptive sampling (Algorithm 1, of the first plan too) under annealing and under the agent: of a plan's candidates
the rounded centroids, as the paper has it; and of POOL plans', clustered by their features, the best of each cluster."""


def evaluators(source: Source, seed: int) -> Figures:
    """Of the adaptive evaluator as the paper's program and as the product have it: how many times less measuring time it takes
    than 500 runs (`fixed_over_*`) and than MetaSchedule's 100 ms (`metaschedule_over_*`), and how far its rank correlation
    with 500 runs is under theirs with another 500 (`unranked_*`), median of the operators. No run is cut for an incumbent.

    Another 500 runs are of the same loaded program, as every run that a landscape has."""
    assert isinstance(source.recording, SpaceRecording)
    seconds, unranked = dict.fromkeys(TIMERS, 0.0), dict[str, list[float]]()
    count = 0
    for part in source.recording.parts:
        rows = _programs(part, np.random.default_rng([seed, part.operator.index]))[:PROGRAMS]
        figures = {name: np.zeros(len(rows)) for name in TIMERS}
        for place, row in enumerate(rows):
            for number, (name, timer) in enumerate(TIMERS.items()):
                chosen = evaluator_from(*timer)
                luck = np.random.default_rng([seed, part.operator.index, int(row), number])
                draws = Draws(part.times[row], luck, chosen.shortest)
                times, _ = timed_runs(chosen, None, draws.runs, lambda draws=draws: draws.left)  # type: ignore[misc]
                seconds[name] += float(np.nan_to_num(part.overhead[row])) + draws.spent
                figures[name][place] = chosen.estimate(times)[0]
        count += len(rows)
        if len(rows) > 2:
            same = _ranked_alike(figures["fixed"], figures["again"])
            for name in ("paper", "product"):
                unranked.setdefault(name, []).append(same - _ranked_alike(figures["fixed"], figures[name]))
    found: Figures = {"n": count}
    for name in ("paper", "product"):
        found[f"fixed_over_{name}"] = seconds["fixed"] / max(seconds[name], 1e-9)
        found[f"metaschedule_over_{name}"] = seconds["metaschedule"] / max(seconds[name], 1e-9)
        found[f"unranked_{name}"] = float(np.median(unranked.get(name, [np.nan])))
    return found


def surrogate(source: Source, seed: int) -> Figures:
    """How often the 80 % interval of adatune's forest holds: `drawn` of configurations that are drawn like those it has seen,
    `proposed` of those that the explorer of a run of adatune proposes by it, each asked with all that was measured before its
    plan."""
    assert isinstance(source.recording, SpaceRecording)
    method, drawn, proposed = METHODS["adatune"], list[bool](), list[bool]()
    for part in source.recording.parts:
        rows = _programs(part, np.random.default_rng([seed, part.operator.index]))[: 2 * KNOWN]
        choices = part.operator.sketches[0].grid()[rows]
        features, speeds = part.operator.sketches[0].features(choices), part.operator.work / part.true[rows]
        half = len(rows) // 2
        drawn += _held(method.make_cost_model(part.operator, seed), features, speeds, half, len(rows))
    plans = _Plans(len(source.recording.parts))
    run_cell(source, method, seed, source.trials(None), plans.hear)
    for part, measured, ends in zip(source.recording.parts, plans.measured, plans.ends, strict=True):
        choices = np.asarray([one["choices"] for one in measured], dtype=np.int32)
        seconds = np.asarray([one["seconds"] or np.inf for one in measured])
        speeds = part.operator.work / seconds  # of what failed 0
        for begin, end in pairwise(ends):
            if begin >= method.search.first:
                features = part.operator.sketches[0].features(choices[:end])
                held = _held(method.make_cost_model(part.operator, seed), features, speeds, begin, end)
                guided = (one["origin"] == GUIDED for one in measured[begin:end])
                proposed += compress(held, guided)
    return {
        "drawn": float(np.mean(drawn)) if drawn else np.nan,
        "proposed": float(np.mean(proposed)) if proposed else np.nan,
        "n": min(len(drawn), len(proposed)),
    }


def belief(source: Source, seed: int) -> Figures:
    """A run of dynatune on recorded searches: how often an operator's speed after a slot lay in the middle 80 % of what was
    believed before of so many configurations: of the `ends` of a slot, which are observations (the sampled curves with the
    sampled noise) or, where these are under it, the best so far; of those that brought something the same (`gained`, of
    `gains`); and of the `curves` alone."""
    assert isinstance(source.recording, CurveRecording)
    peak, rng = float(source.recording.header["peak_flops"]), np.random.default_rng([seed, *b"observations"])
    method = METHODS["dynatune"]
    own = scheduler_named(method.scheduler, Setting(seed, peak), **method.parameters.get("scheduler", {}))
    assert isinstance(own, DynaTune)
    played = _Played(CurveLandscape(source.recording, SimulatedClock(), seed), method.rhythm.plan)
    curves, ends, gained = list[bool](), list[bool](), list[bool]()
    every, trials = played.progress, source.trials(None)
    while sum(len(one.curve) for one in every) < trials:
        decision = own.choose(every, played.slot_seconds)
        if decision is None:
            break
        before, believed = every[decision.operator], own.belief(decision.operator)
        after = played.slot(decision.operator)
        more = len(after.curve) - len(before.curve)
        forecast = believed.forecast(more) if believed is not None and more else None
        if forecast is not None:
            came, values = forecast.best * before.best / after.best, forecast.values
            seen = values + forecast.noise * rng.standard_normal(len(values))
            curves.append(_between(values, came))
            ends.append(_between(np.maximum(seen, forecast.best), came))
            gained += ends[-1:] if after.best < before.best else []
        own.observe(after)
        every = played.progress
    held = {"curves": curves, "ends": ends, "gained": gained}
    shares = {name: float(np.mean(each)) if each else np.nan for name, each in held.items()}
    return {**shares, "gains": len(gained), "n": len(ends)}


def decisions(source: Source, seed: int) -> Figures:
    """A run of the recommended method in which each decision is also made twice by the paper's sampling of the belief: how
    often the same operator is first (`same`), how far the operators' indices are in the same order (`ranked`, Spearman's
    correlation, median of the decisions) and what share of the index, by the paper's table, is given up by choosing otherwise
    (`lost`, mean of all decisions, and the `most` of one); and all of the paper's two (`paper_*`)."""
    assert isinstance(source.recording, CurveRecording)
    auto, first, ranked = METHODS["auto"], list[tuple[bool, bool]](), list[tuple[float, float]]()
    lost: list[tuple[float, float]] = []
    peak, numbers = float(source.recording.header["peak_flops"]), dict(auto.parameters.get("scheduler", {}))
    slow = {**numbers, "sampling": asdict(PAPER)} if auto.scheduler == METHODS["dynatune"].scheduler else numbers
    own = scheduler_named(auto.scheduler, Setting(seed, peak), **numbers)
    papers = [scheduler_named(auto.scheduler, Setting(seed + more, peak), **slow) for more in (1, 2)]
    played = _Played(CurveLandscape(source.recording, SimulatedClock(), seed), auto.rhythm.plan)
    while len(first) < DECISIONS:
        every, length = played.progress, played.slot_seconds
        decision = own.choose(every, length)
        if decision is None:
            break
        one, other = (paper.choose(every, length) for paper in papers)
        if decision.rule not in ("gamma", "prior", "rescue"):
            first.append((_first(decision) == _first(one), _first(one) == _first(other)))
            ranked.append((_in_order(decision, one), _in_order(one, other)))
            lost.append((_lost(decision, one), _lost(one, other)))
        after = played.slot(decision.operator)
        for scheduler in (own, *papers):
            scheduler.observe(after)
    if not first:
        return {"n": 0}
    same, paper_same = np.mean(first, axis=0)
    known = [pair for pair in ranked if np.isfinite(pair).all()]
    order, paper_order = np.median(known, axis=0) if known else (np.nan, np.nan)
    (given_up, paper_given_up), (most, paper_most) = np.mean(lost, axis=0), np.max(lost, axis=0)
    return {
        "same": float(same),
        "paper_same": float(paper_same),
        "ranked": float(order),
        "paper_ranked": float(paper_order),
        "lost": float(given_up),
        "paper_lost": float(paper_given_up),
        "most": float(most),
        "paper_most": float(paper_most),
        "n": len(first),
    }


def timings(source: Source, seed: int) -> Figures:
    """What was timed beside the landscape, in seconds: a decision of OPERATORS as recommended (`decision`) and with the paper's
    setting (`paper_decision`), and for a plan of chameleon its agent with the predictions it asks for (`agent`) and its
    clustering (`clustering`)."""
    chameleon, sizes = METHODS["chameleon"], Settings(**METHODS["chameleon"].parameters.get("explorer", {}))
    groups = math.ceil(sizes.episodes / sizes.together)
    model = source.costs.of("cost_model", chameleon)
    rows = sizes.episodes * sizes.steps
    asked = groups * model["predict"] + rows * (model["predict_row"] + model["feature_row"])
    candidates = math.ceil(chameleon.search.pool * chameleon.rhythm.plan)
    return {
        "decision": source.costs.decision(METHODS["auto"], OPERATORS),
        "paper_decision": source.costs.decision(METHODS["dynatune-paper"], OPERATORS),
        "agent": groups * sizes.steps * source.costs.of("explorer", chameleon)["step"] + asked,
        "clustering": candidates * source.costs.of("sampler", chameleon)["candidate"],
    }


def explorers(source: Source, seed: int) -> Figures:
    """Walks of Chameleon's agent against annealing's in every tiling of the largest operators' loops (`walks.Gain`), with the
    `paper`'s numbers and the `product`'s: medians of the walks."""
    assert isinstance(source.recording, SpaceRecording)
    operators, found = _largest(source.recording), Figures(n=0)
    for words, agent in (("paper", METHODS[AE]), ("product", METHODS["chameleon"])):
        gains = [gain for operator in operators for gain in walks(operator, agent, seed)]
        medians = np.median(gains, axis=0)
        found |= {f"{name}_{words}": float(median) for name, median in zip(Gain._fields, medians, strict=True)}
        found["n"] = len(gains)
    return found


def samplers(source: Source, seed: int) -> Figures:
    """How many times fewer measurements adaptive sampling takes than greedy for the same best, in every tiling of the largest
    operators' loops (`samplings`): medians of the operators, of each of SAMPLED."""
    assert isinstance(source.recording, SpaceRecording)
    operators = _largest(source.recording)
    found: Figures = {"n": len(operators)}
    for words, pair in SAMPLED.items():
        base, sampled = map(arm_named, pair)
        found[words] = float(median([saved(operator, base, sampled, seed) for operator in operators]))
    return found


def _largest(recording: SpaceRecording) -> list[Operator]:
    """WALKED, the one with the most work first."""
    return sorted((part.operator for part in recording.parts), key=lambda one: -one.weight * one.work)[:WALKED]


@dataclass(frozen=True)
class Probe:
    """`ask` of landscapes of a kind; once where no seed changes what comes."""

    kind: str
    ask: Callable[[Source, int], Figures]
    once: bool = False


PROBES = {
    "evaluators": Probe(SPACE, evaluators),
    "surrogate": Probe(SPACE, surrogate),
    "explorers": Probe(SPACE, explorers),
    "samplers": Probe(SPACE, samplers),
    "belief": Probe(CURVE, belief),
    "decisions": Probe(CURVE, decisions),
    "timings": Probe(CURVE, timings, once=True),
}


class _Plans:
    """What a run measured of each operator, as its events have it, in order, and where its plans end."""

    def __init__(self, operators: int) -> None:
        self.measured: list[list[dict[str, Any]]] = [[] for _ in range(operators)]
        self.ends: list[list[int]] = [[0] for _ in range(operators)]

    def hear(self, event: Event) -> None:
        if event["kind"] != "batch":
            return
        for one in event["measurements"]:
            if one["cause"] not in UNBUILT and not one["round"]:
                self.measured[one["operator"]].append(one)
        for measured, ends in zip(self.measured, self.ends, strict=True):
            if len(measured) > ends[-1]:
                ends.append(len(measured))


class _Played:
    """A landscape of curves, slot by slot: plans of the recorded searches, each begun with its first valid configuration."""

    def __init__(self, landscape: CurveLandscape, plan: int) -> None:
        self._operators, self._searches, self._plan = landscape.operators(), landscape.searches, plan
        self._slots = [0] * len(self._operators)
        self._seconds = [0.0] * len(self._operators)
        self._done = [int(np.argmax(np.isfinite(search.best))) + 1 for search in self._searches]
        self._warm = [self._trials(index) for index in range(len(self._operators))]

    @property
    def progress(self) -> list[Progress]:
        return [self._of(index) for index in range(len(self._operators))]

    @property
    def slot_seconds(self) -> float:
        """Mean length of a slot so far."""
        return sum(self._seconds) / sum(self._slots) if any(self._slots) else 1.0

    def slot(self, index: int) -> Progress:
        search, begin = self._searches[index], self._done[index]
        self._done[index] = min(begin + self._plan, len(search))
        self._seconds[index] += float(search.total[begin : self._done[index]].sum())
        self._slots[index] += 1
        return self._of(index)

    def _trials(self, index: int) -> int:
        """Of what was played: those that were measured."""
        return int(self._searches[index].trials[: self._done[index]].sum())

    def _of(self, index: int) -> Progress:
        search, done = self._searches[index], self._done[index]
        curve = search.best[:done][search.trials[:done]].tolist()
        since = int(np.argmin(search.best[:done])) if done else 0
        return Progress(
            self._operators[index],
            curve,
            self._slots[index],
            self._seconds[index],
            done == len(search),
            measured=len(curve) - self._warm[index],
            unbuilt=int((~search.trials[since:done]).sum()),
        )


def _first(decision: Decision | None) -> int | None:
    return None if decision is None else decision.operator


def _lost(chosen: Decision | None, other: Decision | None) -> float:
    """Share of the largest index of the other's table that the chosen operator has less there; 0 where there is no table."""
    table = {} if other is None else {int(name): sum(terms) for name, terms in other.terms.get("operators", {}).items()}
    most = max(table.values(), default=0.0)
    return 1 - table[chosen.operator] / most if chosen is not None and most > 0 else 0.0


def _in_order(one: Decision | None, other: Decision | None) -> float:
    """Rank correlation of two decisions' indices; nan where one has none."""
    tables = [{} if decision is None else decision.terms.get("operators", {}) for decision in (one, other)]
    both = sorted(tables[0].keys() & tables[1].keys())
    if not both:
        return float("nan")
    indices = [np.asarray([sum(table[name]) for name in both]) for table in tables]
    return _ranked_alike(indices[0], indices[1])


def _programs(part: Measured, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of programs that work, each once, in a random order."""
    rows = np.flatnonzero((part.first == np.arange(len(part.first))) & (part.causes == 0) & np.isfinite(part.true))
    return rng.permutation(rows)


def _ranked_alike(one: Array, other: Array) -> float:
    """Spearman's rank correlation; 1 where nothing can be ranked."""
    found = rank_correlation(one, other)
    return 1.0 if found is None else found


def _between(values: Array, came: float) -> bool:
    """Whether it is in the MIDDLE of the values."""
    low, high = np.quantile(values, MIDDLE)
    return bool(low <= came <= high)


def _held(model: CostModel, features: NDArray[np.float32], speeds: Array, known: int, end: int) -> list[bool]:
    """Of rows `known` to `end`, asked of a model that has seen those before: whether each is in its 80 % interval, on the scale
    that it speaks of. To a model a failure is as slow as anything under its floor, and so it is here."""
    best = float(speeds[:known].max(initial=0.0))
    if not best:
        return []
    model.fit(features[:known], speeds[:known])
    opinion = model.predict(features[known:end])
    came = np.maximum(speeds[known:end] / best, 2.0**FLOOR)
    came = np.log2(came) if opinion.scale == "log" else came
    return [bool(one) for one in np.abs(came - opinion.mean) <= Z * opinion.spread]
