"""The search of each operator, and what earlier runs tell of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from workers.engine.known import FALLEN, LOOKS, NOTHING, Known
from workers.engine.methods import Method
from workers.engine.ports import Backend, Candidate, Outcome, State
from workers.engine.space import Operator
from workers.engine.transfer import Neighbours
from workers.pipeline.accounts import Accounts
from workers.pipeline.watched import watched

MOST = 0.9
"""The part of a network's time, by what earlier runs found, that the operators take whose contenders come first."""


class Searches:
    """A proposer for each of the backend's operators, by its index. `known` is what earlier runs found.

    `contended` says of the operators that by this take `MOST` of the time, largest first, how many programs may be their best.
    """

    def __init__(
        self, backend: Backend, method: Method, seed: int, known: Mapping[int, Known], accounts: Accounts
    ) -> None:
        self._known, self._fallen = known, dict[int, Candidate]()
        self._account = accounts.spending
        neighbours, own = Neighbours(), watched(method, accounts)
        self._proposers = [
            own.make_proposer(operator, seed, known.get(operator.index, NOTHING), neighbours)
            for operator in backend.operators()
        ]
        self.contended = _contended(known, backend.operators())
        for operator, proposer in enumerate(self._proposers):
            for identity in sorted(proposer.settled):
                backend.remember(operator, identity)

    def exhausted(self, operator: int) -> bool:
        """Whether it has nothing more to propose."""
        return self._proposers[operator].exhausted

    def propose(self, operator: int, count: int) -> list[Candidate]:
        """`count` at most."""
        with self._account("search/plan"):
            return self._proposers[operator].propose(count)

    def borrowed(self, operators: Collection[int], most: int) -> list[Candidate]:
        """Bests of twins that wait for a try: they ride along, for a slot of their own would come late."""
        plan: list[Candidate] = []
        with self._account("search/plan"):
            for operator in sorted(operators):
                plan += self._proposers[operator].borrowed(most - len(plan))
        return plan

    def fallen(self, most: int) -> list[Candidate]:
        """What earlier runs found to be faster than it was now, to be measured once more."""
        return list(self._fallen.values())[:most]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learns from them."""
        for outcome in outcomes:
            self._proposers[outcome.candidate.operator].observe([outcome])
            self._compare(outcome)

    def counted(self) -> dict[str, float]:
        """Counters of all proposers, summed."""
        counters = [proposer.counters for proposer in self._proposers]
        return {name: sum(each[name] for each in counters) for name in (counters[0] if counters else ())}

    def state(self) -> list[State]:
        return [proposer.state() for proposer in self._proposers]

    def restore(self, states: Sequence[State]) -> None:
        for proposer, state in zip(self._proposers, states, strict=True):
            proposer.restore(state)

    def _compare(self, outcome: Outcome) -> None:
        """With what an earlier run found, where that is the best of its operator."""
        asked = outcome.candidate
        known = self._known.get(asked.operator, NOTHING)
        if asked.configuration not in known.starts[:1]:
            return
        # A later round that nobody waits for is a slot's or the last turn's: a resumed run looks where a whole one does.
        waited = self._fallen.pop(asked.operator, None) is not None or asked.round == 0
        if waited and asked.round < LOOKS and (outcome.seconds or 0.0) > FALLEN * known.best:
            self._fallen[asked.operator] = replace(asked, origin="confirm", round=asked.round + 1)


def _contended(known: Mapping[int, Known], operators: Sequence[Operator]) -> dict[int, int]:
    times = {i: operators[i].weight * found.best for i, found in known.items() if found.contenders}
    left, contended = MOST * sum(times.values()), dict[int, int]()
    for index in sorted(times, key=times.__getitem__, reverse=True):
        if left > 0:
            contended[index] = known[index].contenders
        left -= times[index]
    return contended
