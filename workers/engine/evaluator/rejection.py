"""When a program is hopeless beside the incumbent."""

from __future__ import annotations

from collections.abc import Sequence

from workers.engine.evaluator.estimate import estimate


def check_reject(reject: float) -> None:
    """Raises ValueError where it would cut what `hopeless` must not."""
    if reject != 0 and reject < 1:
        raise ValueError(f"reject {reject} would cut programs faster than the incumbent; use 0, or 1 and more")


def hopeless(times: Sequence[float], incumbent: float | None, reject: float, runs: int, z: float) -> bool:
    """Whether `times` (s) show that their program cannot reach `incumbent` (s); False without an incumbent or run.

    After any run: all times above `reject` x incumbent (0 never cuts); random configurations are 10-50 times slower
    than good ones and would take most of the measuring time. From `runs` runs on: all times above the incumbent and
    their median minus `z` standard errors too. Asking that *all* times be above keeps a burst of disturbance from
    cutting a good program, since disturbance only ever slows a run down.
    """
    if incumbent is None or reject == 0 or not times:
        return False
    fastest = min(times)
    if fastest > reject * incumbent:
        return True
    if len(times) < runs or fastest <= incumbent:
        return False
    centre, spread = estimate(times)
    return centre - z * spread > incumbent
