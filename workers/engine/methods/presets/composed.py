"""Two papers in one method: DynaTune gives the slots, and its operators are searched as another paper does."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.methods.method import Method
from workers.engine.methods.presets.adatune import ADATUNE, ADATUNE_PAPER
from workers.engine.methods.presets.chameleon import CHAMELEON, CHAMELEON_PAPER
from workers.engine.methods.presets.dynatune import DYNATUNE, DYNATUNE_PAPER


def _composed(name: str, searched: Method, slots: Method) -> Method:
    """The search of one, with its plans, under the scheduler of the other, with its slots; a warm-up of one plan where that
    has one."""
    plan = searched.parameters["rhythm"]["plan"]
    rhythm = {**slots.parameters.get("rhythm", {}), "plan": plan}
    if "warm_up" in rhythm:
        rhythm["warm_up"] = plan
    return replace(
        searched,
        name=name,
        scheduler=slots.scheduler,
        parameters={**searched.parameters, "rhythm": rhythm},
    )


PRESETS = (
    _composed("dynatune-chameleon", CHAMELEON, DYNATUNE),
    _composed("dynatune-adatune", ADATUNE, DYNATUNE),
    _composed("dynatune-chameleon-paper", CHAMELEON_PAPER, DYNATUNE_PAPER),
    _composed("dynatune-adatune-paper", ADATUNE_PAPER, DYNATUNE_PAPER),
)
