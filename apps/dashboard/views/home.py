"""The list of runs, and the example for those who have nothing yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from apps.catalog.examples import EXAMPLE, EXAMPLES, example_file
from apps.catalog.models import Network, Target
from apps.catalog.services import create_network
from apps.core.access import owned
from apps.core.errors import Refused
from apps.dashboard import figures, paces
from apps.dashboard.latest import latest
from apps.dashboard.listed import listed
from apps.dashboard.views.posted import by_button
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from workers.messages.names import READING
from workers.messages.spec import Budget

PAGE = 25
LONGEST = 200
"""Letters of a network's name."""
EXAMPLE_SECONDS = 180.0
SAME = timedelta(minutes=5)
"""Who asks for the example again within this time gets the run that was started."""


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    part = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST]
    runs = listed(TuningRun.objects.filter(owner=request.user, network__name__icontains=part))  # type: ignore[misc]
    page = Paginator(runs, PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "part": part,
        "kept": f"{urlencode({'q': part})}&" if part else "",
        **figures.table(page.object_list),
        "networks": Network.objects.filter(owner=request.user).exclude(state=Network.State.REJECTED).exists(),  # type: ignore[misc]
    }
    if request.headers.get("HX-Request"):
        first, none = request.headers.get("HX-Target") == "welcome", not (context["rows"] or part)
        if first != none:  # the first was begun elsewhere, or the last deleted: another page
            return HttpResponse(headers={"HX-Refresh": "true"})
        if none:
            return HttpResponse(status=204)
    return render(request, "dashboard/home.html", context)


@by_button
def example(request: HttpRequest) -> HttpResponse:
    """Uploads an example network as if the user had."""
    name = request.POST.get("name", EXAMPLE)
    try:
        if name not in EXAMPLES:
            raise Refused(name, "there is no example of this name", f"choose one of {', '.join(EXAMPLES)}")
        paces.check(paces.EXAMPLES, request.user, name, "examples")
        network = create_network(request.user, f"{name}.onnx", example_file(name))
    except Refused as error:
        messages.error(request, error.sentence)
        return redirect("home")
    services.ensure_local_target()
    return redirect(f"{reverse('example', args=[network.pk])}?after={_newest(network)}")


@require_GET
def preparing(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What the example waits for."""
    return render(request, "dashboard/preparing.html", _readiness(request, pk))


@by_button
def start_example(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Asked for every second by the page: starts the run as soon as everything is there. A page that comes back, restored or by
    a bookmark, starts nothing: since its example was chosen, `after` the run that its address names, another was begun."""
    context = _readiness(request, pk)
    network, target = context["network"], context["target"]
    newest = _newest(network)
    if newest and newest != request.GET.get("after"):
        return _go(request, reverse("run", args=[newest]))
    if network.state == Network.State.READY and target.state == Target.State.READY:
        try:
            paces.check(paces.RUNS, request.user, network.name, "runs begun")
            run = _example_run(request.user, network, target)
        except Refused as error:
            messages.error(request, error.sentence)
            return _go(request, reverse("network", args=[network.pk]))
        return _go(request, reverse("run", args=[run.pk]))
    return render(request, "dashboard/preparing.html", context)


def _example_run(user: Any, network: Network, target: Target) -> TuningRun:
    return services.create_run(user, network, target, "auto", Budget(seconds=EXAMPLE_SECONDS), within=SAME)


def _newest(network: Network) -> str:
    """The key of the run of it that was begun last; empty without one."""
    return str(TuningRun.objects.filter(network=network).values_list("pk", flat=True).first() or "")


def _go(request: HttpRequest, place: str) -> HttpResponse:
    """A redirect; one that htmx follows by loading the page."""
    if request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Redirect": place})
    return redirect(place)


def _readiness(request: HttpRequest, pk: UUID) -> dict[str, Any]:
    """What of the two is waited for, and what that waits for itself."""
    network = owned(Network.objects.all(), request.user, pk=pk)
    target = services.ensure_local_target()
    jobs = {
        "network": latest(network.jobs.filter(task__in=READING)),
        "target": latest(target.jobs.filter(task=Job.Task.HARDWARE)),
    }
    waits, failed = ({name: found[key] for name, found in jobs.items()} for key in ("wait", "failed"))
    unanswered = any(wait and not wait.answered for wait in waits.values())
    mine = bool(target.error) and services.may_remeasure(request.user)
    told = {"network": network, "target": target, "mine": mine}
    return told | {"waits": waits, "failed": failed, "unanswered": unanswered}
