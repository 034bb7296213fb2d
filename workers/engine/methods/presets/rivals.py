"""What DynaTune's scheduler is compared with (5.1 to 5.3, Appendices A and C): its inner search, slots given otherwise."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.methods.method import Method
from workers.engine.methods.presets.dynatune import DYNATUNE


def _rival(name: str, scheduler: str = "") -> Method:
    return replace(DYNATUNE, name=name, scheduler=scheduler or name)


PRESETS = (
    _rival("sequential"),  # in equal parts of the budget: 5.1
    _rival("round_robin"),  # 5.2
    _rival("random_slots", "random"),  # 5.2
    _rival("linear"),  # 5.2
    # 200 configurations without improvement finish an operator (5.3): FINISHED of the scheduler package.
    _rival("dynamic_round_robin"),
    _rival("dynamic_random"),
    _rival("epsilon_greedy"),  # epsilon 0.05: Appendix A
    _rival("softmax"),  # Appendix A
    # Ansor's (OSDI 2020, 6); alpha 0.2, beta 2, window 3, nothing by chance: Appendix C; the part's defaults.
    _rival("gradient"),
    Method(
        name="random",
        scheduler="round_robin",
        explorer="random",
        sampler="greedy",
        cost_model="none",
        evaluator="fixed",
    ),
)
