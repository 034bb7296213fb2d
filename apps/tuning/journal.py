"""Events of a child, kept: one fenced transaction a batch, every measurement and event once.

The fenced UPDATE comes first, then the run's counter is locked, then everything is read that is added to: two
writers of one run (a tuning and an artifact's compilation) wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError, transaction

from apps.catalog.models import Network, Target
from apps.catalog.services import keep_converted
from apps.core import clock
from apps.core.content import Stored
from apps.core.errors import Refused
from apps.core.ids import digest
from apps.tuning import doorbell
from apps.tuning.files import keep_archive
from apps.tuning.leases import Claim
from apps.tuning.models import Artifact, Checkpoint, Event, Job, Measurement, Operator, Slot, TuningRun
from apps.tuning.rounds import settled
from apps.tuning.transitions import Numbers
from workers.messages import Event as Told

MALFORMED = (KeyError, TypeError, ValueError, AttributeError, DataError, IntegrityError)


def write(held: Claim, events: Sequence[Told]) -> None:
    """Keeps a batch; what of it is there already is passed over. Raises LeaseLost, or Refused for what is no
    event: then nothing of the batch is kept.
    """
    try:
        archives = _archives(held, events)
        with transaction.atomic():
            held.fenced()
            job = Job.objects.get(pk=held.job_id)
            if held.task == Job.Task.TUNE:
                recorder: Recorder = TuneRecorder(held, TuningRun.objects.only("pk", "job_id").get(job=job))
            elif held.task in (Job.Task.COMPILE, Job.Task.BASELINE):
                assert job.run is not None
                recorder = BesideRecorder(held, job.run)
            else:
                recorder = Answers(held, job)
            for number, event in enumerate(events):
                recorder.record(event, archives.get(number))
            recorder.close()
    except MALFORMED as error:
        raise Refused(
            "event", f"it cannot be kept ({type(error).__name__}: {error})", "report it with the log"
        ) from error


def _archives(held: Claim, events: Sequence[Told]) -> dict[int, Stored]:
    """The file of the first answer, by its place in the batch; of a child that answers without end no other is copied.

    Before the transaction: a large file must not hold a lock on the database.
    """
    number = next((i for i, event in enumerate(events) if _answers(held, event)), None)
    if number is None or not held.held().exists():
        return {}
    if held.task == Job.Task.COMPILE:
        if not events[number].get("archive") or Artifact.objects.filter(job_id=held.job_id).exists():
            return {}
        return {number: keep_archive(events[number]["archive"], held.work_dir, Path(settings.DATA_DIR) / "artifacts")}
    network = Network.objects.filter(jobs=held.job_id, state=Network.State.INSPECTING).first()
    if network is None or not network.unconverted:
        return {}
    folder, limit = Path(settings.DATA_DIR) / "networks", settings.UPLOAD_LIMIT
    return {number: keep_archive(events[number]["onnx"], held.work_dir, folder, limit, ".onnx")}


def _answers(held: Claim, event: Told) -> bool:
    if held.task not in (Job.Task.COMPILE, Job.Task.CONVERT) or event["kind"] != "result":
        return False
    return bool(event["task"] == held.task)


class Recorder:
    """Records one batch of one job; `record` in order, then `close`."""

    def record(self, event: Told, archive: Stored | None) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Writes what was gathered."""


