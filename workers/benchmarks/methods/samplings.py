"""How many measurements a sampler saves in a space of millions: in the recorded parts, of some thousand configurations, a first
plan often has one that is as good."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from workers.benchmarks.methods.walks import widened
from workers.benchmarks.tally import Tally
from workers.engine.methods import Method
from workers.engine.space import Configuration, Operator
from workers.landscapes import SimulatedClock
from workers.landscapes.files import described
from workers.landscapes.parameters import walking
from workers.landscapes.synthetic import PEAK_FLOPS, SyntheticLandscape
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
    wide = replace(operator, index=0, sketches=(widened(operator.sketches[0]),), start=())
    theirs = searched(wide, base, seed)
    enough = theirs[-1][1] * (1 + SLACK)
    ours = searched(wide, sampled, seed, enough)
    return _first(theirs, enough) / _first(ours, enough) if ours[-1][1] <= enough else 0.0


def searched(operator: Operator, chosen: Method, seed: int, enough: float = 0.0) -> Series:
    """A search of one operator, of TRIALS measurements or until its best takes no more than `enough`."""
    clock = SimulatedClock()
    # Of another seed than the search: else the first configuration that it draws is the top of the hill.
    (hill,) = np.random.SeedSequence([seed, *b"hill"]).generate_state(1)
    landscape = SyntheticLandscape(int(hill), [operator], clock, faults={})

    def truth(measurement: dict[str, Any]) -> float:
        return landscape.seconds(0, Configuration(measurement["sketch"], tuple(measurement["choices"])))

    tally = Tally([described(operator)], truth)
    best = [float("inf")]

    def hear(event: Event) -> None:
        tally.hear(event)
        if event["kind"] == "batch":
            best.extend(truth(one) for one in event["measurements"] if one["seconds"] is not None)

    def wanted() -> str:
        return "stop" if min(best) <= enough else "continue"

    TuningLoop(landscape, walking(chosen), Budget(trials=TRIALS), seed, PEAK_FLOPS, clock, hear, wanted).run()
    return [(row[0], row[-1]) for row in tally.figures()["operators"][0]["series"]]


def _first(series: Series, enough: float) -> int:
    return next(measured for measured, seconds in series if seconds <= enough)
