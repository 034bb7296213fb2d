"""Uploads and what was found in them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from apps.catalog.examples import EXAMPLES
from apps.catalog.models import Network
from apps.catalog.services import create_network, holds_the_same, known_file
from apps.core.access import owned
from apps.core.errors import Refused
from apps.dashboard import figures, humans, paces
from apps.dashboard.compared import described, picture, table
from apps.dashboard.forms import Sizes
from apps.dashboard.latest import latest
from apps.dashboard.listed import listed
from apps.dashboard.refresh import refresh
from apps.tuning import quota, services
from apps.tuning.models import TuningRun
from apps.tuning.states import ACTIVE, State
from workers.messages.names import READING

SOON = 10
"""Seconds until Compare asks again after runs that go on."""
RUNS = 10
COMPARED = 60
PAGE = 100


@require_http_methods(["GET", "POST"])
def networks(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _upload(request)
    # Of inspections what the list shows: those of a hundred networks may be tens of megabytes.
    told = {f"told_{name}": F(f"inspection__{name}") for name in ("inputs", "parameters", "flops")}
    told["told_dynamic"] = F("inspection__dynamic__0")
    rows = Network.objects.filter(owner=request.user).defer("inspection").annotate(**told)  # type: ignore[misc]
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    used = quota.used(request.user)
    shown = {
        "page": page,
        "networks": page.object_list,
        "reading": any(row.state == Network.State.INSPECTING for row in page.object_list),
        "torch_export": settings.ALLOW_TORCH_EXPORT,
        "limit": settings.UPLOAD_LIMIT,
        "most": settings.LARGEST_NETWORK,
        "used": used.whole,
        "quota": settings.QUOTA,
        "examples": EXAMPLES,
        "room": used.room,
    }
    return render(request, "dashboard/networks.html", shown)


def _upload(request: HttpRequest) -> HttpResponse:
    """Answers the page's script with JSON, a plain form with a redirect."""
    try:
        file = request.FILES.get("file")
        if file is None or file.name is None:
            raise Refused("file", "no file came with the form", "choose the network's file")
        known_file(file.name)
        paces.check_upload(request.user, file.name, file.size or 0)
        network = create_network(request.user, file.name, file.chunks())
    except Refused as error:
        return refused(request, error)
    if holds_the_same(network, file.name):
        said = f"{file.name} holds the same as {network.file_name}, which was there before: this is it."
        messages.success(request, said)
    place = reverse("network", args=[network.pk])
    return JsonResponse({"location": place}) if _by_script(request) else redirect(place)


def refused(request: HttpRequest, error: Refused) -> HttpResponse:
    """To an upload: as JSON for the page's script, else on the page."""
    if _by_script(request):
        return JsonResponse({"error": error.sentence}, status=error.status)
    messages.error(request, error.sentence)
    return redirect("networks")


def _by_script(request: HttpRequest) -> bool:
    return request.headers.get("X-Requested-With") == "XMLHttpRequest"


@require_http_methods(["GET", "POST"])
def network(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = owned(Network.objects.all(), request.user, pk=pk)
    form = Sizes(found, request.POST or None) if found.inspection.get("dynamic") else None
    if request.method == "POST" and form is not None and form.is_valid():
        try:
            services.choose_shapes(found, request.user, form.shapes())
        except Refused as error:
            form.add_error(None, error.sentence)
        else:
            messages.success(request, _kept(found))
            return redirect("network", found.pk)
    return render(request, "dashboard/network.html", _facts(found, form))


def _kept(found: Network) -> str:
    sizes = humans.sizes(found.shapes, found.inspection["dynamic"])
    active = TuningRun.objects.filter(network=found, job__state__in=[*ACTIVE, State.PAUSED]).exists()
    return f"Kept: {sizes}.{' Runs that were asked for before keep the sizes that they have.' if active else ''}"


def _facts(found: Network, form: Sizes | None) -> dict[str, Any]:
    counts, work = found.inspection.get("operators", {}), found.inspection.get("work", {})
    runs = TuningRun.objects.filter(network=found)
    ports = found.inspection.get("inputs", ())
    return {
        "network": found,
        "facts": found.inspection,
        "inputs": [{**port, "chosen": found.shapes.get(port["name"])} for port in ports],
        "operators": [
            (name, times, work.get(name)) for name, times in sorted(counts.items(), key=lambda item: -item[1])
        ],
        "most": max(counts.values(), default=0),
        "form": form,
        **_reading(found),
        **figures.table(listed(runs)[:RUNS]),
        "runs": runs.count(),
    }


def _reading(found: Network) -> dict[str, Any]:
    """The job that reads it or converts it."""
    return latest(found.jobs.filter(task__in=READING))


@require_GET
def compared(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Runs of the network on one chart, and a form that chooses others."""
    found = owned(Network.objects.all(), request.user, pk=pk)
    told = _to_compare(request, found)
    shown = {"network": found, "picture": picture(told["drawn"]), "most": COMPARED}
    shown["every"] = refresh([run.job.state for run in told["drawn"]], SOON)
    return render(request, "dashboard/compared.html", shown | told)


@require_GET
def compared_table(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The chart's points."""
    found = owned(Network.objects.all(), request.user, pk=pk)
    drawn = picture(_to_compare(request, found)["drawn"])
    answer = HttpResponse(table(drawn.lines if drawn else ()), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{humans.stem(found.name)}-runs.csv"'
    return answer


def _to_compare(request: HttpRequest, found: Network) -> dict[str, Any]:
    """Runs `drawn`: those that the address names (`chosen`), else a page of all, the latest first; `choices` (run, words,
    whether it is chosen), and what the address names that is no run of the network (`missing`)."""
    runs = TuningRun.objects.filter(network=found)
    page = Paginator(listed(runs), COMPARED).get_page(request.GET.get("page"))
    named = list(dict.fromkeys(request.GET.getlist("run")))
    known = {str(key) for key in runs.values_list("pk", flat=True)} if named else set()
    keys = [name for name in named if name in known]
    chosen = list(listed(runs.filter(pk__in=keys))[:COMPARED]) if keys else []
    offered = list(page)
    away = [run for run in chosen if run not in offered]
    return {
        "drawn": chosen or offered,
        "chosen": chosen,
        "runs": len(keys) or page.paginator.count,
        "choices": [
            (run, described(run, found.inspection.get("dynamic")), run in chosen)
            for run in [*away, *offered]
            if run.latency is not None
        ],
        "missing": [name for name in named if name not in known],
        "page": page,
        "kept": "".join(f"run={key}&" for key in keys),
    }


@require_GET
def shown(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that waits for the inspection."""
    found = owned(Network.objects.all(), request.user, pk=pk)
    if found.state == Network.State.INSPECTING:
        return render(request, "dashboard/_inspecting.html", {"network": found, **_reading(found)})
    return HttpResponse(headers={"HX-Redirect": reverse("network", args=[found.pk])})
