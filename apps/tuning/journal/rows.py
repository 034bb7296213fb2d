"""Rows as the page draws them, and figures that a run and what is done beside it tell alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.tuning.journal.measured import finite, text
from apps.tuning.models import Artifact, Slot, TuningRun
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.events import Event as Told


def own_terms(terms: Any, operator: int) -> Any:
    """A decision's terms, and of tables of every operator by its index only this one's entry: pages and rows of many operators
    would hold the square of them."""
    if not isinstance(terms, dict):
        return terms
    own = str(operator)
    return {
        name: {index: value[index] for index in value if index == own} if _of_all(value) else value
        for name, value in terms.items()
    }


def _of_all(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(index.isdigit() for index in value)


def slot_row(slot: Slot) -> list[Any]:
    """As the page draws it; its columns are told in apps.tuning.live."""
    return [slot.number, slot.operator, slot.began, slot.ended, slot.before, slot.after, slot.trials, slot.rule]


def artifact_row(artifact: Artifact) -> dict[str, Any]:
    """As the page shows it."""
    return {
        "id": str(artifact.pk),
        "state": artifact.state,
        "size": artifact.size,
        "sha256": artifact.sha256,
        "verdict": artifact.verdict,
        "latency": artifact.latency,
        "onnxruntime": artifact.onnxruntime,
        "ratio": artifact.ratio,
    }


def said(event: Told) -> dict[str, Any]:
    """A line of the log. KeyError or TypeError for one without text."""
    return {"level": text(event.get("level", "info"), 20), "text": text(event["text"], 4000)}


def measured_whole(run: TuningRun, event: Told) -> dict[str, Any]:
    """The compiled network's latency, added to the run's."""
    names = ("clock", "seconds", "spread", "runs", "latency", "verified", "error")
    point = {name: event.get(name) for name in names}
    point |= {name: finite(point[name]) for name in ("seconds", "spread", "latency") if point[name] is not None}
    run.end_to_end = [*run.end_to_end, point]
    return {name: value for name, value in point.items() if name != "clock"}


def baseline(run: TuningRun, event: Told) -> dict[str, Any]:
    """A line to compare with; a later one of the same name takes its place."""
    line = {"name": text(event["name"], 60), "threads": int(event["threads"])}
    line |= {name: finite(event[name]) for name in ("seconds", "spread")}
    run.baselines = ordered(({kept["name"]: kept for kept in run.baselines} | {line["name"]: line}).values())
    return line


def ordered(baselines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """ONNX Runtime first, the others as they came."""
    return sorted(baselines, key=lambda line: bool(line["name"] != ONNX_RUNTIME))
