"""What DynaTune's scheduler is compared with (5.1 to 5.3, Appendices A and C): its inner search, slots given otherwise."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.methods.method import Method
from workers.engine.methods.presets.dynatune import DYNATUNE


def _rival(name: str, scheduler: str, summary: str) -> Method:
    return replace(DYNATUNE, name=name, scheduler=scheduler, summary=f"The inner search of dynatune, {summary}")


PRESETS = (
    _rival("sequential", "sequential", "one operator after the other in equal parts of the budget (DynaTune, 5.1)."),
    _rival("round_robin", "round_robin", "with slots given in turn: what a scheduler has to beat (DynaTune, 5.2)."),
    _rival("random_slots", "random", "each slot to an operator drawn by chance (DynaTune, 5.2)."),
    _rival("linear", "linear", "with slots in proportion to the operators' work (DynaTune, 5.2)."),
    # 200 configurations without improvement finish an operator: FINISHED of the scheduler package.
    _rival(
        "dynamic_round_robin",
        "dynamic_round_robin",
        "with slots in turn, to operators that improved within 200 configurations (DynaTune, 5.3).",
    ),
    _rival(
        "dynamic_random",
        "dynamic_random",
        "with slots by chance, to operators that improved within 200 configurations (DynaTune, 5.3).",
    ),
    # Epsilon 0.05: Appendix A.
    _rival(
        "epsilon_greedy",
        "epsilon_greedy",
        "slots to the largest expected gain, but for 5 % of them by chance (DynaTune, Appendix A).",
    ),
    _rival("softmax", "softmax", "slots by chance, the likelier the larger the expected gain (DynaTune, Appendix A)."),
    # Alpha 0.2, beta 2, window 3, nothing by chance: Appendix C; the part's defaults.
    _rival(
        "gradient",
        "gradient",
        "slots to the steepest descent of the network's latency, as Ansor's program gives them (OSDI 2020, 6; DynaTune, "
        "Appendix C).",
    ),
    Method(
        name="random",
        scheduler="round_robin",
        explorer="random",
        sampler="greedy",
        cost_model="none",
        evaluator="fixed",
        summary="Random configurations, operators in turn: what every method has to beat.",
    ),
)
