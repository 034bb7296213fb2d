"""One operator of a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.core.access import owned
from apps.dashboard import figures, humans, knobs, streams, words
from apps.dashboard.chain_chart import fan
from apps.dashboard.course import course
from apps.dashboard.course_charts import PLACES, charts
from apps.dashboard.refresh import LATER, refresh
from apps.tuning.models import Operator, TuningRun
from apps.tuning.rounds import believed
from workers.messages.causes import UNBUILT

SOON = 4
"""Seconds until the page of a run that goes on asks again."""


@require_GET
def operator(request: HttpRequest, pk: UUID, index: int) -> HttpResponse:
    run, found = _found(request, pk, index)
    if request.GET.get("seen") == _seen(run, found):
        return HttpResponse(status=204)  # the page has all of it
    return render(request, "dashboard/operator.html", _told(run, found))


@require_GET
def measurements(request: HttpRequest, pk: UUID, index: int) -> HttpResponse:
    """Every configuration of it that was tried."""
    run, found = _found(request, pk, index)
    name = f"{humans.stem(run.network.name)}-operator-{found.index}.csv"
    return streams.attachment(request, streams.measurement_table(run, found), name, "text/csv")  # type: ignore[return-value]


def _found(request: HttpRequest, pk: UUID, index: int) -> tuple[TuningRun, Operator]:
    run = owned(TuningRun.objects.select_related("job", "network", "target"), request.user, pk=pk)
    found = run.operators.filter(index=index).first()
    if found is None:
        raise Http404
    return run, found


def _seen(run: TuningRun, found: Operator) -> str:
    """Changes with all that the page tells; the run's clock, to which its charts go, by the minute."""
    own = (found.trials, found.failures, found.slots, found.best_seconds)
    told = (*own, run.latency, run.clock // LATER, run.job.state, run.job.wanted, words.again(run.job))
    return "-".join(map(str, told))


def _told(run: TuningRun, found: Operator) -> dict[str, Any]:
    told = course(run, found)
    whole = figures.told_sum(run, run.operators.values_list("weight", "best_seconds"))
    drawn = {size: charts(run, told, size) for size in PLACES}
    best = believed(run, found.index).first()
    own_rows = run.measurements.filter(operator=found.index)
    again = own_rows.filter(configuration=best.configuration, round=0) if best and best.round else own_rows.none()
    first = again.first() or best
    last = run.slots.filter(operator=found.index).order_by("number").last()
    return {
        "run": run,
        "operator": found,
        "before": run.operators.filter(index__lt=found.index).last(),
        "after": run.operators.filter(index__gt=found.index).first(),
        "speed": figures.speed(run, whole, found.weight, found.flops, found.best_seconds, found.at_once),
        "bandwidth": found.bytes / found.best_seconds if found.best_seconds else None,
        "course": told,
        "slots": [(slot, words.named(words.RULES, slot.rule)) for slot in told.given],
        "own": [(size, own) for size, (own, _) in drawn.items() if own],
        "clock": [(size, clock) for size, (_, clock) in drawn.items() if clock],
        "best": best,
        "first": first,
        "origin": words.named(words.ORIGINS, first.origin) if first else "",
        "knobs": knobs.settings(found, best) if best else [],
        "named": bool(found.knobs),
        "failures": [(words.named(words.CAUSES, cause), count) for cause, count in told.failures.items()],
        "tried": _tried(run, found),
        "belief": found.last_terms.get("belief"),
        "fan": [(size, fanned) for size in PLACES if last and (fanned := fan(last.decision, size))],
        "seen": _seen(run, found),
        # Each look reads all that was measured of it.
        "every": refresh([run.job.state], max(SOON, found.trials // 1000)),
    }


def _tried(run: TuningRun, found: Operator) -> float | None:
    """The share of its space that was built and timed: what was timed again is no more of it."""
    different = run.measurements.filter(operator=found.index, round=0).exclude(cause__in=UNBUILT)
    return different.count() / found.configurations if found.configurations else None