class Answers(Recorder):
    """Jobs without viewers: only their result counts."""

    def __init__(self, held: Claim, job: Job) -> None:
        self._held, self._job = held, job

    def record(self, event: Told, archive: Stored | None) -> None:
        # Code of an uploaded file may speak for a conversion: only what was asked for is an answer.
        if event["kind"] != "result" or event["task"] != self._job.task:
            return
        if event["task"] == Job.Task.INSPECT and self._job.network_id:
            self._inspected(event["inspection"])
        elif event["task"] == Job.Task.CONVERT and self._job.network is not None and archive is not None:
            keep_converted(self._job.network, archive)
        elif event["task"] == Job.Task.HARDWARE and self._job.target_id:
            self._measured(event)
        self._held.fenced(answered=True)

    def _inspected(self, inspection: dict[str, Any]) -> None:
        dynamic = inspection["dynamic"]
        shapes = {} if dynamic else {port["name"]: port["shape"] for port in inspection["inputs"]}
        known = {name: shape for name, shape in shapes.items() if shape is not None}
        Network.objects.filter(jobs=self._job).update(
            state=Network.State.READY, inspection=inspection, shapes=known, error="", next_step=""
        )

    def _measured(self, event: Told) -> None:
        hardware, peak = event["hardware"], event["peak"] or {}
        ceilings = {"peak_flops": peak["flops"], "bandwidth": peak["bandwidth"]} if peak else {}
        Target.objects.filter(jobs=self._job).update(
            state=Target.State.READY,
            name=str(hardware["name"])[:200],
            hardware=hardware,
            tvm=hardware["target"],
            threads=hardware["cores"],
            versions=event["versions"],
            measured_at=clock.now(),
            error="",
            next_step="",
            **ceilings,
        )


class RunRecorder(Recorder):
    """Numbers, events and figures of a run. `run` is read under the lock of its counter."""

    def __init__(self, held: Claim, run: TuningRun) -> None:
        self._held = held
        self._numbers = Numbers(run.job_id)
        self._first = self._numbers.last
        self.run = TuningRun.objects.get(pk=run.pk)
        self._events: list[Event] = []
        self._digests: set[str] = set()

    def is_new(self, event: Told) -> str | None:
        """The event's digest if it was never recorded under this fence."""
        plain = {name: value for name, value in event.items() if name != "checkpoint"}
        made = digest(str(self._held.job_id), self._held.fence, plain)
        if made in self._digests or Event.objects.filter(run=self.run, digest=made).exists():
            return None
        self._digests.add(made)
        return made

    def next(self) -> int:
        return self._numbers.next()

    def keep(self, kind: str, made: str, clock: float, payload: dict[str, Any]) -> int:
        """Gives the event its number; call it after those of its measurements."""
        seq = self.next()
        payload = {"kind": kind, "seq": seq, "clock": clock, **payload}
        self._events.append(Event(run=self.run, seq=seq, kind=kind, clock=clock, payload=payload, digest=made))
        return seq

    def close(self) -> None:
        if self._numbers.last == self._first:
            return
        Event.objects.bulk_create(self._events)
        self._numbers.save()
        self.run.save()
        doorbell.ring_after_commit(self.run.pk, self._numbers.last)


