"""Run after run of one program, as an evaluator asks for them: one rule for the machine and for replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workers.engine.ports import Evaluator


def timed_runs(
    evaluator: Evaluator,
    incumbent: float | None,
    runs: Callable[[int], Sequence[float]],
    left: Callable[[], float],
) -> tuple[list[float], str]:
    """Seconds of each run, and why they ended: the evaluator's verdict, or "late" when no time was left.

    `runs(n)` makes n more and gives their seconds, `left()` is the seconds that all of them together may still take. The
    first run is made in any case, and by itself; afterwards at most as many at once as fit, by what the last ones took, with
    what is no part of a run's seconds, as handing large tensors over.
    """
    times: list[float] = []
    whole = 0.0
    while (wanted := evaluator.more(times, incumbent)) > 0:
        before = left()
        fits = int(before / max(times[-1], whole, evaluator.shortest, 1e-9)) if times else 1
        if fits < 1:
            return times, "late"
        more = runs(min(wanted, fits))
        times += more
        whole = (before - left()) / len(more)
    return times, evaluator.verdict(times, incumbent)
