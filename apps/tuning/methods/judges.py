"""Cost models and evaluators in plain words: what is expected of a configuration, and how often it is timed."""

from __future__ import annotations

from functools import partial

from apps.tuning.methods.words import Part
from workers.messages.methods import numbers

_of = partial(numbers, "cost_model")

_LOG = _of("product: log2 of the speed", target="log")
_FLOOR = _of("product: where failures lie, in log2 of the best speed", floor=-6.0)

COST_MODELS = (
    Part(
        "xgboost",
        "Boosted trees",
        "depth 3, gamma 1e-4, minimum child weight 1, eta 0.3, lambda 1 (AutoTVM's program).",
        (
            *_of("Chameleon, Table 8", objective="reg"),
            *_LOG,
            *_of("product: not in the papers", rounds=50),
            *_FLOOR,
            *_of("product: measured; AutoTVM takes all rows", subsample=0.7),
            *_of("AutoTVM's program, v0.19", depth=3, gamma=1e-4, child=1.0, eta=0.3),
            *_of("TVM's XGBModel has it, AutoTVM not", weighted=False),
        ),
    ),
    Part(
        "random_forest",
        "Random forest",
        "10 trees on 10 columns, which say how sure they are (AdaTune's program).",
        (
            *_of("AdaTune's program", trees=10, features=10),
            *_LOG,
            *_of("product: by what happened on points held out (Lei et al. 2018)", calibration="calibrated"),
            *_FLOOR,
        ),
    ),
    Part("none", "No opinion", "only for an explorer that goes by chance."),
)

_to = partial(numbers, "evaluator")

_CUT = (
    *_to("product: a run so many times slower than the best ends it", reject=1.5),
    *_to("product: standard errors from the best that end it", z=3.0),
    *_to("product: seconds of a run at least, of several calls where they are short", shortest=200e-6),
)

EVALUATORS = (
    Part(
        "fixed",
        "A set number of runs",
        "runs of a number or time set before; hopeless programs are cut.",
        (
            *_to("product: whatever the time", runs=3, most=300),
            *_to("product: 20 runs of 1 ms, a standard error of about 1 %", seconds=0.02),
            *_CUT,
            *_to("product: stays where neighbours disturb; the papers' scripts take the mean", statistic="median"),
        ),
    ),
    Part(
        "adaptive",
        "Until the runs agree",
        "runs in batches, until the batches agree (AdaTune).",
        (
            *_to("AdaTune's program", most=500),
            *_to("product: no longer than that; no limit in AdaTune's program", seconds=0.05),
            *_to(
                "product: as many runs as fill a batch's seconds; 50 in AdaTune's program", batch=0, batch_seconds=0.003
            ),
            *_to("AdaTune's program: more than so many", batches=2),
            *_to("product: batches are short; 0.1 in AdaTune's program", epsilon=0.02),
            *_to("AdaTune's program: the fastest and the slowest batch need not agree", extremes=False),
            *_CUT,
        ),
    ),
)
