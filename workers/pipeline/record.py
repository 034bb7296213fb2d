"""Outcomes as measurements of an event, and back, for a run that goes on after a crash or a pause."""

from __future__ import annotations

from typing import Any

from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration

Measurement = dict[str, Any]


def measurement_of(outcome: Outcome) -> Measurement:
    """An outcome as JSON. `asked` is kept only where TVM made something else of the configuration."""
    candidate, made = outcome.candidate, outcome.configuration
    measurement: Measurement = {
        "operator": candidate.operator,
        "sketch": made.sketch,
        "choices": list(made.choices),
        "identity": outcome.identity,
        "round": candidate.round,
        "seconds": outcome.seconds,
        "spread": outcome.spread,
        "runs": outcome.runs,
        "stopped": outcome.stopped,
        "cause": outcome.cause,
        "error": outcome.error,
        "build_seconds": outcome.build_seconds,
        "measure_seconds": outcome.measure_seconds,
        "origin": candidate.origin,
    }
    if candidate.configuration != made:
        measurement["asked"] = list(candidate.configuration.choices)
    return measurement


def outcome_of(measurement: Measurement) -> Outcome:
    """Inverse of `measurement_of`."""
    made = Configuration(measurement["sketch"], tuple(measurement["choices"]))
    asked = Configuration(made.sketch, tuple(measurement["asked"])) if "asked" in measurement else made
    candidate = Candidate(measurement["operator"], asked, measurement["origin"], measurement["round"])
    fields = ("identity", "seconds", "spread", "runs", "stopped", "cause", "error", "build_seconds", "measure_seconds")
    return Outcome(candidate, made, **{name: measurement[name] for name in fields})
