"""The inner search of one operator: plans over its sketches, and what is learned from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from workers.engine.checkpoint import pack_candidates, pack_generator, unpack_candidates, unpack_generator
from workers.engine.fitted_model import FittedModel
from workers.engine.history import History
from workers.engine.informed import InformedDraws
from workers.engine.known import NOTHING, Known
from workers.engine.ports import KNOWN, Candidate, CostModel, Explorer, Outcome, Sampler, State
from workers.engine.search import COUNTERS, Search
from workers.engine.sketch_search import SketchSearch
from workers.engine.sketch_shares import SketchShares
from workers.engine.space import Configuration, Operator
from workers.engine.transfer import Neighbours


class GuidedProposer:
    """See `Proposer`; explorer, sampler and cost model guide it.

    A plan holds, in this order: what was asked before a crash and never observed, a doubtful best and its rival for
    another round, the best of `known` (earlier runs, which also teach the cost model before anything is measured) and
    nothing after them, or the operator's unused start configurations, then each open sketch's share (`SketchShares`): the
    sampler's pick of the explorer's candidates, and random ones (`SketchSearch`). But for those rounds nothing is proposed
    twice.

    Checkpoint protocol. `state()` may be taken at any time and is JSON. It leaves out everything that follows from the
    outcomes. To resume: make a proposer from the same arguments (the same `known` too), `restore(state)`, then `observe`
    every outcome of this operator since the start of the run, in the order in which they were first observed, those
    after the checkpoint too. If nothing was in flight at the checkpoint and nothing was observed after it, all later
    proposals are those of the run that never stopped. What was in flight and is not among the outcomes is proposed again
    first.
    """

    def __init__(
        self,
        operator: Operator,
        explorer: Callable[[np.random.Generator], Explorer],
        sampler: Sampler,
        cost_model: Callable[[], CostModel],
        rng: np.random.Generator,
        search: Search | None = None,
        known: Known = NOTHING,
        neighbours: Neighbours | None = None,
    ) -> None:
        self.operator = operator
        self._search = search or Search()
        self._rng = rng
        self._history = History(operator, known)
        self._starts = known.tried_first(operator.start[: self._search.starts])
        self._proven, self._settled = frozenset(known.starts), known.settled
        self._again: list[Candidate] = []
        self._pending: dict[Configuration, Candidate] = {}
        self.counters: dict[str, float] = dict.fromkeys(COUNTERS, 0)
        self._shares = SketchShares(operator, self._history, self._search, rng)
        self._neighbours = neighbours or Neighbours()
        self._neighbours.join(operator, self._history)
        for other in known.alike:
            self._neighbours.lend(operator, other)
        self._sketches, of_each = [], self._search.of_each(len(operator.sketches))
        for number, child in enumerate(rng.spawn(len(operator.sketches))):
            model = FittedModel(
                operator, number, cost_model, self._search, self._history, self._neighbours, self.counters
            )
            sketch, seen = operator.sketches[number], self._history.sketches[number]
            machine = operator.machine if self._search.informed else None
            draws = sketch if machine is None else InformedDraws(sketch, machine, seen)
            one = SketchSearch(sketch, seen, explorer(child), sampler, model, draws, of_each, rng, self.counters)
            self._sketches.append(one)

    @property
    def best(self) -> Outcome | None:
        """The fastest outcome so far."""
        return self._history.best

    @property
    def exhausted(self) -> bool:
        """Nothing is left to propose: every start and every sketch is used up or given up."""
        return not self._again and not self._unused_starts() and not self._shares.open()

    @property
    def settled(self) -> Collection[str]:
        """See `Known`: it has learned from them."""
        return self._settled

    def propose(self, count: int) -> list[Candidate]:
        """At most `count` new candidates; fewer when the sampler finds that fewer stand for all, or when the space runs
        out, none when `exhausted`."""
        if self._search.ahead is None:
            return self._planned(count)
        if not self._again:
            self._again = self._planned(self._search.ahead)
            for candidate in self._again:  # nobody measures them before they are asked for
                del self._pending[candidate.configuration]
        return self._waiting(count)

    def _waiting(self, count: int) -> list[Candidate]:
        """What was planned and not asked for, or not observed before a crash."""
        plan = self._again[:count]
        del self._again[:count]
        self._pending |= {candidate.configuration: candidate for candidate in plan}
        return plan

    def _planned(self, count: int) -> list[Candidate]:
        plan = self._waiting(count)
        counted = len(plan)  # before what ended their attempt
        self._take(plan, self._doubtful(count - len(plan)))
        starts = self._unused_starts()
        # Alone: what earlier runs found is at hand after a slot of each operator, and searching makes slots long.
        proven = [start for start in starts if start in self._proven]
        first = [self._new(one, KNOWN) for one in proven] or [self._new(one, "start") for one in starts]
        self._take(plan, first[: count - len(plan)])
        while not proven and len(plan) < count and (shares := self._shares.of(count - len(plan))):
            found: list[Candidate] = []
            for sketch, share in shares:
                guided, at_random, left_out = self._sketches[sketch].pick(share)
                found += [self._new(Configuration(sketch, row), "explorer") for row in guided]
                found += [self._new(Configuration(sketch, row), "random") for row in at_random]
                count -= left_out
            if not found:
                break
            self._take(plan, found)
        self.counters["proposed"] += len(plan) - counted
        return plan

    def borrowed(self, most: int) -> list[Candidate]:
        """At most so many of what is the best of a twin now, and was never proposed here: beside any plan, of whichever
        operator, once what earlier runs found of this one is through."""
        if not self._search.twins or not self._proven.isdisjoint(self._unused_starts()):
            return []
        plan: list[Candidate] = []
        untried = self._history.unvisited(self._neighbours.bests(self.operator.index))
        self._take(plan, [self._new(configuration, "twin") for configuration in untried[:most]])
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
            done = outcome.candidate.configuration, outcome.candidate.round
            self._again = [c for c in self._again if (c.configuration, c.round) != done]
            self._history.add(outcome)
        self.counters["duplicates"] = self._history.duplicates  # replayed outcomes among them

    def state(self) -> State:
        """See the checkpoint protocol above."""
        return {
            "rng": pack_generator(self._rng),
            "explorers": [one.explorer.state() for one in self._sketches],
            "waiting": pack_candidates([*self._pending.values(), *self._again]),
            "fitted": [one.model.fitted for one in self._sketches],
            "loans": [[list(loan) for loan in one.model.loans] for one in self._sketches],
            "counters": dict(self.counters),
        }

    def restore(self, state: State) -> None:
        """Takes over a state, before any outcome is observed; ValueError when it belongs to another operator."""
        if len(state["explorers"]) != len(self._sketches):
            raise ValueError(
                f"the state has {len(state['explorers'])} sketches, operator {self.operator.name} has "
                f"{len(self._sketches)}; restore it with the operator it was taken from"
            )
        unpack_generator(self._rng, state["rng"])
        saved = zip(self._sketches, state["explorers"], state["fitted"], state["loans"], strict=True)
        for one, walk, fitted, loans in saved:
            one.explorer.restore(walk)
            one.model.fitted, one.model.loans = fitted, tuple((a, b, c) for a, b, c in loans)
        self._again = unpack_candidates(self.operator.index, state["waiting"])
        for candidate in self._again:
            self._history.visit(candidate.configuration)
        self.counters.update(state["counters"])

    def _new(self, configuration: Configuration, origin: str) -> Candidate:
        return Candidate(self.operator.index, configuration, origin)

    def _take(self, plan: list[Candidate], picks: Sequence[Candidate]) -> None:
        for candidate in picks:
            self._history.visit(candidate.configuration)
            self._pending[candidate.configuration] = candidate
            self.counters[candidate.origin] += 1
            plan.append(candidate)

    def _doubtful(self, count: int) -> list[Candidate]:
        """The best and its rival again, where both fit into `count` and none is being measured at this moment."""
        if count < 2 or self._search.confirm == 0 or self.exhausted:
            return []
        pair = self._history.doubtful(self._search.confirm)
        waiting = {*self._pending, *(candidate.configuration for candidate in self._again)}
        return [] if any(candidate.configuration in waiting for candidate in pair) else pair

    def _unused_starts(self) -> list[Configuration]:
        return self._history.unvisited(self._starts)
