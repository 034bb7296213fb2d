"""AutoTVM (Chen et al., NeurIPS 2018) as Chameleon's Table 8 and the last program (v0.19) have it: the papers' baseline.

Its trees, and those of the papers' programs, learn from the loops of the lowered program ("itervar"); here all learn from
knobs, the program's other choice, which needs no lowering: see the engine's `Search.features`.
"""

from __future__ import annotations

from workers.messages.methods.preset import Number, Preset, numbers, parts

TABLE_8 = "Chameleon, Table 8"
ADDITION = "the product's addition, off"

ANNEALING = (
    *numbers("explorer", TABLE_8, chains=128, steps=500),
    *numbers("explorer", "AutoTVM's program, v0.19", patience=50),
    *numbers("explorer", ADDITION, elite=0.0, exhaustive=False),
)
BY_SPEED = numbers(
    "explorer", "AutoTVM's program: temperature is of the speed over the best, not of its logarithm", differences="speed"
)  # fmt: skip
WHOLE = numbers("cost_model", "not in the papers", rounds=100, subsample=1.0)
"""Of trees; the program stops their number early."""
REGRESSION = (*numbers("cost_model", TABLE_8, objective="reg", target="speed"), *WHOLE)
RUNS_500 = (
    *numbers(
        "evaluator", "the number in the papers' scripts", runs=500, most=500, seconds=0.0, reject=0.0, statistic="mean"
    ),
    *numbers("evaluator", "the papers' scripts: a run is one call", shortest=0.0),
)
"""The number in AutoTVM's, DynaTune's and AdaTune's scripts, whose authors' timings may end before."""
ONE = numbers("search", "one default configuration makes the latency finite, before all that is searched", starts=1)


def first_plan(source: str, first: int) -> tuple[Number, ...]:
    """Of the inner search, as `source` has them: `first` is half a plan, of which some is not built, so that the first one
    is over when so much is measured."""
    return (*ONE, *numbers("search", f"{source}: the first plan is random; some of it is not built", first=first))


FIRST = first_plan("AutoTVM's program", 32)
PLAN = numbers("rhythm", TABLE_8, plan=64)
AT_ONCE = numbers("rhythm", "one configuration makes the latency finite", warm_up=1)
"""One operator after the other needs no warm-up."""
EAGER = (*PLAN, *AT_ONCE)
SKETCHES = (
    "As in all methods here sketches share a plan by their success, and one is closed after 64 duplicates or invalid "
    "configurations in a row; AutoTVM, on which the papers’ programs stand, has one space and never closes it."
)
"""Said of each method that is as published or programmed."""

AUTOTVM = Preset(
    "autotvm",
    "AutoTVM",
    "One operator after the other, with long timings. Takes hours.",
    "AutoTVM (Chen et al., NeurIPS 2018), as in Chameleon, Table 8",
    parts("sequential", "simulated_annealing", "greedy", "xgboost", "fixed"),
    (*ANNEALING, *BY_SPEED, *REGRESSION, *RUNS_500, *FIRST, *EAGER),
    more="The baseline of all three papers. 5 % of a plan are random.",
)
