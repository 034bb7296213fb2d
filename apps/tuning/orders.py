"""What a child is told to do, made from the database: the orders of workers.child, as workers.headless makes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.tuning.known import known_records
from apps.tuning.models import Checkpoint, Job, TuningRun
from apps.tuning.paging import by_number
from apps.tuning.rounds import believed
from apps.tuning.states import HELD
from workers.messages.known import encode_known
from workers.messages.orders import SLOT_TOLD, best_of, compile_order, latency_of, slot_taken_up, tune_order
from workers.messages.spec import AUTO
from workers.messages.tuning_log import FILE, encode_row, measurement_row

TOLD = (
    "operator", "sketch", "choices", "identity", "round", "seconds", "spread", "runs", "stopped", "cause", "error",
    "build_seconds", "measure_seconds", "origin", "asked",
)  # fmt: skip
HEAD_START = 10.0
"""Seconds that a run has the cores for itself before its network is compiled untuned, which held off its first figures by 14 to
22 s."""


def order(job_id: Any, task: str, work_dir: Path) -> dict[str, Any]:
    """The order of one job; makes its directory, which is private."""
    for folder in (work_dir.parent, work_dir):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
    if task == Job.Task.CONVERT:
        assert job.network is not None
        source, allowed = str(job.network.source_path), settings.ALLOW_TORCH_EXPORT
        return {"task": "convert", "source": source, "allowed": allowed, "work_dir": str(work_dir)}
    assert job.target is not None
    device = job.target.tried
    return {"task": "hardware", "peak": True, "work_dir": str(work_dir), "device": device and device.to_json()}


def _tune(run: TuningRun, work_dir: Path) -> dict[str, Any]:
    checkpoint = Checkpoint.objects.filter(run=run).first()
    known = known_records(run)
    return tune_order(
        run.spec(),
        work_dir,
        checkpoint=checkpoint.unpacked() if checkpoint else None,
        measurements=[
            {**told(row), "slot": slot} for _, slot, *row in by_number(run.measurements.all(), "slot", *TOLD)
        ],
        slots=[slot_taken_up(*slot) for slot in run.slots.order_by("number").values_list(*SLOT_TOLD).iterator(5000)],
        spent=run.spent,
        clock=run.clock,
        operators=run.operators.order_by("index").values("key", "space"),
        layout=_layout(run),
        known=_written(work_dir / "known.json", [encode_known(known)]) if known else None,
        device=run.target.device,
        machine=str(run.hardware.get("name", "")),
    )


def _compile(run: TuningRun, work_dir: Path) -> dict[str, Any]:
    operators, chosen = list(run.operators.values("index", "weight")), best(run)
    # What is told of the library is their sum: a run that goes on has a better one soon.
    latency = latency_of(chosen, operators) if len(chosen) == len(operators) else None
    log = _written(work_dir / FILE, map(encode_row, tuning_log(run)))
    device, machine = run.target.device, str(run.hardware.get("name", ""))
    return compile_order(
        run.spec(), work_dir, run.network.name, _layout(run), chosen, latency, log, run.clock, device, machine
    )


def _layout(run: TuningRun) -> str:
    """What its attempts began with; AUTO before the first."""
    return str(run.started_facts.get("layout", AUTO))


def _written(path: Path, lines: Iterable[str]) -> Path:
    """A new file of ours: an earlier child of this job may have left a link of that name."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    return path


def _baseline(run: TuningRun, work_dir: Path) -> dict[str, Any]:
    others = Job.objects.filter(state__in=HELD, task=Job.Task.TUNE, target=run.target_id).exclude(owner=run.owner_id)
    return {
        "task": "baseline",
        "spec": run.spec(),
        "work_dir": str(work_dir),
        "name": run.network.name,
        "clock": run.clock,
        "head_start": max(0.0, HEAD_START - run.clock),
        "beside": others.exists(),
    }


def best(run: TuningRun) -> dict[str, dict[str, Any]]:
    """The fastest configuration of each operator, by its index as text."""
    operators = list(run.operators.values("index", "key", "space"))
    columns = ("operator", "round", "sketch", "choices", "seconds")
    rows = (believed(run, operator["index"]).values(*columns).first() for operator in operators)
    return best_of([row for row in rows if row is not None], operators)


def told(row: Sequence[Any]) -> dict[str, Any]:
    """A measurement, read by the names in TOLD, as the child told it."""
    plain = dict(zip(TOLD, row, strict=True))
    if plain["asked"] is None:
        del plain["asked"]
    return plain


def tuning_log(run: TuningRun) -> Iterator[dict[str, Any]]:
    """Every event and every measurement of a run in the order of their numbers, up to the last one now.

    Both end at one number: while a run goes on, an event may be kept after the last of the measurements was read.
    """
    last = Job.objects.values_list("last_seq", flat=True).get(pk=run.job_id)
    measurements = by_number(run.measurements.filter(seq__lte=last), "clock", "slot", *TOLD)
    waiting = next(measurements, None)
    for seq, payload in by_number(run.events.filter(seq__lte=last), "payload"):
        while waiting is not None and waiting[0] < seq:
            number, clock, slot, *row = waiting
            yield {"seq": number, **measurement_row(told(row), clock, slot)}
            waiting = next(measurements, None)
        yield payload
