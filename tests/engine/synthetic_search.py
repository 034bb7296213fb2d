"""A convolution-like landscape for tests of the inner search: smooth, with cliffs and failing programs."""

from __future__ import annotations

import numpy as np

from workers.engine.ports import Candidate, Outcome
from workers.engine.proposer import GuidedProposer
from workers.engine.space import Configuration, Knob, Operator, Sketch, tilings

WORK = 1e9


def tile(name: str, extent: int, parts: int) -> Knob:
    return Knob(name, "tile", tilings(extent, parts))


CONVOLUTION = Sketch(
    (
        tile("f", 512, 4),
        tile("y", 56, 4),
        tile("x", 56, 4),
        tile("rc", 64, 2),
        Knob("unroll", "category", ((0,), (16,), (64,), (512,))),
        Knob("location", "location", ((-1,), (2,), (5,))),
    )
)
TINY = Sketch((Knob("unroll", "category", ((0,), (16,), (64,))), Knob("location", "location", ((-1,), (2,)))))


def convolution(sketches: int = 1) -> Operator:
    start = (Configuration(0, (0,) * len(CONVOLUTION.knobs)),)
    return Operator(0, "conv", "conv", 1, WORK, 1e6, WORK, (CONVOLUTION,) * sketches, start)


def speed(configuration: Configuration, slowdown: float = 3.0, knobs: tuple[Knob, ...] = CONVOLUTION.knobs) -> float:
    """FLOP/s; 0 fails. Vectors of 16, a register tile of about 90 and a cache tile of up to 4,096 are best.

    Sketch 0 is the best sketch; each further one is `slowdown` times slower still. `knobs` may have other extents.
    """
    options = [knob.options[c] for knob, c in zip(knobs, configuration.choices, strict=True)]
    f, y, x, rc, (unroll,), (location,) = options
    register = f[3] * y[3] * x[3]
    if register > 4096:
        return 0.0
    cache = f[2] * f[3] * rc[1] + y[2] * y[3] * x[2] * x[3] * rc[1]
    score = -0.5 * abs(np.log2(f[3]) - 4) - 0.35 * abs(np.log2(register) - 6.5)
    score -= 0.3 * max(np.log2(cache) - 12, 0) + 0.15 * max(9 - np.log2(cache), 0)
    score -= max(4 - np.log2(f[0] * y[0] * x[0]), 0)
    score -= 1.5 * (register * unroll > 60000) + 0.4 * (location != 2) + 0.3 * (unroll != 64)
    score -= 0.25 * (abs(np.log2(rc[1]) - 3) + abs(np.log2(x[3]) - 1) + abs(np.log2(y[2]) - 1))
    return float(2.0**score * 1e11 / (1 + slowdown * configuration.sketch))


def measured(candidate: Candidate) -> Outcome:
    found = speed(candidate.configuration)
    seconds = WORK / found if found else None
    cause = "" if found else "build"
    return Outcome(candidate, candidate.configuration, repr(candidate.configuration), seconds, cause=cause)


def run(proposer: GuidedProposer, trials: int, plan: int = 16) -> list[Outcome]:
    """Proposes and measures until `trials` outcomes or exhaustion."""
    outcomes: list[Outcome] = []
    while len(outcomes) < trials and (batch := proposer.propose(min(plan, trials - len(outcomes)))):
        answers = [measured(candidate) for candidate in batch]
        proposer.observe(answers)
        outcomes += answers
    return outcomes


def reached(proposer: GuidedProposer) -> float:
    """Best speed so far, FLOP/s."""
    return WORK / proposer.best.seconds if proposer.best and proposer.best.seconds else 0.0
