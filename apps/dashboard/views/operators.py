"""One operator of a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.core.access import owned
from apps.dashboard import figures, knobs, words
from apps.dashboard.chain_chart import fan
from apps.dashboard.course import course
from apps.dashboard.course_charts import charts
from apps.tuning.models import Operator, TuningRun
from apps.tuning.rounds import settled
from workers.messages.causes import UNBUILT


@require_GET
def operator(request: HttpRequest, pk: UUID, index: int) -> HttpResponse:
    run = owned(TuningRun.objects.select_related("job", "network", "target"), request.user, pk=pk)
    found = run.operators.filter(index=index).first()
    if found is None:
        raise Http404
    return render(request, "dashboard/operator.html", _told(run, found))


def _told(run: TuningRun, found: Operator) -> dict[str, Any]:
    told = course(run, found)
    own, clock = charts(run, told)
    best = settled(run).filter(operator=found.index).first()
    own_rows = run.measurements.filter(operator=found.index)
    first = own_rows.filter(configuration=best.configuration, round=0).first() if best and best.round else best
    last = run.slots.filter(operator=found.index).order_by("number").last()
    return {
        "run": run,
        "operator": found,
        "before": run.operators.filter(index__lt=found.index).last(),
        "after": run.operators.filter(index__gt=found.index).first(),
        "speed": figures.speed(run, found.weight, found.flops, found.best_seconds),
        "bandwidth": found.bytes / found.best_seconds if found.best_seconds else None,
        "course": told,
        "slots": [(slot, words.named(words.RULES, slot.rule)) for slot in told.given],
        "own": own,
        "clock": clock,
        "best": best,
        "first": first or best,
        "knobs": knobs.settings(found, best) if best else [],
        "named": bool(found.knobs),
        "failures": [(words.named(words.CAUSES, cause), count) for cause, count in told.failures.items()],
        "tried": _tried(run, found),
        "belief": found.last_terms.get("belief"),
        "fan": fan(last.decision) if last else None,
    }


def _tried(run: TuningRun, found: Operator) -> float | None:
    """The share of its space that was built and timed: what was timed again is no more of it."""
    different = run.measurements.filter(operator=found.index, round=0).exclude(cause__in=UNBUILT)
    return different.count() / found.configurations if found.configurations else None
