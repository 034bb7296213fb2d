"""What all landscapes share: they answer at once, charge a simulated clock, and know duplicates by identity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Operator
from workers.landscapes.clock import SimulatedClock
from workers.messages.causes import INVALID

APPLY_SECONDS = 0.009
"""What every candidate costs, duplicates too: applying a trace takes TVM about 9 ms."""


class LandscapeError(RuntimeError):
    """A landscape was asked for something it does not hold; the text says what, and what to do."""


class Landscape(ABC):
    """A `Backend` without a device. Candidates are charged one after the other: apply, build, measure."""

    apply_seconds = APPLY_SECONDS

    def __init__(self, operators: Sequence[Operator], clock: SimulatedClock) -> None:
        self._operators = tuple(operators)
        self._clock = clock
        self._seen: set[tuple[int, str]] = set()
        self._spent: dict[str, float] = defaultdict(float)

    @abstractmethod
    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        """What measuring this candidate for the first time gives; its configuration is inside the space.

        Raises LandscapeError when the landscape does not know.
        """

    def operators(self) -> Sequence[Operator]:
        return self._operators

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        """See `Backend`."""
        best, outcomes = dict(incumbents), []
        for candidate in candidates:
            outcome = self._measured(candidate, best.get(candidate.operator))
            if outcome.seconds is not None:
                best[candidate.operator] = min(best.get(candidate.operator, outcome.seconds), outcome.seconds)
            self.charge("apply", self.apply_seconds)
            self.charge("build", outcome.build_seconds)
            self.charge("measure", outcome.measure_seconds)
            outcomes.append(outcome)
        return outcomes

    def remember(self, operator: int, identity: str) -> None:
        self._seen.add((operator, identity))

    def spent(self) -> dict[str, float]:
        return dict(self._spent)

    def close(self) -> None:
        """Nothing is held."""
        self._seen.clear()

    def charge(self, category: str, seconds: float) -> None:
        """Lets time pass and books it under `category`."""
        self._clock.advance(seconds)
        self._spent[category] += seconds

    def _measured(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        if reason := self._outside(candidate):
            return Outcome(candidate, candidate.configuration, "", None, cause=INVALID, error=reason)
        outcome = self.answer(candidate, incumbent)
        key = (candidate.operator, outcome.identity)
        if outcome.identity and candidate.round == 0 and key in self._seen:
            return Outcome(candidate, outcome.configuration, outcome.identity, None, cause="duplicate")
        if outcome.identity:
            self._seen.add(key)
        return replace(outcome, candidate=candidate)

    def _outside(self, candidate: Candidate) -> str:
        """Why a candidate is no point of the space; "" when it is one."""
        if not 0 <= candidate.operator < len(self._operators):
            return f"there is no operator {candidate.operator}; there are {len(self._operators)}"
        sketches, configuration = self._operators[candidate.operator].sketches, candidate.configuration
        if not 0 <= configuration.sketch < len(sketches):
            return f"there is no sketch {configuration.sketch}; there are {len(sketches)}"
        return "" if self._operators[candidate.operator].holds(configuration) else "choices outside the knobs"
