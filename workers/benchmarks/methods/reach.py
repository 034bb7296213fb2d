"""How soon one run is where another ended; what never comes there is told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.benchmarks.cells import Cell
from workers.benchmarks.curve import Curve

SLACK = 0.01
"""Two latencies this close count as the same quality."""
SHORTEST = 1e-9
"""Seconds or counts that nothing takes less of: a divisor is no 0."""

Found = tuple[float, bool]


@dataclass(frozen=True)
class Reach:
    """A measure of (base, arm). `found` has each figure and whether it came; where not, the figure if it had come with the end
    of its run, which it did not. So judged is a `ratio` of what never came as 0, and seconds as those of the whole run."""

    found: Callable[[Cell, Cell], list[Found]]
    ratio: bool = True

    def __call__(self, base: Cell, arm: Cell) -> list[float]:
        return [0.0 if self.ratio and not came else figure for figure, came in self.found(base, arm)]

    def censored(self, pairs: Sequence[tuple[Cell, Cell]]) -> str:
        """How many came of all pairs, and what ratio they have at most with the others as if these had come with the ends of
        their runs; empty where all came."""
        each = [found for pair in pairs if (found := self.found(*pair))]
        came, of = sum(one for found in each for _, one in found), sum(map(len, each))
        if came == of:
            return ""
        most = np.median([np.median([figure for figure, _ in found]) for found in each])
        return f"{came} of {of} arrive, " + (
            f"<= {most:.2f} with the others" if self.ratio else "the others at their ends"
        )


def curve_of(cell: Cell) -> Curve:
    return Curve.of(cell["curve"])


def _target(base: Cell, slack: float) -> float | None:
    final = curve_of(base).final
    return None if final is None else final * (1 + slack)


def _sooner(slack: float) -> Callable[[Cell, Cell], list[Found]]:
    def found(base: Cell, arm: Cell) -> list[Found]:
        target = _target(base, slack)
        first = None if target is None else curve_of(base).time_to(target)
        return [(first / max(seconds, SHORTEST), came) for seconds, came in _seconds(slack)(base, arm)] if first else []

    return found


def _seconds(slack: float) -> Callable[[Cell, Cell], list[Found]]:
    def found(base: Cell, arm: Cell) -> list[Found]:
        target = _target(base, slack)
        if target is None:
            return []
        reached = curve_of(arm).time_to(target)
        return [(arm["seconds"], False) if reached is None else (reached, True)]

    return found


def _of_operators(column: int, whole: str) -> Callable[[Cell, Cell], list[Found]]:
    """How much less of a column of the series every operator of `arm` needs for the base's best, within SLACK; its `whole` is
    what it had of it in all."""

    def found(base: Cell, arm: Cell) -> list[Found]:
        each = list[Found]()
        for mine, theirs in zip(base["operators"], arm["operators"], strict=True):
            if not mine["series"]:
                continue
            target = mine["best"] * (1 + SLACK)
            needed = next((row[column] for row in mine["series"] if row[3] <= target), None)
            reached = next((row[column] for row in theirs["series"] if row[3] <= target), None)
            if needed is not None:
                spent = theirs[whole] if reached is None else reached
                each.append((max(needed, SHORTEST) / max(spent, SHORTEST), reached is not None))
        return each

    return found


def _ahead(base: Cell, arm: Cell) -> list[Found]:
    mine, theirs = curve_of(base), curve_of(arm)
    if not mine.points:
        return []
    since = None
    for moment in sorted({seconds for curve in (mine, theirs) for seconds, _ in curve.points}):
        slower = (theirs.at(moment) or np.inf) > (mine.at(moment) or np.inf)
        since = None if slower else moment if since is None else since
    return [(arm["seconds"], False) if since is None else (since, True)]


time_to_same = Reach(_sooner(SLACK))
"""How much sooner `arm` is within 1 % of the base's final latency (DynaTune, Figures 7 to 10)."""
time_to_final = Reach(_sooner(0.0))
"""The same to the very latency."""
time_to_near = Reach(_sooner(0.02))
"""The same to within 2 %: for the oracle."""
seconds_to_base = Reach(_seconds(SLACK), ratio=False)
"""Seconds until `arm` is as near to the base's final latency."""
ahead_from = Reach(_ahead, ratio=False)
"""Seconds from which on `arm` is nowhere slower than the base, which it may be at the end."""
measurements_to_same = Reach(_of_operators(0, "trials"))
seconds_to_same = Reach(_of_operators(1, "seconds"))
