"""What is known of one operator: a pure fold over its outcomes, so that replaying them restores it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from workers.engine.evaluator.estimate import timed_again
from workers.engine.known import LUCK, NOTHING, Known
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Operator
from workers.messages.believed import Believed
from workers.messages.causes import INVALID, LARGE, UNBUILT

DOUBT = 3.0
"""A lead of fewer standard errors may be chance, and so may one within `LUCK`."""


@dataclass
class SketchHistory:
    """Points of one sketch in the order of observation; `best` is their highest speed, by the latest figure of each, whether or
    not that is believed: it guides a search whose model was shown those figures;
    `streak` counts duplicates and invalid ones since the last program. What has too much code to be compiled now is
    neither: it says nothing of what the sketch has left."""

    visited: set[tuple[int, ...]] = field(default_factory=set)
    choices: list[tuple[int, ...]] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    best: float = 0.0
    streak: int = 0


class History:
    """Visited configurations, known programs and points to learn from; `known` are points of earlier runs."""

    def __init__(self, operator: Operator, known: Known = NOTHING) -> None:
        self._operator = operator
        self._identities: set[str] = set()
        self.sketches = [SketchHistory() for _ in operator.sketches]
        self._programs: dict[Configuration, Outcome] = {}
        self._believed = Believed[Configuration]()
        self._rounds: dict[Configuration, int] = {}
        self._seconds = self._repeating = 0.0
        self.duplicates = 0
        for point in known.points:
            self.visit(point.configuration)
            self._point(point.configuration, point.seconds)
        self._lent = [seen.best for seen in self.sketches]
        for start in known.starts:
            self.sketches[start.sketch].visited.discard(start.choices)

    @property
    def best(self) -> Outcome | None:
        """The fastest that is believed."""
        return None if self._believed.best is None else self._programs[self._believed.best]

    def visit(self, configuration: Configuration) -> None:
        """Marks as not to be proposed (again). What lies outside the space, as a read-back may, is ignored."""
        if self._operator.holds(configuration):
            self.sketches[configuration.sketch].visited.add(configuration.choices)

    def is_visited(self, configuration: Configuration) -> bool:
        return configuration.choices in self.sketches[configuration.sketch].visited

    def unvisited(self, configurations: Iterable[Configuration]) -> list[Configuration]:
        """Those of them that nobody proposed yet, in their order."""
        return [configuration for configuration in configurations if not self.is_visited(configuration)]

    def add(self, outcome: Outcome) -> None:
        """One outcome. Failures are points of speed 0; what was not built teaches nothing."""
        asked, found = outcome.candidate.configuration, outcome.configuration
        self._seconds += _cost(outcome)
        if outcome.candidate.round > 0:
            self._repeat(outcome)
            return
        seen = self.sketches[asked.sketch]
        self.visit(asked)
        self.visit(found)
        if outcome.cause in UNBUILT or outcome.identity in self._identities:
            known = outcome.cause != LARGE
            self.duplicates += known
            seen.streak += known
            return
        if outcome.identity:
            self._identities.add(outcome.identity)
        seen.streak = seen.streak + 1 if outcome.cause == INVALID else 0
        self._learn(found if outcome.seconds else asked, outcome)

    def _learn(self, at: Configuration, outcome: Outcome) -> None:
        if not self._within(at):
            return
        self._point(at, outcome.seconds)
        if outcome.seconds:
            self._programs[outcome.candidate.configuration] = outcome
            self._believed.add(outcome.candidate.configuration, outcome.seconds, 0)

    def _point(self, at: Configuration, seconds: float | None) -> None:
        speed = self._operator.work / seconds if seconds else 0.0
        seen = self.sketches[at.sketch]
        seen.choices.append(at.choices)
        seen.speeds.append(speed)
        seen.best = max(seen.best, speed)

    def _repeat(self, outcome: Outcome) -> None:
        """A later round takes the place of the earlier figure, as the best of its sketch too; one that failed leaves it. The
        cost model keeps what it was shown first: a resumed run must fit the same points."""
        asked = outcome.candidate.configuration
        self._repeating += _cost(outcome)
        self._rounds[asked] = max(outcome.candidate.round, self._rounds.get(asked, 0))
        if outcome.seconds and asked in self._programs:
            self._programs[asked] = outcome
            self._believed.add(asked, outcome.seconds, outcome.candidate.round)
            self._revise(outcome.configuration.sketch)

    def _revise(self, sketch: int) -> None:
        """What earlier runs found of it stays."""
        times = [_seconds(one) for one in self._programs.values() if one.configuration.sketch == sketch]
        self.sketches[sketch].best = max([self._lent[sketch], *(self._operator.work / time for time in times)])

    def doubtful(self, share: float) -> list[Candidate]:
        """The best program and the one it overtook, to be measured once more side by side; [] when there is no doubt.

        Of many programs the best figure is also the luckiest (winner's curse): where the lead may be
        chance and the best was measured once, both get a new round. [] too while that would take repetitions
        over `share` of this operator's seconds, builds and timed runs.
        """
        first = self.best
        if first is None or first.candidate.configuration in self._rounds or len(self._programs) < 2:
            return []
        second = min((one for one in self._programs.values() if one is not first), key=_seconds)
        error = DOUBT * math.hypot(first.spread, second.spread)
        if _seconds(second) - _seconds(first) > max(error, LUCK * _seconds(first)):
            return []
        # The second may have been cut after a run; this time it is timed to the end, as the first was.
        cost = first.build_seconds + second.build_seconds + 2 * timed_again(first)
        if self._repeating + cost > share * self._seconds:
            return []
        asked = [outcome.candidate for outcome in (first, second)]
        return [replace(one, origin="confirm", round=1 + self._rounds.get(one.configuration, 0)) for one in asked]

    def _within(self, at: Configuration) -> bool:
        return 0 <= at.sketch < len(self.sketches) and at.choices in self.sketches[at.sketch].visited


def _cost(outcome: Outcome) -> float:
    return outcome.build_seconds + outcome.measure_seconds


def _seconds(outcome: Outcome) -> float:
    return outcome.seconds or math.inf
