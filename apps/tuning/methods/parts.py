"""The parts that methods are made of, in plain words and with their own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from apps.tuning.methods.explorers import EXPLORERS, SAMPLERS
from apps.tuning.methods.inner import ACQUISITIONS, FEATURES, RHYTHM, SEARCH
from apps.tuning.methods.judges import COST_MODELS, EVALUATORS
from apps.tuning.methods.schedulers import CURVES, SCHEDULERS
from apps.tuning.methods.words import Part
from workers.messages.composition import KNOWING

ROLES = {
    "scheduler": "Scheduler",
    "explorer": "Explorer",
    "sampler": "Sampler",
    "cost_model": "Cost model",
    "evaluator": "Evaluator",
    "search": "Inner search",
    "rhythm": "Rhythm",
}
PARTS: dict[str, Sequence[Part]] = {
    "scheduler": SCHEDULERS,
    "explorer": EXPLORERS,
    "sampler": SAMPLERS,
    "cost_model": COST_MODELS,
    "evaluator": EVALUATORS,
    "search": (SEARCH,),
    "rhythm": (RHYTHM,),
}
"""By role, all that are registered."""
OFFERED = {
    role: tuple(part.name for part in parts if part.name != KNOWING)
    for role, parts in PARTS.items()
    if role not in ("search", "rhythm")
}
"""By role, names of those that a run may have in place of its method's: not the scheduler that is shown recorded curves."""

VALUES: dict[str, tuple[str, Sequence[Part]]] = {
    "curve": ("Curves of the belief", CURVES),
    "acquisition": ("Acquisitions", ACQUISITIONS),
    "features": ("Features", FEATURES),
}
"""Titles and meanings of what parameters of these names may be."""
