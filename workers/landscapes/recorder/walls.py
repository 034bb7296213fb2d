"""What each candidate of a batch took on the clock on the wall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workers.engine.ports import Backend, Candidate, Outcome
from workers.messages.causes import UNBUILT


def measured(
    backend: Backend, plan: Sequence[Candidate], incumbents: dict[int, float]
) -> tuple[list[Outcome], list[tuple[float, float]]]:
    """Outcomes, and what each took on the wall's clock to apply and build, and to measure.

    Builds run side by side: a batch's wall time is shared out in proportion to what each candidate took.
    """
    before = backend.spent()
    outcomes = backend.measure(plan, incumbents)
    after = backend.spent()
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    building = spent.get("build", 0.0) + spent.get("apply", 0.0)
    builds = np.asarray([outcome.build_seconds + 0.01 for outcome in outcomes])
    # What is known already, or not worth compiling, is not timed.
    timed = [bool(outcome.identity) and outcome.cause not in UNBUILT for outcome in outcomes]
    measures = np.asarray([o.measure_seconds + 1e-3 * was for o, was in zip(outcomes, timed, strict=True)])
    walls = np.stack(
        [building * builds / builds.sum(), spent.get("measure", 0.0) * measures / max(measures.sum(), 1e-9)]
    )
    return outcomes, [(float(build), float(measure)) for build, measure in walls.T]