class TuneRecorder(RunRecorder):
    """Everything a tuning child tells."""

    def __init__(self, held: Claim, run: TuningRun) -> None:
        super().__init__(held, run)
        self._operators = {operator.index: operator for operator in Operator.objects.filter(run=self.run)}
        self._touched: set[int] = set()
        self._checkpoint: Any = None
        self._progress = False

    def record(self, event: Told, archive: Stored | None) -> None:
        made = self.is_new(event)
        if made is None:
            return
        clock = float(event["clock"])
        self.run.clock = max(self.run.clock, clock)
        kind: str = event["kind"]
        payload = self._HANDLERS.get(kind, TuneRecorder._as_told)(self, event)
        if payload is not None:
            self.keep(kind, made, clock, payload)
        self._checkpoint = event.get("checkpoint") or self._checkpoint

    def close(self) -> None:
        figures = ("best_seconds", "trials", "failures", "slots", "seconds", "last_rule", "last_terms")
        Operator.objects.bulk_update([self._operators[index] for index in sorted(self._touched)], figures)
        if self._progress:
            self._held.fenced(fruitless=0)
        if self._checkpoint is not None:
            values = {"seq": self._numbers.last, "state": Checkpoint.packed(self._checkpoint)}
            Checkpoint.objects.update_or_create(run=self.run, defaults=values)
        super().close()

    def _as_told(self, event: Told) -> dict[str, Any]:
        return {name: value for name, value in event.items() if name not in ("kind", "clock", "checkpoint")}

    def _started(self, event: Told) -> dict[str, Any]:
        self.run.started_facts = event
        return self._as_told(event)

    def _phase(self, event: Told) -> dict[str, Any]:
        self.run.phase = event["text"]
        return self._as_told(event)

    def _finished(self, event: Told) -> dict[str, Any]:
        self.run.finished_reason = "" if event["reason"] == "paused" else event["reason"][:20]
        self.run.report = event.get("report") or {}
        return {"reason": event["reason"]}

    def _end_to_end(self, event: Told) -> dict[str, Any]:
        return _measured_whole(self.run, event)

    def _baseline(self, event: Told) -> dict[str, Any]:
        return _baseline(self.run, event)

    def _listed(self, event: Told) -> dict[str, Any]:
        """The operators; those known from an earlier attempt keep their figures."""
        for row in event["operators"]:
            fixed = {
                name: row[name] for name in ("key", "weight", "flops", "bytes", "work", "configurations", "sketches")
            }
            fixed |= {"name": row["name"][:300], "space": row.get("space", "")[:64], "known": row.get("known", 0)}
            operator, _ = Operator.objects.update_or_create(run=self.run, index=row["index"], defaults=fixed)
            self._operators[operator.index] = operator
        shown = ("index", "name", "weight", "flops", "work", "configurations")
        rows = [{name: row[name] for name in shown} | {"known": row.get("known", 0)} for row in event["operators"]]
        return {"operators": rows}

    def _batch(self, event: Told) -> dict[str, Any]:
        points: list[list[Any]] = []
        fresh: set[int] = set()
        again: set[int] = set()
        rows = self._fresh(event)
        for row in rows:
            if row.cause == "duplicate":
                continue
            operator = self._operators[row.operator]
            operator.trials += 1
            self.run.trials += 1
            if row.seconds is None:
                operator.failures += 1
                self.run.failures += 1
            elif row.round > 0:
                again.add(row.operator)
            elif operator.best_seconds is None or row.seconds < operator.best_seconds:
                operator.best_seconds = row.seconds
            fresh.add(row.operator)
            points.append([row.clock, row.operator, row.seconds, row.cause])
        self._touched |= fresh
        Measurement.objects.bulk_create(rows)
        for index in again:
            self._operators[index].best_seconds = settled(self.run).filter(operator=index)[0].seconds
        self._progress = self._progress or bool(rows)
        self.run.latency = latency(self._operators.values())
        self.run.spent = event.get("spent") or self.run.spent
        figures = {index: self._operators[index] for index in sorted(fresh)}
        return {
            "latency": self.run.latency,
            "trials": self.run.trials,
            "failures": self.run.failures,
            "spent": self.run.spent,
            "points": points,
            "operators": {
                str(index): {"best": operator.best_seconds, "trials": operator.trials, "failures": operator.failures}
                for index, operator in figures.items()
            },
        }

    def _fresh(self, event: Told) -> list[Measurement]:
        """Rows for what was not measured before; the first of equals counts, within the batch too."""
        told = {_identity(measurement): measurement for measurement in reversed(event["measurements"])}
        known = set(
            Measurement.objects.filter(run=self.run, configuration__in={key[1] for key in told}).values_list(
                "operator", "configuration", "round"
            )
        )
        plain = (
            "operator",
            "round",
            "sketch",
            "choices",
            "seconds",
            "spread",
            "runs",
            "build_seconds",
            "measure_seconds",
        )
        rows = []
        for key, measurement in reversed(told.items()):
            if key in known:
                continue
            if measurement["operator"] not in self._operators:
                raise ValueError(f"operator {measurement['operator']} was never named")
            rows.append(
                Measurement(
                    run=self.run,
                    seq=self.next(),
                    configuration=key[1],
                    identity=measurement["identity"] or "",
                    asked=measurement.get("asked"),
                    stopped=measurement["stopped"][:20],
                    cause=measurement["cause"][:20],
                    error=measurement["error"][:4000],
                    origin=measurement["origin"][:40],
                    clock=float(event["clock"]),
                    slot=event["slot"],
                    **{name: measurement[name] for name in plain},
                )
            )
        return rows

    def _slot(self, event: Told) -> dict[str, Any] | None:
        number, index, rule = event["slot"], event["operator"], event["decision"]["rule"][:60]
        if Slot.objects.filter(run=self.run, number=number).exists():
            return None
        operator = self._operators[index]
        operator.slots += 1
        operator.seconds += event["ended"] - event["began"]
        operator.last_rule = rule
        operator.last_terms = terms = {name: value for name, value in event["decision"].items() if name != "rule"}
        self._touched.add(index)
        self.run.slots_count += 1
        self.run.slots_by_belief += bool(terms.get("decided_by_belief"))
        plain = ("operator", "began", "ended", "trials", "before", "after", "decision", "latency")
        row = Slot(run=self.run, seq=self._numbers.last + 1, number=number, rule=rule, **{n: event[n] for n in plain})
        row.save(force_insert=True)
        return {
            "slot": slot_row(row),
            "terms": terms,
            "operator": {"slots": operator.slots, "seconds": operator.seconds},
            "latency": self.run.latency,
        }

    _HANDLERS = {  # noqa: RUF012  (never changed)
        "started": _started,
        "phase": _phase,
        "operators": _listed,
        "batch": _batch,
        "slot": _slot,
        "end_to_end": _end_to_end,
        "baseline": _baseline,
        "finished": _finished,
    }


