"""Evaluators by name. They travel to the measuring process as JSON: name and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workers.engine.evaluator.adaptive import AdaptiveEvaluator
from workers.engine.evaluator.estimate import estimate
from workers.engine.evaluator.fixed import FixedEvaluator
from workers.engine.ports import Evaluator
from workers.engine.registry import make

EVALUATORS: dict[str, Callable[..., Evaluator]] = {"fixed": FixedEvaluator, "adaptive": AdaptiveEvaluator}


def evaluator_from(name: str, parameters: Mapping[str, Any]) -> Evaluator:
    """The evaluator described by a registered name and JSON parameters; UnknownPart or IllegalMethod otherwise."""
    return make("evaluator", EVALUATORS, name, **parameters)


__all__ = ["EVALUATORS", "AdaptiveEvaluator", "FixedEvaluator", "estimate", "evaluator_from"]
