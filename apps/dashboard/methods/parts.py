"""The parts that methods are made of, in plain words and with their own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from apps.dashboard.methods.explorers import EXPLORERS, SAMPLERS
from apps.dashboard.methods.inner import ACQUISITIONS, FEATURES, RHYTHM, SEARCH
from apps.dashboard.methods.judges import COST_MODELS, EVALUATORS
from apps.dashboard.methods.schedulers import CURVES, SCHEDULERS
from apps.dashboard.methods.words import Part

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

VALUES: dict[str, tuple[str, Sequence[Part]]] = {
    "curve": ("Curves of the belief", CURVES),
    "acquisition": ("Acquisitions", ACQUISITIONS),
    "features": ("Features", FEATURES),
}
"""Titles and meanings of what parameters of these names may be."""
