"""The run's accounts: best times, curves, slots, and where the seconds went."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from workers.engine.evaluator.estimate import timed_again
from workers.engine.known import LUCK
from workers.engine.ports import Candidate, Clock, Outcome, Progress
from workers.engine.space import Configuration, Operator
from workers.messages.believed import Believed, changed_by_belief
from workers.messages.causes import UNBUILT
from workers.pipeline.accounts import Accounts, grouped, parts, since

INFINITE = float("inf")
RIVALS = 2
"""Programs that an operator's best is measured beside in the end, at most."""


class Books:
    """Per operator: `best` (s), `bests` (when the slot in hand began), `curves` (best after each configuration), `slots`,
    `seconds`; for the run: trials, failures, those that `repeated` an earlier one, timed `runs`, and why measuring `stopped`,
    by reason.

    The network's latency is the sum of weight x best, in seconds; infinite until every operator has a valid configuration.
    `accounts` are this attempt's; `spent` adds what earlier ones took.
    """

    def __init__(self, operators: Sequence[Operator], spent: Mapping[str, float], clock: Clock) -> None:
        self._operators, self._clock, self._earlier = operators, clock, dict(spent)
        self.accounts = Accounts(clock)
        self._phases: dict[str, dict[str, float]] = {}
        self._phase, self._turned, self._before = "start", sum(spent.values()), dict[str, float]()
        # Whatever came before the books were opened was the start: importing, design spaces, workers.
        self.accounts.claim("start/backend", max(0.0, clock.now() - self._turned))
        self.best = [INFINITE] * len(operators)
        self.curves: list[list[float]] = [[] for _ in operators]
        self._order: list[list[Configuration]] = [[] for _ in operators]
        self._believed = [Believed[Configuration]() for _ in operators]
        self._figures: list[dict[Configuration, float]] = [{} for _ in operators]
        self._rounds: list[dict[Configuration, int]] = [{} for _ in operators]
        self._taken: list[dict[Configuration, float]] = [{} for _ in operators]
        self.tried = [0] * len(operators)
        self.slots = [0] * len(operators)
        self.begin()
        self._measured = [0] * len(operators)
        self._unbuilt = [0] * len(operators)
        self.seconds = [0.0] * len(operators)
        self.trials = 0
        self.failures = 0
        self.runs = 0
        self.repeated = 0
        self.stopped = Counter[str]()
        self._searched = dict[str, float]()
        self.decided_by_belief = 0
        self.differs = 0
        self.belief_differs = 0

    @property
    def latency(self) -> float:
        return sum(operator.weight * best for operator, best in zip(self._operators, self.best, strict=True))

    def incumbents(self) -> dict[int, float]:
        """Best time of each operator that has one."""
        return {i: best for i, best in enumerate(self.best) if best != INFINITE}

    def by_doubt(self) -> list[int]:
        """Operators by what of the network's time is in doubt: of one whose best was measured again, what was told of it and is
        not believed, which may be another's best; of the others what may be luck."""

        def doubt(index: int) -> float:
            best, told = self._believed[index].best, self._figures[index]
            again = best in self._rounds[index] and bool(told)
            seconds = self.best[index] - min(told.values()) if again else LUCK * self.best[index]
            return self._operators[index].weight * seconds

        return sorted(range(len(self.best)), key=doubt, reverse=True)

    def doubted(self, operator: int) -> list[Candidate]:
        """What was told to be its fastest and those over which that may lead by luck, its best among them, for another round;
        [] where both had one."""
        figures, rounds, best = self._figures[operator], self._rounds[operator], self._believed[operator].best
        fastest = heapq.nsmallest(1 + RIVALS, figures, key=figures.__getitem__)
        if best is None or {best, *fastest[:1]} <= rounds.keys():
            return []
        close = [one for one in fastest if figures[one] <= (1 + LUCK) * figures[fastest[0]]]
        if best not in close and best not in rounds:  # or it would count no longer without having been asked
            close[RIVALS:] = [best]
        return [Candidate(operator, one, "confirm", 1 + rounds.get(one, 0)) for one in close]

    def seconds_again(self, candidate: Candidate) -> float:
        """Seconds that another round of it should take."""
        return self._taken[candidate.operator].get(candidate.configuration, 0.0)

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """What was not built is no trial."""
        for outcome in outcomes:
            asked, operator = outcome.candidate, outcome.candidate.operator
            if asked.round > 0:
                self.repeated += 1
                self._rounds[operator][asked.configuration] = asked.round
            self.tried[operator] += asked.round == 0
            if outcome.cause in UNBUILT:
                self._unbuilt[operator] += 1
                continue
            self.trials += 1
            self.runs += outcome.runs
            if outcome.stopped:
                self.stopped[outcome.stopped] += 1
            if outcome.seconds is None:
                self.failures += 1
                self._figures[operator].pop(asked.configuration, None)
            else:
                self._figures[operator][asked.configuration] = outcome.seconds
                if asked.round == 0:
                    self._taken[operator][asked.configuration] = outcome.build_seconds + timed_again(outcome)
                if outcome.seconds < self.best[operator]:
                    self._unbuilt[operator] = 0
                self._believed[operator].add(asked.configuration, outcome.seconds, asked.round)
                self.best[operator] = self._believed[operator].seconds
            if asked.round == 0:
                self._order[operator].append(asked.configuration)
                self.curves[operator].append(self.best[operator])
            elif outcome.seconds is not None:
                self._revise(operator)

    def _revise(self, operator: int) -> None:
        """After another round (`Believed`): a curve was never below what is true now.

        A round is a trial, for it costs as much, but no configuration: it has no point on the curve.
        """
        best, figures = self.best[operator], self._figures[operator]
        latest = accumulate((figures.get(one, INFINITE) for one in self._order[operator]), min)
        self.curves[operator] = [max(point, best) for point in latest]
        self.curves[operator][-1] = best

    def begin(self) -> None:
        """A slot."""
        self.bests, self._before_slot = list(self.best), [len(curve) for curve in self.curves]

    def slot(self, operator: int, seconds: float, terms: Mapping[str, Any], measured: int | None = None) -> int:
        """It was this operator's, and is over; returns how many configurations of it were `measured` in it, which an earlier
        attempt told, or which came since it began."""
        self.slots[operator] += 1
        self.seconds[operator] += seconds
        count = len(self.curves[operator])
        if measured is None:
            measured = count - self._before_slot[operator]
        self._measured[operator] += measured
        self._before_slot[operator] = count  # the next one may measure nothing
        self.decided_by_belief += bool(terms.get("decided_by_belief"))
        self.differs += bool(terms.get("differs_from_round_robin"))
        self.belief_differs += changed_by_belief(terms)
        return measured

    def progress(self, operator: int, exhausted: bool) -> Progress:
        """As schedulers see it."""
        return Progress(
            self._operators[operator],
            self.curves[operator],
            self.slots[operator],
            self.seconds[operator],
            exhausted,
            self._measured[operator],
            self._unbuilt[operator],
        )

    def spent(self) -> dict[str, float]:
        """Seconds since the run's start by group of accounts; "bookkeeping" has what no other claims."""
        total = dict(self._earlier)
        for group, seconds in grouped(self.accounts.of()).items():
            total[group] = total.get(group, 0.0) + seconds
        total.pop("bookkeeping", None)
        total["bookkeeping"] = max(0.0, self._clock.now() - sum(total.values()))
        return {group: round(seconds, 6) for group, seconds in sorted(total.items())}

    def searched(self) -> dict[str, float]:
        """Seconds of the search by part, those that earlier attempts `remember` included."""
        total = dict(self._searched)
        for part, seconds in parts(self.accounts.of(), "search").items():
            total[part] = total.get(part, 0.0) + seconds
        return {part: round(seconds, 6) for part, seconds in sorted(total.items())}

    def remember(self, searched: Mapping[str, float]) -> None:
        """What earlier attempts had `searched` when they were last saved."""
        self._searched = dict(searched)

    def turn(self, phase: str) -> None:
        """Another phase of the run begins."""
        self._phases = self.phases()
        self._phase, self._turned, self._before = phase, self._clock.now(), self.accounts.of()

    def phases(self) -> dict[str, dict[str, float]]:
        """Seconds of this attempt by phase and account, "unaccounted" what nobody claims; they sum up to its clock."""
        claimed = since(self.accounts.of(), self._before)
        claimed["unaccounted"] = self._clock.now() - self._turned - sum(claimed.values())
        before = Counter(self._phases.get(self._phase, {}))  # which slots may come back to
        before.update(claimed)
        return {**self._phases, self._phase: {account: round(s, 6) for account, s in sorted(before.items())}}

    def totals(self) -> dict[str, Any]:
        latency = self.latency
        return {"latency": None if latency == INFINITE else latency, "trials": self.trials, "failures": self.failures}
