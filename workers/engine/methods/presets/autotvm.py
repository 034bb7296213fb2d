"""AutoTVM (Chen et al., NeurIPS 2018) as Chameleon's Table 8 and the last program (v0.19) have it: the papers' baseline.

Its trees, and those of the papers' programs, learn from the loops of the lowered program ("itervar"); here all learn from
knobs, the program's other choice, which needs no lowering: see `Search.features`.
"""

from __future__ import annotations

from typing import Any

from workers.engine.evaluator.fixed import PAPER as RUNS_500
from workers.engine.methods.method import Method

ANNEALING: dict[str, Any] = {
    "chains": 128,  # Chameleon, Table 8
    "steps": 500,  # Table 8
    "patience": 50,  # program: early stop
    "elite": 0.0,  # the product's additions, off
    "exhaustive": False,
}
PLAN = 64
"""Chameleon, Table 8: plan size."""
EAGER: dict[str, Any] = {"plan": PLAN, "warm_up": 1}
"""One operator after the other needs no warm-up; one configuration makes the network's latency finite."""
ONE: dict[str, Any] = {"starts": 1}
"""One default configuration, which makes the latency finite; what else is measured is the search's."""
FIRST: dict[str, Any] = {**ONE, "first": PLAN // 2}
"""Program: the first plan is random. 5 % of each later one are, the default. Some programs of a plan are not built: with half
of it measured the first one is over."""

AUTOTVM = Method(
    name="autotvm",
    scheduler="sequential",  # program: one operator at a time
    explorer="simulated_annealing",
    sampler="greedy",
    cost_model="xgboost",
    evaluator="fixed",
    parameters={
        "explorer": {**ANNEALING, "differences": "speed"},  # program: by the trees' score of normalised speed, as it is
        # Table 8: reg on normalised speed; depth, gamma, eta, ... are the part's own. 100 rounds and all rows: assumed,
        # the paper does not say and the program stops early.
        "cost_model": {"objective": "reg", "target": "speed", "rounds": 100, "subsample": 1.0},
        "evaluator": RUNS_500,  # the number in the papers' scripts, whose authors' timings may end before
        "search": FIRST,
        "rhythm": EAGER,
    },
)

PRESETS = (AUTOTVM,)
