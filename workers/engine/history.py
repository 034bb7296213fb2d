"""What is known of one operator: a pure fold over its outcomes, so that replaying them restores it."""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.engine.ports import Outcome
from workers.engine.space import Configuration, Operator

DUPLICATE = "duplicate"
INVALID = "invalid"
DEVICE = "device"


@dataclass
class SketchHistory:
    """Points of one sketch in the order of observation; `streak` counts duplicates and invalid ones since the last
    program."""

    visited: set[tuple[int, ...]] = field(default_factory=set)
    choices: list[tuple[int, ...]] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    best: float = 0.0
    streak: int = 0


class History:
    """Visited configurations, known programs and points to learn from."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._identities: set[str] = set()
        self.sketches = [SketchHistory() for _ in operator.sketches]
        self.best: Outcome | None = None
        self.duplicates = 0

    def visit(self, configuration: Configuration) -> None:
        """Marks as not to be proposed (again). What lies outside the space, as a read-back may, is ignored."""
        if 0 <= configuration.sketch < len(self.sketches):
            sizes = self._operator.sketches[configuration.sketch].sizes
            choices = configuration.choices
            if len(choices) == len(sizes) and all(0 <= c < n for c, n in zip(choices, sizes, strict=True)):
                self.sketches[configuration.sketch].visited.add(choices)

    def is_visited(self, configuration: Configuration) -> bool:
        return configuration.choices in self.sketches[configuration.sketch].visited

    def add(self, outcome: Outcome) -> None:
        """One outcome. Failures are points of speed 0; a duplicate teaches only that it is one; a device's failure
        says nothing about the configuration, which may be proposed again."""
        asked, found = outcome.candidate.configuration, outcome.configuration
        seen = self.sketches[asked.sketch]
        if outcome.cause == DEVICE:
            seen.visited.discard(asked.choices)
            return
        self.visit(asked)
        self.visit(found)
        if outcome.cause == DUPLICATE or outcome.identity in self._identities:
            self.duplicates += 1
            seen.streak += 1
            return
        if outcome.identity:
            self._identities.add(outcome.identity)
        seen.streak = seen.streak + 1 if outcome.cause == INVALID else 0
        self._learn(found if outcome.seconds else asked, outcome)

    def _learn(self, at: Configuration, outcome: Outcome) -> None:
        if not self._within(at):
            return
        speed = self._operator.work / outcome.seconds if outcome.seconds else 0.0
        seen = self.sketches[at.sketch]
        seen.choices.append(at.choices)
        seen.speeds.append(speed)
        seen.best = max(seen.best, speed)
        if outcome.seconds and (self.best is None or self.best.seconds is None or outcome.seconds < self.best.seconds):
            self.best = outcome

    def _within(self, at: Configuration) -> bool:
        return 0 <= at.sketch < len(self.sketches) and at.choices in self.sketches[at.sketch].visited
