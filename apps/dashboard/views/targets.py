"""The machines."""

from __future__ import annotations

from collections.abc import Callable
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
from workers.messages.device import PORT


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
        "port": PORT,
    }
    return render(request, "dashboard/targets.html", shown)


@by_button
def remeasure(request: HttpRequest, pk: UUID) -> HttpResponse:
    target = _target(pk)
    return _asked(request, target.name, lambda: services.remeasure(target, request.user))


@by_button
def add(request: HttpRequest) -> HttpResponse:
    """A device elsewhere."""
    address, key = request.POST.get("address", "")[:300], request.POST.get("key", "")[:200]
    return _asked(request, address, lambda: services.add_device(address, key, request.user))


@by_button
def remove(request: HttpRequest, pk: UUID) -> HttpResponse:
    try:
        services.remove_device(_target(pk), request.user)
    except Refused as error:
        messages.error(request, error.sentence)
    return redirect("targets")


def _target(pk: UUID) -> Target:
    target = Target.objects.filter(pk=pk).first()
    if target is None:
        raise Http404
    return target


def _asked(request: HttpRequest, value: str, measure: Callable[[], object]) -> HttpResponse:
    try:
        paces.check(paces.MEASUREMENTS, request.user, value, "measurements of a machine")
        measure()
    except Refused as error:
        messages.error(request, error.sentence)
    return redirect("targets")
