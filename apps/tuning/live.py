"""What a page draws: everything up to a number once, then the events after it.

Every figure in a frame is absolute, so frames that are older than a snapshot do no harm: it may be drawn from rows that
are newer than its `seq`, and ends up the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, TypeVar

from apps.tuning.journal import artifact_row, slot_row
from apps.tuning.models import Event, Job, Measurement, Operator, TuningRun

CURVE, SLOTS, POINTS, SPARK, LOG = 5000, 5000, 3000, 40, 200

_T = TypeVar("_T")


def snapshot(run: TuningRun) -> dict[str, Any]:
    """The whole run as JSON, thinned to what a chart can show."""
    for _ in range(3):
        seq = Job.objects.values_list("last_seq", flat=True).get(tuning_run=run)
        drawn = _drawn(run, seq)
        if Job.objects.values_list("last_seq", flat=True).get(tuning_run=run) == seq:
            break
    return drawn


def frames(run: TuningRun, after_seq: int, limit: int = 200) -> tuple[list[dict[str, Any]], int]:
    """Up to `limit` events after a number, oldest first, and the number of the last one (`after_seq` without any)."""
    rows = Event.objects.filter(run=run, seq__gt=after_seq).order_by("seq")
    events = list(rows.values_list("payload", flat=True)[:limit])
    return events, events[-1]["seq"] if events else after_seq


def _drawn(run: TuningRun, seq: int) -> dict[str, Any]:
    run = TuningRun.objects.select_related("job", "network", "target").get(pk=run.pk)
    operators = list(run.operators.all())
    measured = Measurement.objects.filter(run=run, seq__lte=seq).exclude(cause="duplicate").order_by("seq")
    rows = list(measured.values_list("clock", "operator", "seconds", "cause", "configuration", "round"))
    history = _History(operators)
    for clock, batch in groupby(rows, key=lambda row: row[0]):
        history.add(clock, [(row[1], row[2], row[4], row[5]) for row in batch])
    slots = list(run.slots.filter(seq__lte=seq).order_by("-number")[:SLOTS])
    artifact = run.artifacts.first()
    return {
        "seq": seq,
        "run": _facts(run),
        "operators": [_operator(operator, history.sparks[operator.index]) for operator in operators],
        "curve": _with_now(thinned(history.curve, CURVE - 1), run),
        "slots": [slot_row(slot) for slot in reversed(slots)],
        "points": _points([row[:4] for row in rows]),
        "end_to_end": run.end_to_end,
        "baselines": run.baselines,
        "spent": run.spent,
        "log": _log(run, seq),
        "artifact": artifact_row(artifact) if artifact else None,
    }


class _History:
    """The best so far after each batch: of the network (`curve`) and of every operator (`sparks`)."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._weights = {operator.index: operator.weight for operator in operators}
        self._best: dict[int, float] = {}
        self._figures: dict[int, dict[str, float]] = {index: {} for index in self._weights}
        self._trials = dict.fromkeys(self._weights, 0)
        self.curve: list[list[float]] = []
        self.sparks: dict[int, list[list[float]]] = {index: [] for index in self._weights}

    def add(self, clock: float, batch: Iterable[tuple[int, float | None, str, int]]) -> None:
        """(operator, seconds, configuration, round); a later round of a configuration replaces its figure."""
        changed = set()
        for index, seconds, configuration, round_ in batch:
            self._trials[index] += 1
            if seconds is None:
                continue
            figures, before = self._figures[index], self._best.get(index, float("inf"))
            figures[configuration] = seconds
            best = min(figures.values()) if round_ else min(before, seconds)
            if best != before:
                self._best[index] = best
                changed.add(index)
        for index in changed:
            self.sparks[index].append([self._trials[index], self._best[index]])
        if changed and len(self._best) == len(self._weights):
            # In the operators' order, as the journal adds: the same sum to the last bit.
            total = 0.0
            for index, weight in self._weights.items():
                total += weight * self._best[index]
            self.curve.append([clock, total])


def _facts(run: TuningRun) -> dict[str, Any]:
    facts = run.started_facts
    return {
        "id": str(run.pk),
        "state": run.job.state,
        "wanted": run.job.wanted,
        "attempt": run.job.attempt,
        "network": {"id": str(run.network_id), "name": run.network.name},
        "target": {"id": str(run.target_id), "name": run.target.name},
        "method": run.method,
        "parts": run.parts,
        "seed": run.seed,
        "layout": facts.get("layout", run.layout),
        "phase": run.phase,
        "clock": run.clock,
        "budget": {"seconds": run.budget_seconds, "trials": run.budget_trials, "latency": run.budget_latency},
        "latency": run.latency,
        "trials": run.trials,
        "failures": run.failures,
        "eta_seconds": eta(run),
        "finished_reason": run.finished_reason,
        "error": run.job.error,
        "next_step": run.job.next_step,
        "threads": facts.get("threads", run.machine["threads"]),
        "versions": facts.get("versions", run.target.versions),
        "peak_flops": run.machine["peak_flops"],
        "slots_count": run.slots_count,
        "slots_by_belief": run.slots_by_belief,
        "report": run.report,
    }


def eta(run: TuningRun) -> float | None:
    """Seconds of tuning until the first limit of time or trials at the pace so far; None without one."""
    left = []
    if run.budget_seconds is not None:
        left.append(run.budget_seconds - run.clock)
    if run.budget_trials is not None and run.trials:
        left.append((run.budget_trials - run.trials) * run.clock / run.trials)
    return max(0.0, min(left)) if left else None


def _operator(operator: Operator, spark: list[list[float]]) -> dict[str, Any]:
    return {
        "index": operator.index,
        "name": operator.name,
        "weight": operator.weight,
        "flops": operator.flops,
        "work": operator.work,
        "configurations": operator.configurations,
        "known": operator.known,
        "best": operator.best_seconds,
        "trials": operator.trials,
        "failures": operator.failures,
        "slots": operator.slots,
        "seconds": operator.seconds,
        "rule": operator.last_rule,
        "terms": operator.last_terms,
        "spark": thinned(spark, SPARK),
    }


def _with_now(curve: list[list[float]], run: TuningRun) -> list[list[float]]:
    """The curve goes on to the present."""
    if curve and run.latency is not None and run.clock > curve[-1][0]:
        return [*curve, [run.clock, run.latency]]
    return curve


def _points(rows: Sequence[tuple[float, int, float | None, str]]) -> list[list[Any]]:
    """Every improvement of an operator is kept; of the rest an even choice."""
    if len(rows) <= POINTS:
        return [list(row) for row in rows]
    best: dict[int, float] = {}
    better, rest = [], []
    for number, (_, operator, seconds, _cause) in enumerate(rows):
        if seconds is not None and seconds < best.get(operator, float("inf")):
            best[operator] = seconds
            better.append(number)
        else:
            rest.append(number)
    better = thinned(better, POINTS // 2)
    kept = sorted([*better, *thinned(rest, POINTS - len(better))])
    return [list(rows[number]) for number in kept]


def _log(run: TuningRun, seq: int) -> list[dict[str, Any]]:
    rows = Event.objects.filter(run=run, kind="log", seq__lte=seq).order_by("-seq")
    told = reversed(rows.values_list("payload", flat=True)[:LOG])
    return [{name: line[name] for name in ("seq", "clock", "level", "text")} for line in told]


def thinned(rows: Sequence[_T], most: int) -> list[_T]:
    """At most `most` of them, evenly chosen, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    if most < 2:
        return list(rows[-most:]) if most else []
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]
