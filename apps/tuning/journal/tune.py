"""Everything a tuning child tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from apps.core.content import Stored
from apps.tuning.journal.measured import Measured, finite, of_kind
from apps.tuning.journal.recorder import RunRecorder
from apps.tuning.journal.rows import baseline, measured_whole, own_terms, said, slot_row
from apps.tuning.leases import Claim
from apps.tuning.models import Checkpoint, Operator, Slot, TuningRun
from workers.messages.causes import DUPLICATE, UNBUILT
from workers.messages.events import Event as Told
from workers.messages.orders import WAITED, own_seconds

FIGURES = ("best_seconds", "trials", "failures", "repeated", "slots", "seconds", "last_rule", "last_terms")
COUNTED = ("index", "weight", "configurations", *FIGURES[:6])
"""What the next figures are made of."""
_FIXED = ("key", "weight", "flops", "bytes", "work", "configurations", "sketches")
_SHOWN = ("index", "name", "weight", "flops", "work", "configurations")
_AHEAD = ("gain", "unknown", "seconds")
_OF_SLOT = ("operator", "began", "ended", "trials", "before", "after", "decision", "latency")


class TuneRecorder(RunRecorder):
    """Measurements, slots, figures of operators and of the run, and the last checkpoint."""

    def __init__(self, held: Claim, run: TuningRun) -> None:
        super().__init__(held, run)
        rows = Operator.objects.filter(run=self.run).only("run", *COUNTED)  # each is read for every few events
        self._operators = {operator.index: operator for operator in rows}
        self._touched: set[int] = set()
        self._measured = Measured(self.run)
        self._slots: dict[int, Slot | None] = {}
        self._checkpoint: Any = None
        self._progress = False

    def expect(self, events: Mapping[str, Told]) -> None:
        self._measured.expect(events)
        numbers = [event["slot"] for event in events.values() if event["kind"] == "slot"]
        known = Slot.objects.filter(run=self.run, number__in=numbers) if numbers else Slot.objects.none()
        self._slots = dict.fromkeys(known.values_list("number", flat=True))

    def take(self, event: Told, made: str, archive: Stored | None) -> None:
        clock = finite(event["clock"])
        self.run.clock = max(self.run.clock, clock)
        kind: str = event["kind"]
        payload = self._batch(event, made) if kind == "batch" else self._told(kind, event)
        if payload is not None:
            self.keep(kind, made, clock, payload)
        self._checkpoint = event.get("checkpoint") or self._checkpoint

    def close(self) -> None:
        self._measured.flush()
        Slot.objects.bulk_create(slot for slot in self._slots.values() if slot is not None)
        for index in sorted(self._touched):
            operator = self._operators[index]
            told = set(FIGURES) - operator.get_deferred_fields()
            operator.save(update_fields=told)  # bulk_update takes as long for one as this for thirty
        if self._progress:
            self._held.fenced(fruitless=0)
        if self._checkpoint is not None:
            packed = Checkpoint.packed(self._checkpoint)
            Checkpoint.objects.update_or_create(run=self.run, defaults={"state": packed})
        super().close()

    def _told(self, kind: str, event: Told) -> dict[str, Any] | None:
        handlers: dict[str, Callable[[Told], dict[str, Any] | None]] = {
            "started": self._started,
            "phase": self._phase,
            "operators": self._listed,
            "slot": self._slot,
            "end_to_end": lambda event: measured_whole(self.run, event),
            "baseline": lambda event: baseline(self.run, event),
            "log": said,
            "finished": self._finished,
        }
        return handlers.get(kind, _as_told)(event)

    def _started(self, event: Told) -> dict[str, Any]:
        of_kind(event.get("versions", {}), dict)
        of_kind(event.get("notes", []), list)
        self.run.started_facts = event
        self.run.report = {}  # of the attempt before: what this one does it would not tell
        return _as_told(event)

    def _phase(self, event: Told) -> dict[str, Any]:
        self.run.phase = event["text"]
        return _as_told(event)

    def _finished(self, event: Told) -> dict[str, Any]:
        self.run.finished_reason = "" if event["reason"] == "paused" else event["reason"][:20]
        self.run.report = event.get("report") or {}
        if self.run.finished_reason:
            self._held.fenced(answered=True)  # whatever its worker dies of now
        return {"reason": event["reason"]}

    def _listed(self, event: Told) -> dict[str, Any]:
        """The operators; those known from an earlier attempt keep their figures."""
        rows: list[dict[str, Any]] = []
        for row in event["operators"]:
            of_kind(row["sketches"], list)
            fixed = {name: row[name] for name in _FIXED}
            fixed |= {"name": row["name"][:300], "space": row.get("space", "")[:64], **_later(row)}
            operator, _ = Operator.objects.update_or_create(run=self.run, index=row["index"], defaults=fixed)
            self._operators[operator.index] = operator
            rows.append({name: row[name] for name in _SHOWN} | _later(row) | {"given_up": operator.given_up})
        return {"operators": rows}

    def _batch(self, event: Told, made: str) -> dict[str, Any]:
        points: list[list[Any]] = []
        fresh: set[int] = set()
        again: set[int] = set()
        rows = self._measured.fresh(event, made, self._operators.keys(), self._numbers.next)
        for row in rows:
            operator = self._operators[row.operator]
            if row.cause in UNBUILT:
                operator.repeated += row.cause == DUPLICATE
                fresh.add(row.operator)
                continue
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
        for index in again:
            self._operators[index].best_seconds = self._measured.best(index)
        self._progress = self._progress or bool(rows)
        self.run.latency = latency(self._operators.values())
        spent = {name: finite(seconds) for name, seconds in (event.get("spent") or {}).items()}
        self.run.spent = spent or self.run.spent
        figures = {index: self._operators[index] for index in sorted(fresh)}
        return {
            "latency": self.run.latency,
            "trials": self.run.trials,
            "failures": self.run.failures,
            "spent": self.run.spent,
            "points": points,
            "operators": {str(index): _figures(operator) for index, operator in figures.items()},
        }

    def _slot(self, event: Told) -> dict[str, Any] | None:
        number, index, rule = event["slot"], event["operator"], event["decision"]["rule"][:60]
        if number in self._slots:
            return None
        operator = self._operators[index]
        operator.slots += 1
        waited = finite(event["decision"].get(WAITED, 0.0))
        operator.seconds += own_seconds(event["began"], event["ended"], waited)
        operator.last_rule = rule
        # The chain of a fit is for the operator's page alone: pages of many operators would double.
        terms = {name: value for name, value in event["decision"].items() if name not in ("rule", "chain")}
        if ahead := terms.pop("expected", None):
            self.run.expected = {name: finite(ahead[name]) for name in _AHEAD}
        operator.last_terms = own_terms(terms, index)
        self._touched.add(index)
        self.run.slots_count += 1
        self.run.slots_by_belief += bool(terms.get("decided_by_belief"))
        plain = {name: event[name] for name in _OF_SLOT}
        plain["decision"] = own_terms(event["decision"], index)  # the whole table is in the event, for the log
        seq = self._numbers.last + 1
        slot = self._slots[number] = Slot(run=self.run, seq=seq, number=number, rule=rule, waited=waited, **plain)
        return {
            "slot": slot_row(slot),
            "terms": terms,
            "operator": {"slots": operator.slots, "seconds": operator.seconds},
            "latency": self.run.latency,
            "expected": self.run.expected,
        }


def _figures(operator: Operator) -> dict[str, Any]:
    return {
        "best": operator.best_seconds,
        "trials": operator.trials,
        "failures": operator.failures,
        "given_up": operator.given_up,
    }


def _later(row: dict[str, Any]) -> dict[str, Any]:
    """What an operator of an older run's log does not have."""
    return {
        "known": row.get("known", 0),
        "alike": row.get("alike", 0),
        "knobs": row.get("knobs", []),
        "at_once": max(1, row.get("at_once", 1)),
    }


def _as_told(event: Told) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("kind", "clock", "checkpoint")}


def latency(operators: Iterable[Operator]) -> float | None:
    """Weighted sum of the best times in seconds; None until every operator has one."""
    total = 0.0
    for operator in operators:
        if operator.best_seconds is None:
            return None
        total += operator.weight * operator.best_seconds
    return total or None
