"""The machines."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from apps.catalog.models import Target
from apps.core import protection
from apps.core.errors import Refused
from apps.dashboard import paces
from apps.dashboard.latest import latest
from apps.dashboard.views.posted import by_button
from apps.tuning import services
from apps.tuning.models import Job


@require_GET
def targets(request: HttpRequest) -> HttpResponse:
    services.ensure_local_target()
    measuring = Job.Task.HARDWARE
    rows = [{"target": target, **latest(target.jobs.filter(task=measuring))} for target in Target.objects.all()]
    shown = {
        "rows": rows,
        "busy": any(row["job"] for row in rows),
        "mine": services.may_remeasure(request.user),
        "protection": protection.offered(),
    }
    return render(request, "dashboard/targets.html", shown)


@by_button
def remeasure(request: HttpRequest, pk: UUID) -> HttpResponse:
    target = Target.objects.filter(pk=pk).first()
    if target is None:
        raise Http404
    try:
        paces.check(paces.MEASUREMENTS, request.user, target.name, "measurements of a machine")
        services.remeasure(target, request.user)
    except Refused as error:
        messages.error(request, error.sentence)
    return redirect("targets")
