"""TVM's own tuner through this product's loop: MetaSchedule (Shao et al., NeurIPS 2022) with its numbers in TVM 0.27.

TVM's EvolutionarySearch and XGBModel propose where TVM is (tvm_backend.evolutionary). A landscape has no programs that
could be mutated: there the same numbers work on knobs, which is another search with the same manners.
"""

from __future__ import annotations

from workers.messages.methods.preset import Preset, numbers, parts

METASCHEDULE = Preset(
    "metaschedule",
    "TVM’s own tuner",
    "Evolves programs and follows the steepest descent, with TVM’s numbers and long timings.",
    "MetaSchedule (Shao et al., NeurIPS 2022), as in TVM 0.27",
    parts("gradient", "metaschedule", "greedy", "xgboost", "fixed"),
    (
        # Alpha 0.2 and window 3 are the part's own.
        *numbers(
            "scheduler", "TVM's GradientBased compares no operators and leaves nothing to chance", beta=1e9, epsilon=0.0
        ),
        *numbers(
            "cost_model", "TVM's XGBModel and XGBConfig", objective="reg", target="speed", depth=10, gamma=1e-3, child=0.0,
            eta=0.2, subsample=1.0, weighted=True,
        ),
        # It boosts until 50 rounds bring nothing to the points of the fit, which 100 rounds stand for.
        *numbers("cost_model", "TVM stops by itself", rounds=100),
        # Number 3, repeat 1, min_repeat_ms 100; a run takes 200 us at least, so that 500 are 100 ms.
        *numbers(
            "evaluator", "TVM's EvaluatorConfig: 100 ms in runs of 0.2 ms and more", runs=3, most=500, seconds=0.1,
            reject=0.0, statistic="mean",
        ),
        *numbers(
            "search", "TVM's model guesses until 100 programs were measured; here the first plan is random", first=32
        ),
        *numbers(
            "search", "TVM's one model learns from all operators; here each from those alike", transfer=100_000
        ),
        *numbers("rhythm", "TVM's tune_tasks", plan=64),
        *numbers("rhythm", "product", warm_up=4),
    ),
    more="TVM’s EvolutionarySearch proposes, and its trees learn from the loops of each program. Differs from TVM’s "
    "tune_relax: operators begin with configurations chosen by rules, programs are built and timed as in every method "
    "here, and a resumed run goes on with other luck. Comparisons on recorded landscapes, which have no programs to "
    "mutate, evolve knobs with the numbers below instead: those of the cost model and the inner search, whatever they are "
    "set to, hold on landscapes only.",
)  # fmt: skip
