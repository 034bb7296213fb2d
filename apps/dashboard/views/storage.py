"""What an account keeps, and making room."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from apps.catalog.models import Network
from apps.core.errors import Refused
from apps.dashboard.listed import LONG
from apps.dashboard.views.posted import by_button
from apps.tuning import quota, services
from apps.tuning.models import Artifact, Job, TuningRun
from apps.tuning.states import ACTIVE, HELD, OVER
from apps.tuning.turns import PREPARING

PAGE = 100


@require_GET
def storage(request: HttpRequest) -> HttpResponse:
    """The largest first, in pages."""
    networks = Network.objects.filter(owner=request.user).exclude(state=Network.State.REJECTED)  # type: ignore[misc]
    libraries = Artifact.objects.filter(run__owner=request.user, state=Artifact.State.READY)  # type: ignore[misc]
    counted: Any = networks.defer("inspection").annotate(tuned=Count("runs")).order_by("-size", "name", "pk")
    named = libraries.select_related("run__network", "run__target").defer("verdict", *(f"run__{name}" for name in LONG))
    page = Paginator(counted, PAGE).get_page(request.GET.get("networks"))
    held = Job.objects.filter(run=OuterRef("pk"), task__in=PREPARING, state__in=HELD)
    going = (
        TuningRun.objects.filter(Q(job__state__in=ACTIVE) | Exists(held), network__in=list(page))
        .select_related("job")
        .only("network", "created", "job__state")
    )
    for network in page:
        network.going = [run for run in going if run.network_id == network.pk]
        for run in network.going:
            run.ended = run.job.state in OVER
    context = {
        "used": quota.used(request.user),
        "quota": settings.QUOTA,
        "networks": page,
        "libraries": Paginator(named.order_by("-size", "-created", "pk"), PAGE).get_page(request.GET.get("libraries")),
    }
    return render(request, "dashboard/storage.html", context)


def _back(request: HttpRequest) -> HttpResponse:
    """To the pages of both lists from which the button was pressed."""
    pages = {name: number for name in ("networks", "libraries") if (number := request.GET.get(name, "")).isdecimal()}
    return redirect(reverse("storage", query=pages or None))


@by_button
def delete_network(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to where it was listed, as for what a click before has deleted."""
    found = Network.objects.filter(owner_id=request.user.pk, pk=pk).first()
    if found is None:
        return _back(request)
    try:
        services.remove_network(found, request.user)
    except Refused as error:
        messages.error(request, error.sentence)
    return redirect("networks") if found.state == Network.State.REJECTED else _back(request)


@by_button
def delete_library(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = Artifact.objects.filter(run__owner_id=request.user.pk, pk=pk).select_related("run").first()
    if found is not None:
        with suppress(Refused):  # its run was deleted meanwhile, and it with it
            services.remove_library(found, request.user)
    return _back(request)
