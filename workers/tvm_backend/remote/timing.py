"""Whether a device says of a program what one could."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workers.engine.evaluator.estimate import KEPT_RUNS
from workers.messages.effects import ENDS
from workers.tvm_backend.remote.line import DeviceRefused

LONGEST, MOST_RUNS = 3600.0, 1 << 20
"""Seconds of anything, and runs: an order is over long before."""
FIGURES = ("seconds", "spread", "taken", "rested", "waited")


def check_timing(answer: Mapping[str, Any]) -> None:
    """Raises DeviceRefused for an answer to "run" that no `Timer` gives: it goes into a run's figures, rows and report."""
    if not _plausible(answer):
        raise DeviceRefused("it says of a program's time what no machine would", "look at what listens there")


def _plausible(answer: Mapping[str, Any]) -> bool:
    try:
        if "seconds" not in answer:  # it failed
            return _number(answer.get("taken", 0.0))
        return (
            all(_number(answer[name]) for name in FIGURES)
            and answer["seconds"] > 0
            and type(answer["runs"]) is int
            and 0 < answer["runs"] <= MOST_RUNS
            and answer["stopped"] in ENDS
            and len(answer["times"]) <= KEPT_RUNS
            and all(map(_number, answer["times"]))
        )
    except (KeyError, TypeError):
        return False


def _number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= LONGEST
