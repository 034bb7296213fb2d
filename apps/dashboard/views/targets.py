"""The machines."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET

from apps.catalog.models import Target
from apps.core import protection
from apps.core.errors import Refused
from apps.dashboard import paces
from apps.dashboard.latest import latest
from apps.dashboard.views.posted import by_button
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from apps.tuning.states import HELD
from workers.messages.device import PORT


@require_GET
def targets(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, **device: str) -> HttpResponse:
    """With what was typed into the form for a `device` and why that is `refused`."""
    services.ensure_local_target()
    measuring = Job.Task.HARDWARE
    counted = Target.objects.annotate(tuned=Subquery(_tuned()))
    rows = [{"target": target, **latest(target.jobs.filter(task=measuring))} for target in counted]
    for row in rows:
        row["free"] = row["job"] is None or row["job"].state not in HELD
    shown = {
        "rows": rows,
        "busy": any(row["job"] for row in rows),
        "mine": services.may_remeasure(request.user),
        "protection": protection.offered(),
        "port": PORT,
        **device,
    }
    return render(request, "dashboard/targets.html", shown)


def _tuned() -> QuerySet[Any]:
    """How many runs a target has, None for none: without joining them to it, whose rows are wide."""
    return (
        TuningRun.objects.filter(target=OuterRef("pk")).order_by().values("target").annotate(n=Count("pk")).values("n")
    )


@by_button
def remeasure(request: HttpRequest, pk: UUID) -> HttpResponse:
    target = _target(pk)
    try:
        _check_pace(request, target.name)
        services.remeasure(target, request.user)
    except Refused as error:
        messages.error(request, error.sentence)
    return redirect("targets")


@sensitive_post_parameters("key")
@by_button
def add(request: HttpRequest) -> HttpResponse:
    """A device elsewhere."""
    try:
        address = services.device_at(request.POST.get("address", ""), request.POST.get("key", ""))
        _check_pace(request, str(address))
        services.add_device(address, request.user)
    except Refused as error:
        if services.may_remeasure(request.user):
            return _page(request, address=request.POST.get("address", ""), refused=error.sentence)
        messages.error(request, error.sentence)  # who has no form
    return redirect("targets")


@by_button
def remove(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the list, as for what a click before has removed."""
    target = Target.objects.filter(pk=pk).first()
    if target is None:
        return redirect("targets")
    try:
        services.remove_device(target, request.user)
    except Refused as error:
        messages.error(request, error.sentence)
    return redirect("targets")


def _target(pk: UUID) -> Target:
    target = Target.objects.filter(pk=pk).first()
    if target is None:
        raise Http404
    return target


def _check_pace(request: HttpRequest, value: str) -> None:
    paces.check(paces.MEASUREMENTS, request.user, value, "measurements of a machine")
