"""What a list of run times says about a program."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.engine.ports import Outcome

SHORTEST_RUN = 200e-6
"""What a run takes at least (s), unless an evaluator says otherwise: a measuring process repeats shorter programs inside one
run. In the papers' scripts a run is one call."""
LONGEST_TIMING = 8.0
"""Seconds for all runs of one program: 500 runs of a slow one are given up, what they said so far is not."""
SINGLE_RUN_SPREAD = 0.1
KEPT_RUNS = 20
"""Single runs told of each program: what a landscape keeps."""
TURNS = 3
"""In which a program is timed that is measured once more: with those that it is compared with it meets the same moments."""
_MAD_TO_SIGMA = 1.4826
_MEDIAN_TO_MEAN_ERROR = math.sqrt(math.pi / 2)


def timed_again(outcome: Outcome) -> float:
    """Seconds that its program would be timed for in another round: in turns, as what is known was the first time."""
    return outcome.measure_seconds * (1 if outcome.candidate.in_turns else TURNS)


def estimate(times: Sequence[float], statistic: str = "median") -> tuple[float, float]:
    """Time of a program and the standard error of it, in seconds, from its runs (at least one).

    "median" stays within half of the runs being disturbed by neighbours on the machine; its error is
    sqrt(pi/2) x sigma / sqrt(n) with sigma from the median absolute deviation. "mean", with the classical error, is
    what the papers' programs use. One run tells nothing about its own spread: a tenth of it is assumed.
    """
    if not times:
        raise ValueError("no run was timed; time at least one before asking for an estimate")
    if statistic not in ("median", "mean"):
        raise ValueError(f"there is no statistic {statistic!r}; choose median or mean")
    centre = statistics.median(times) if statistic == "median" else statistics.fmean(times)
    if len(times) == 1:
        return centre, SINGLE_RUN_SPREAD * centre
    if statistic == "mean":
        return centre, statistics.stdev(times) / math.sqrt(len(times))
    sigma = _MAD_TO_SIGMA * statistics.median(abs(t - centre) for t in times)
    return centre, _MEDIAN_TO_MEAN_ERROR * sigma / math.sqrt(len(times))


def of_turns(figures: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The same of a program's turns, each with its own time and error: the middle one, and its error by how they differ."""
    times = [time for time, _ in figures]
    if len(times) == 1:
        return figures[0]
    return statistics.median(times), statistics.stdev(times) / math.sqrt(len(times))
