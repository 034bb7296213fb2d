"""Which parts fit together."""

from __future__ import annotations

from workers.engine.errors import IllegalMethod
from workers.engine.methods.method import REGISTRIES, Method
from workers.engine.registry import check
from workers.engine.sampler.adaptive import MOST
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.space import Operator, Sketch

SURE = ("random_forest",)
"""Cost models that say how sure they are; of the others `Prediction.spread` is zero."""
CLUSTERING = "adaptive"
CHOOSING = ("diverse", CLUSTERING)
"""Samplers that need more candidates than they return."""
KNOWING = "oracle"
"""The scheduler that is shown recorded curves: it cannot be made without."""
POOL = 8.0
"""Candidates for each place in a plan of theirs: what `Adaptive` was measured with."""


def check_legal(made: Method) -> None:
    """Raises UnknownPart for names nobody registered and IllegalMethod for parts that do not fit together."""
    for role, registry in REGISTRIES.items():
        check(role.replace("_", " "), registry, getattr(made, role))
    if made.cost_model == "none" and made.explorer != "random":
        raise IllegalMethod(
            f"explorer {made.explorer!r} follows a cost model and there is none; "
            "choose cost_model xgboost or explorer random"
        )
    search = made.search
    if search.contextual and made.explorer == "random":
        raise IllegalMethod(
            "the contextual optimizer weighs chance against the explorer, and explorer 'random' is all chance; "
            "choose another explorer, or a method with a fixed share of chance"
        )
    if made.cost_model not in SURE and (search.contextual or search.acquisition != "mean"):
        wants = "the contextual optimizer" if search.contextual else f"acquisition {search.acquisition!r}"
        raise IllegalMethod(
            f"{wants} asks how sure the cost model is, and {made.cost_model!r} does not tell; "
            f"choose cost_model {' or '.join(SURE)}, or a method that scores by the mean"
        )
    thinning = made.sampler == CLUSTERING and made.rhythm.plan > MOST  # a plan larger than it returns at most
    if made.sampler in CHOOSING and search.pool == 1 and not thinning:
        raise IllegalMethod(
            f"sampler {made.sampler!r} chooses among more candidates than a plan holds, and search.pool 1 gives it no "
            f"more; set search.pool to {POOL:g}"
        )


def check_numbers(made: Method) -> None:
    """Raises IllegalMethod for parameters that a part, "search" or "rhythm" does not take."""
    nothing = Operator(0, "", "", 1, 0.0, 0.0, 1.0, (Sketch(()),), ())
    try:
        made.rhythm, made.make_evaluator()
        made.make_cost_model(nothing, 0)
        made.make_proposer(nothing, 0)
        if made.scheduler != KNOWING:
            scheduler_named(made.scheduler, Setting(0, 1.0), **made.parameters.get("scheduler", {}))
    except (TypeError, ValueError) as error:
        raise IllegalMethod(f"parameters {dict(made.parameters)}: {error}; leave them out or correct them") from None
