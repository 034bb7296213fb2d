"""What a page draws: everything up to a number once, then the events after it.

Every figure in a frame is absolute, so frames that are older than a snapshot do no harm: it may be drawn from rows that
are newer than its `seq`, and ends up the same.

A slot is [number, operator, began, ended, before, after, trials, rule]: began and ended on the clock, before and after what the
operator's best took (s; null: nothing had run), trials its own, rule why it was chosen.
A point is [clock, operator, seconds | null, cause]: of one configuration, whose cause is "" where it ran.

A snapshot is what `_drawn` makes: `curve` of [clock, latency], `slots` of slots, `points` of points, `log` of events, and each
operator's `spark` of [trials, best].

Every event has `kind`, `clock` and `seq`, its number. The page gets started, phase and failed as the child told them
(workers/messages/events.py), and of the others:

operators    operators: [{index, name, weight, flops, work, configurations, known, alike, at_once, given_up}]
batch        latency, trials, failures, spent: the run's, as they are now; points: [point], operators: {index: {best, trials,
             failures, given_up}} of those that something was tried of
slot         slot: a slot, terms: its decision's (of a table of all operators its own entry), operator: {slots, seconds},
             latency, expected: what was told last, or null
end_to_end   seconds, spread, runs, latency, verified, error
baseline     name, threads, seconds, spread
log          level, text: also phases of what is done beside the run; uncompared (true: what the run is compared with was not
             measured, and the page offers to do it again)
finished     reason
state        state, wanted, attempt, error, next_step: those of the run's job; again: when it is tried again (s since 1970) or
             null, finished_reason
artifact     state, and of "ready" and "rejected" id, size, sha256, verdict, latency, onnxruntime, ratio, of "failed" error and
             next_step; of "queued" and "deleted" no more
"""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q, Sum

from apps.tuning.journal import ordered, own_terms, slot_row
from apps.tuning.models import Event, Operator, Slot, TuningRun
from apps.tuning.thinning import thinned
from apps.tuning.walk import Walk, walking

CURVE, SLOTS, SPARK, LOG = 5000, 5000, 40, 200
HAPPENED = ("log", "state", "phase")
"""Events that tell what happened, as they are: the page has the words."""


def snapshot(run: TuningRun) -> dict[str, Any]:
    """The whole run as JSON, thinned to what a chart can show."""
    with walking(run.pk) as walk:
        # The run and its last number in one query, so that they fit each other.
        run = TuningRun.objects.select_related("job", "network", "target").get(pk=run.pk)
        return _drawn(run, run.job.last_seq, walk)


def frames(run: TuningRun, after_seq: int, limit: int = 200) -> tuple[list[dict[str, Any]], int]:
    """Up to `limit` events after a number, oldest first, and the number of the last one (`after_seq` without any)."""
    rows = Event.objects.filter(run=run, seq__gt=after_seq).order_by("seq")
    events = [_shown(event) for event in rows.values_list("payload", flat=True)[:limit]]
    return events, events[-1]["seq"] if events else after_seq


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    """An event as far as a page draws it: the log has all of it."""
    if event.get("kind") == "slot":
        return {**event, "terms": own_terms(event.get("terms"), event["slot"][1])}
    if event.get("kind") == "operators":
        rows = [{name: value for name, value in row.items() if name != "knobs"} for row in event["operators"]]
        return {**event, "operators": rows}
    return event


def missed(run: TuningRun, after_seq: int, most: int) -> bool:
    """Whether there are more than `most` events after a number."""
    return Event.objects.filter(run=run, seq__gt=after_seq)[: most + 1].count() > most


