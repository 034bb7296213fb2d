"""Samplers by name. A factory takes a seed and its parameters; a sampler is a pure function of what it is given."""

from __future__ import annotations

from collections.abc import Callable

from workers.engine.ports import Sampler
from workers.engine.sampler.adaptive import Adaptive
from workers.engine.sampler.adaptive_program import AdaptiveProgram
from workers.engine.sampler.diverse import Diverse
from workers.engine.sampler.greedy import Greedy

SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "greedy": Greedy,
    "diverse": Diverse,
    "adaptive": Adaptive,
    "adaptive-program": AdaptiveProgram,
}

__all__ = ["SAMPLERS", "Adaptive", "AdaptiveProgram", "Diverse", "Greedy"]
