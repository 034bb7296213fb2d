"""What a child is told to do, made from the database: the orders of workers.child, as workers.headless makes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.tuning.models import Checkpoint, Event, Job, Measurement, TuningRun


def order(job_id: Any, task: str, work_dir: Path) -> dict[str, Any]:
    """The order of one job; makes its directory, which is private."""
    work_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    job = Job.objects.select_related("network", "target", "run").get(pk=job_id)
    if task == Job.Task.TUNE:
        return _tune(TuningRun.objects.select_related("network", "target").get(job=job), work_dir)
    if task == Job.Task.COMPILE:
        assert job.run is not None
        return _compile(job.run, work_dir)
    if task == Job.Task.BASELINE:
        assert job.run is not None
        return _baseline(job.run, work_dir)
    if task == Job.Task.INSPECT:
        assert job.network is not None
        return {"task": "inspect", "network": str(job.network.path), "work_dir": str(work_dir)}
    return {"task": "hardware", "peak": True, "work_dir": str(work_dir)}


def _tune(run: TuningRun, work_dir: Path) -> dict[str, Any]:
    checkpoint = Checkpoint.objects.filter(run=run).first()
    return {
        "task": "tune",
        "spec": run.spec(),
        "work_dir": str(work_dir),
        "checkpoint": checkpoint.unpacked() if checkpoint else None,
        "measurements": [told(row) for row in run.measurements.order_by("seq").iterator(5000)],
        "slots": [
            [slot.operator, slot.ended - slot.began, slot.decision]
            for slot in run.slots.order_by("number").iterator(5000)
        ],
        "spent": run.spent,
        "clock": run.clock,
        "keys": list(run.operators.order_by("index").values_list("key", flat=True)),
    }


def _compile(run: TuningRun, work_dir: Path) -> dict[str, Any]:
    layout = run.started_facts.get("layout", "auto")
    log = work_dir / "tuning_log.jsonl"
    # An earlier child of this job may have left a link there: what is written must be a new file of ours.
    log.unlink(missing_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for line in tuning_log(run):
            file.write(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n")
    return {
        "task": "compile",
        "spec": run.spec(),
        "work_dir": str(work_dir),
        "name": run.network.name,
        "layout": "auto" if layout == "none" else layout,
        "best": best(run),
        "latency": run.latency,
        "log": str(log),
        "clock": run.clock,
    }


def _baseline(run: TuningRun, work_dir: Path) -> dict[str, Any]:
    return {
        "task": "baseline",
        "spec": run.spec(),
        "work_dir": str(work_dir),
        "name": run.network.name,
        "clock": run.clock,
    }


def best(run: TuningRun) -> dict[str, dict[str, Any]]:
    """The fastest configuration of each operator, by its index as text."""
    found: dict[str, dict[str, Any]] = {}
    for operator in run.operators.all():
        rows = run.measurements.filter(operator=operator.index, seconds__isnull=False).exclude(cause="duplicate")
        row = rows.order_by("seconds", "seq").first()
        if row is not None:
            found[str(operator.index)] = {
                "key": operator.key,
                "sketch": row.sketch,
                "choices": row.choices,
                "seconds": row.seconds,
            }
    return found


def told(row: Measurement) -> dict[str, Any]:
    """A measurement as the child told it."""
    names = (
        "operator", "sketch", "choices", "identity", "round", "seconds", "spread", "runs", "stopped", "cause", "error",
        "build_seconds", "measure_seconds", "origin",
    )  # fmt: skip
    plain = {name: getattr(row, name) for name in names}
    return plain if row.asked is None else {**plain, "asked": row.asked}


def tuning_log(run: TuningRun) -> Iterator[dict[str, Any]]:
    """Every event and every measurement of a run in the order of their numbers."""
    measurements = run.measurements.order_by("seq").iterator(2000)
    waiting = next(measurements, None)
    for event in Event.objects.filter(run=run).order_by("seq").iterator(2000):
        while waiting is not None and waiting.seq < event.seq:
            yield {
                "kind": "measurement",
                "seq": waiting.seq,
                "clock": waiting.clock,
                "slot": waiting.slot,
                **told(waiting),
            }
            waiting = next(measurements, None)
        yield event.payload