def _drawn(run: TuningRun, seq: int, walk: Walk) -> dict[str, Any]:
    operators = list(run.operators.all())
    history, scatter = walk.to(run, operators, seq)
    gains = _gains(run, seq)
    return {
        "seq": seq,
        "run": _facts(run),
        "operators": [
            _operator(operator, gains.get(operator.index, 0.0), history.sparks[operator.index])
            for operator in operators
        ],
        "curve": _with_now(thinned(history.curve, CURVE - 1), run),
        "slots": [slot_row(slot) for slot in _slots(run, seq)],
        "points": scatter.points(),
        "end_to_end": run.end_to_end,
        "baselines": ordered(run.baselines),
        "spent": run.spent,
        "log": _log(run, seq),
    }


def _slots(run: TuningRun, seq: int) -> list[Slot]:
    """Of many the later half of what a page draws, and of the earlier ones every so many-th."""
    rows = run.slots.filter(seq__lte=seq).order_by("number")
    last = rows.values_list("number", flat=True).last() or 0
    if last > SLOTS:
        whole = last - SLOTS // 2
        every = -(-whole // (SLOTS - SLOTS // 2))
        rows = rows.alias(place=F("number") % every).filter(Q(number__gt=whole) | Q(place=0))
    return list(rows.defer("decision"))


def _gains(run: TuningRun, seq: int) -> dict[int, float]:
    """Seconds that all slots of an operator took off its time."""
    won = run.slots.filter(seq__lte=seq, before__gt=F("after")).order_by().values_list("operator")
    return dict(won.annotate(gain=Sum(F("before") - F("after"))))


def _facts(run: TuningRun) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "state": run.job.state,
        "wanted": run.job.wanted,
        "attempt": run.job.attempt,
        "again": run.job.again and run.job.again.timestamp(),
        "network": {"id": str(run.network_id), "name": run.network.name},
        "target": {"id": str(run.target_id), "name": run.machine_name},
        "method": run.method,
        "parts": run.parts,
        "seed": run.seed,
        "phase": run.phase,
        "clock": run.clock,
        "budget": {
            "seconds": run.budget_seconds,
            "trials": run.budget_trials,
            "latency": run.budget_latency,
            "gain": run.budget_gain,
        },
        "latency": run.latency,
        "trials": run.trials,
        "failures": run.failures,
        "expected": run.expected,
        "finished_reason": run.finished_reason,
        "error": run.job.error,
        "next_step": run.job.next_step,
        **made_with(run),
        "peak_flops": run.machine["peak_flops"],
    }


def made_with(run: TuningRun) -> dict[str, Any]:
    """As its last attempt told it, and before the first one as it will be."""
    facts = run.started_facts
    return {
        "layout": facts.get("layout", run.layout),
        "threads": facts.get("threads", run.machine["threads"]),
        "versions": facts.get("versions") or run.target.versions,
    }


def _operator(operator: Operator, gain: float, spark: list[list[float]]) -> dict[str, Any]:
    return {
        "index": operator.index,
        "name": operator.name,
        "weight": operator.weight,
        "flops": operator.flops,
        "work": operator.work,
        "at_once": operator.at_once,
        "configurations": operator.configurations,
        "known": operator.known,
        "alike": operator.alike,
        "best": operator.best_seconds,
        "trials": operator.trials,
        "failures": operator.failures,
        "given_up": operator.given_up,
        "slots": operator.slots,
        "seconds": operator.seconds,
        "gain": operator.weight * gain,
        "rule": operator.last_rule,
        "terms": own_terms(operator.last_terms, operator.index),
        "spark": thinned(spark, SPARK),
    }


def _with_now(curve: list[list[float]], run: TuningRun) -> list[list[float]]:
    """The curve goes on to the present."""
    if curve and run.latency is not None and run.clock > curve[-1][0]:
        return [*curve, [run.clock, run.latency]]
    return curve


def _log(run: TuningRun, seq: int) -> list[dict[str, Any]]:
    rows = Event.objects.filter(run=run, kind__in=HAPPENED, seq__lte=seq).order_by("-seq")
    return list(rows.values_list("payload", flat=True)[:LOG])[::-1]
