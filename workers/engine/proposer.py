"""The inner search of one operator: explorer, cost model and sampler on each of its sketches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.engine.checkpoint import pack_generator, unpack_generator
from workers.engine.history import History
from workers.engine.ports import Candidate, CostModel, Explorer, Outcome, Sampler, State
from workers.engine.space import Choices, Configuration, Operator


@dataclass(frozen=True)
class Search:
    """Numbers of the inner search.

    `first` measured points, failures included, a sketch needs before its cost model is asked; until then its share is
    random (AutoTVM: the first plan). `epsilon` is the random share of a plan afterwards (AutoTVM: the last 5 %).
    `pool` x the plan is what the explorer hands to the sampler. The model is refitted when its points grew by `refit`
    of their number or by `refit_points`, whichever is less. `patience` consecutive duplicates or invalid
    configurations close a sketch. `power` and `curiosity` set the sketches' shares, see `Proposer`.
    """

    first: int = 8
    epsilon: float = 0.05
    pool: float = 1.0
    refit: float = 0.1
    refit_points: int = 8
    patience: int = 64
    power: float = 3.0
    curiosity: float = 0.15

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1 or self.pool < 1 or self.patience < 1 or self.first < 1:
            raise ValueError(f"epsilon must be from 0 to 1, pool, patience and first at least 1, not {self}")


class Proposer:
    """Proposes configurations of one operator and learns from what came of them.

    A plan holds, in this order: what was asked before a crash and never observed, unused start configurations, then
    each open sketch's share: the sampler's pick of the explorer's candidates, and random ones. Nothing is proposed
    twice.

    Sketches share a plan in proportion to (best speed of the sketch / best of all) ** power + curiosity x
    sqrt(ln(1 + n) / (1 + n of the sketch)), with n measured points: a UCB bandit on the best rather than the mean
    speed, since a sketch is worth its best program. A sketch without a valid point counts as the best while it has
    fewer than `first`.

    Checkpoint protocol. `state()` may be taken at any time and is JSON. It leaves out everything that follows from the
    outcomes. To resume: make a proposer from the same arguments, `restore(state)`, then `observe` every outcome of this
    operator since the start of the run, in the order in which they were first observed, those after the checkpoint too.
    If nothing was in flight at the checkpoint and nothing was observed after it, all later proposals are those of the
    run that never stopped. What was in flight and is not among the outcomes is proposed again first.
    """

    def __init__(
        self,
        operator: Operator,
        explorer: Callable[[np.random.Generator], Explorer],
        sampler: Sampler,
        cost_model: Callable[[], CostModel],
        rng: np.random.Generator,
        search: Search | None = None,
    ) -> None:
        self.operator = operator
        self._search = search or Search()
        self._sampler = sampler
        self._cost_model = cost_model
        self._rng = rng
        self._explorers = [explorer(child) for child in rng.spawn(len(operator.sketches))]
        self._history = History(operator)
        self._again: list[Candidate] = []
        self._pending: dict[Configuration, Candidate] = {}
        self._fitted = [0] * len(operator.sketches)
        self._models: list[tuple[int, CostModel] | None] = [None] * len(operator.sketches)
        self.counters = dict.fromkeys(("proposed", "start", "random", "explorer", "not_greedy", "steps", "fits"), 0)

    @property
    def best(self) -> Outcome | None:
        """The fastest outcome so far."""
        return self._history.best

    @property
    def duplicates(self) -> int:
        """Outcomes that were a program already known."""
        return self._history.duplicates

    @property
    def exhausted(self) -> bool:
        """Nothing is left to propose: every start and every sketch is used up or given up."""
        return not self._again and not self._unused_starts() and not self._open()

    def propose(self, count: int) -> list[Candidate]:
        """At most `count` new candidates; fewer only when the space runs out, none when `exhausted`."""
        plan = self._again[:count]
        del self._again[:count]
        self._take(plan, [(c, "start") for c in self._unused_starts()[: count - len(plan)]])
        while len(plan) < count and (shares := self._shares(count - len(plan))):
            found = [pick for sketch, share in shares for pick in self._search_sketch(sketch, share)]
            if not found:
                break
            self._take(plan, found)
        self.counters["proposed"] += len(plan)
        return plan

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learns; asked and read-back configurations are both visited. Outcomes of other operators are a ValueError."""
        for outcome in outcomes:
            if outcome.candidate.operator != self.operator.index:
                raise ValueError(
                    f"outcome of operator {outcome.candidate.operator} came to {self.operator.index}; "
                    "route it by operator"
                )
            self._pending.pop(outcome.candidate.configuration, None)
            self._again = [c for c in self._again if c.configuration != outcome.candidate.configuration]
            self._history.add(outcome)

    def state(self) -> State:
        """See the checkpoint protocol above."""
        waiting = [*self._again, *self._pending.values()]
        return {
            "rng": pack_generator(self._rng),
            "explorers": [explorer.state() for explorer in self._explorers],
            "waiting": [[c.configuration.sketch, list(c.configuration.choices), c.origin, c.round] for c in waiting],
            "fitted": list(self._fitted),
            "counters": dict(self.counters),
        }

    def restore(self, state: State) -> None:
        """Takes over a state, before any outcome is observed; ValueError when it belongs to another operator."""
        if len(state["explorers"]) != len(self._explorers):
            raise ValueError(
                f"the state has {len(state['explorers'])} sketches, operator {self.operator.name} has "
                f"{len(self._explorers)}; restore it with the operator it was taken from"
            )
        unpack_generator(self._rng, state["rng"])
        for explorer, saved in zip(self._explorers, state["explorers"], strict=True):
            explorer.restore(saved)
        self._again = [
            Candidate(self.operator.index, Configuration(sketch, tuple(choices)), origin, at)
            for sketch, choices, origin, at in state["waiting"]
        ]
        for candidate in self._again:
            self._history.visit(candidate.configuration)
        self._fitted = list(state["fitted"])
        self.counters = dict(state["counters"])

    def _take(self, plan: list[Candidate], picks: Sequence[tuple[Configuration, str]]) -> None:
        for configuration, origin in picks:
            candidate = Candidate(self.operator.index, configuration, origin)
            self._history.visit(configuration)
            self._pending[configuration] = candidate
            self.counters[origin] += 1
            plan.append(candidate)

    def _unused_starts(self) -> list[Configuration]:
        starts = dict.fromkeys(self.operator.start)
        return [start for start in starts if not self._history.is_visited(start)]

    def _open(self) -> list[int]:
        """Sketches with something left to propose."""
        sketches = enumerate(zip(self.operator.sketches, self._history.sketches, strict=True))
        patience = self._search.patience
        return [i for i, (sketch, seen) in sketches if len(seen.visited) < sketch.size and seen.streak < patience]

    def _shares(self, count: int) -> list[tuple[int, int]]:
        """(sketch, members) of each open sketch with a part in `count`, rounded at random to the right mean."""
        ids = self._open()
        if not ids or count < 1:
            return []
        if len(ids) == 1:
            return [(ids[0], count)]
        weights = np.asarray([self._appeal(i) for i in ids])
        edges = np.cumsum(weights / weights.sum()) * count + self._rng.random()
        members = np.diff(np.floor(np.concatenate([[edges[-1] - count], edges])).astype(int))
        return [(i, int(n)) for i, n in zip(ids, members, strict=True) if n > 0]

    def _appeal(self, sketch: int) -> float:
        seen = self._history.sketches[sketch]
        total = sum(len(other.speeds) for other in self._history.sketches)
        best = max(other.best for other in self._history.sketches)
        promising = seen.best == 0 and len(seen.speeds) < self._search.first
        value = 1.0 if promising or best == 0 else math.pow(seen.best / best, self._search.power)
        doubt = math.sqrt(math.log1p(total) / (1 + len(seen.speeds)))
        return value + self._search.curiosity * doubt + 1e-3

    def _search_sketch(self, sketch: int, count: int) -> list[tuple[Configuration, str]]:
        seen = self._history.sketches[sketch]
        picked: list[tuple[int, ...]] = []
        if len(seen.speeds) >= self._search.first:
            chance = self._search.epsilon * count
            at_random = int(chance + self._rng.random())
            picked = [tuple(row) for row in self._guided(sketch, count - at_random).tolist()]
        taken = seen.visited | set(picked)
        rest = self.operator.sketches[sketch].unvisited(self._rng, count - len(picked), taken)
        found = [(Configuration(sketch, row), "explorer") for row in picked]
        return found + [(Configuration(sketch, tuple(row)), "random") for row in rest.tolist()]

    def _guided(self, sketch: int, count: int) -> Choices:
        """Distinct unvisited choices by explorer and sampler."""
        space, seen = self.operator.sketches[sketch], self._history.sketches[sketch]
        model = self._model(sketch)

        def score(choices: Choices) -> NDArray[np.float64]:
            return model.predict(space.features(choices)).mean

        wanted = math.ceil(self._search.pool * count)
        candidates, steps = self._explorers[sketch].explore(space, score, wanted, seen.visited)
        self.counters["steps"] += steps
        if not len(candidates):
            return candidates
        plan = self._sampler.sample(space, candidates, score(candidates), count)
        # A sampler may synthesise configurations: they too must be distinct and new.
        fresh = dict.fromkeys(row for row in map(tuple, plan.tolist()) if row not in seen.visited)
        greedy = set(map(tuple, candidates[:count].tolist()))
        self.counters["not_greedy"] += sum(row not in greedy for row in fresh)
        return np.asarray(list(fresh), dtype=np.int32).reshape(len(fresh), len(space.knobs))

    def _model(self, sketch: int) -> CostModel:
        """The sketch's model on its first `fitted` points, which a resumed run fits again from the same points."""
        seen = self._history.sketches[sketch]
        fitted, points = self._fitted[sketch], len(seen.speeds)
        growth = max(1.0, min(self._search.refit_points, self._search.refit * fitted))
        if fitted == 0 or points - fitted >= growth:
            fitted = self._fitted[sketch] = points
            self.counters["fits"] += 1
        known = self._models[sketch]
        if known is None or known[0] != fitted:
            model = self._cost_model()
            rows = np.asarray(seen.choices[:fitted], dtype=np.int32)
            features = self.operator.sketches[sketch].features(rows)
            model.fit(features, np.asarray(seen.speeds[:fitted]))
            known = self._models[sketch] = (fitted, model)
        return known[1]