class BesideRecorder(RunRecorder):
    """What is done beside a run, its artifact's compilation and its baselines, told among its events on its clock."""

    def record(self, event: Told, archive: Stored | None) -> None:
        kind = event["kind"]
        if kind not in ("phase", "log", "end_to_end", "baseline", "result"):
            return
        made = self.is_new(event)
        if made is None:
            return
        told = {**event, "clock": self.run.clock}
        if kind == "end_to_end":
            payload = _measured_whole(self.run, told)
        elif kind == "baseline":
            payload = _baseline(self.run, told)
        elif kind == "result" and self._held.task == Job.Task.BASELINE:
            self._held.fenced(answered=True)
            return
        elif kind == "result":
            kind, payload = "artifact", self._artifact(event, archive)
        else:
            kind, payload = "log", {"level": event.get("level", "info"), "text": event["text"]}
        self.keep(kind, made, self.run.clock, payload)

    def _artifact(self, event: Told, archive: Stored | None) -> dict[str, Any]:
        passed = bool(event["passed"])
        if passed and archive is None:
            raise ValueError("a result that passed has no archive")
        artifact = Artifact.objects.create(
            run=self.run,
            job_id=self._held.job_id,
            state=Artifact.State.READY if passed else Artifact.State.REJECTED,
            sha256=archive.sha256 if passed and archive else "",
            size=archive.size if passed and archive else 0,
            verdict=event["verdict"],
            latency=event["latency"],
            onnxruntime=event["onnxruntime"],
            ratio=event["ratio"],
        )
        self._held.fenced(answered=True)
        return artifact_row(artifact)


def _identity(measurement: dict[str, Any]) -> tuple[int, str, int]:
    asked = measurement.get("asked", measurement["choices"])
    return measurement["operator"], digest(measurement["sketch"], asked), measurement["round"]


def _measured_whole(run: TuningRun, event: Told) -> dict[str, Any]:
    names = ("clock", "seconds", "spread", "runs", "latency", "verified", "error")
    point = {name: event.get(name) for name in names}
    run.end_to_end = [*run.end_to_end, point]
    return {name: value for name, value in point.items() if name != "clock"}


def _baseline(run: TuningRun, event: Told) -> dict[str, Any]:
    line = {name: event[name] for name in ("name", "seconds", "spread", "threads")}
    run.baselines = [*(kept for kept in run.baselines if kept["name"] != line["name"]), line]
    return line


def latency(operators: Any) -> float | None:
    """Weighted sum of the best times in seconds; None until every operator has one."""
    total = 0.0
    for operator in operators:
        if operator.best_seconds is None:
            return None
        total += operator.weight * operator.best_seconds
    return total or None


def slot_row(slot: Slot) -> list[Any]:
    """As the page draws it."""
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
