"""How many measurements a sampler saves in a space of millions: in the recorded parts, of some thousand configurations, a first
plan often has one that is as good."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

import numpy as np

from workers.benchmarks.methods.walks import widened
from workers.engine.methods import Method
from workers.engine.space import Configuration, Operator
from workers.landscapes import SimulatedClock
from workers.landscapes.parameters import walking
from workers.landscapes.synthetic import PEAK_FLOPS, SyntheticLandscape
from workers.messages.causes import UNBUILT
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop

TRIALS = 384
"""Six of AutoTVM's plans."""
SLACK = 0.01
"""As close as this to the baseline's best is as good (Chameleon, Figure 7b)."""

Series = list[tuple[int, float]]
"""Measurements after which the best, in s, fell to a figure."""


def saved(operator: Operator, base: Method, sampled: Method, seed: int) -> float:
    """How many times fewer measurements `sampled` takes until its best is as good as that of `base` after TRIALS; 0 where it
    is not with as many. In every tiling of the operator's loops, by synthetic speeds (`Hill`) without faults."""
    wide = replace(operator, sketches=(widened(operator.sketches[0]),), start=())
    theirs = searched(wide, base, seed)
    enough = theirs[-1][1] * (1 + SLACK)
    ours = searched(wide, sampled, seed, enough)
    return _first(theirs, enough) / _first(ours, enough) if ours[-1][1] <= enough else 0.0


def searched(operator: Operator, chosen: Method, seed: int, enough: float = 0.0) -> Series:
    """A search of one operator, of TRIALS measurements or until one takes no more than `enough`; figures without noise."""
    # The hill's seed is another than the search's: else the first configuration that it draws is the top of the hill.
    draw, hill = (int(one) for one in np.random.SeedSequence([seed, operator.index, *b"hill"]).generate_state(2))
    clock = SimulatedClock()
    landscape = SyntheticLandscape(hill, [replace(operator, index=0)], clock, faults={})
    series, measured = [(0, math.inf)], count(1)

    def hear(event: Event) -> None:
        for one in event["measurements"] if event["kind"] == "batch" else ():
            if one["cause"] in UNBUILT or one["seconds"] is None:
                continue
            taken = landscape.seconds(0, Configuration(one["sketch"], tuple(one["choices"])))
            number = next(measured)
            if taken < series[-1][1]:
                series.append((number, taken))

    def wanted() -> str:
        return "stop" if series[-1][1] <= enough else "continue"

    TuningLoop(landscape, walking(chosen), Budget(trials=TRIALS), draw, PEAK_FLOPS, clock, hear, wanted).run()
    return series[1:]


def _first(series: Series, enough: float) -> int:
    return next(measured for measured, seconds in series if seconds <= enough)
