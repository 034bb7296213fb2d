"""TVM's own tuner through this product's loop: MetaSchedule (Shao et al., NeurIPS 2022) with its numbers in TVM 0.27.

TVM's EvolutionarySearch and XGBModel propose where TVM is (tvm_backend.evolutionary). A landscape has no programs that
could be mutated: there the same numbers work on knobs, which is another search with the same manners.
"""

from __future__ import annotations

from workers.engine.cost_model.xgboost import METASCHEDULE as TREES
from workers.engine.evaluator.fixed import METASCHEDULE as RUNS
from workers.engine.methods.method import Method

PLAN = 64
"""num_trials_per_iter of its tune_tasks."""

METASCHEDULE = Method(
    name="metaschedule",
    scheduler="gradient",
    explorer="metaschedule",  # on knobs EvolutionarySearch's numbers and mutators, see engine.explorer.evolutionary
    sampler="greedy",
    cost_model="xgboost",
    evaluator="fixed",
    parameters={
        # GradientBased: alpha 0.2 and window 3 are the part's own; it compares no operators and leaves nothing to chance.
        "scheduler": {"beta": 1e9, "epsilon": 0.0},
        "cost_model": TREES,  # this and "search" are for landscapes: TVM's search brings its own
        "evaluator": RUNS,
        # Its one model learns from the points of all operators; eps_greedy 0.05 is the default.
        "search": {"first": PLAN // 2, "transfer": 100_000},
        "rhythm": {"plan": PLAN, "warm_up": 4},
    },
)

PRESETS = (METASCHEDULE,)
