"""Runs: starting, watching, ending, and what they leave."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from apps.catalog.models import Network, Target
from apps.core.access import owned
from apps.core.errors import Refused
from apps.dashboard import figures, humans, paces, repeated, report, streams, words
from apps.dashboard.busy import busy
from apps.dashboard.forms import OPEN, NewRun
from apps.dashboard.latest import latest
from apps.dashboard.views.posted import by_button
from apps.tuning import methods, services
from apps.tuning.live import made_with, snapshot
from apps.tuning.models import Artifact, Job, TuningRun
from apps.tuning.states import OVER, State
from apps.tuning.waiting import waits
from workers.messages.baselines import complete
from workers.messages.methods import GROUPS, PRESETS
from workers.messages.spec import ALL, AUTO, LAYOUTS

WORDS = {
    "pause": "Pause",
    "resume": "Resume",
    "keep": "Stop and compile best",
    "stop": "Stop without compiling",
}
FINAL = ("keep", "stop")
"""What cannot be taken back: a stopped run goes on no more."""
ASKED_AGAIN = ("stop",)
"""What takes a second click: it leaves nothing to take."""
SHOWN = 5
"""Networks that are named because they cannot be tuned yet."""
RARE = ("seed", "layout", "operators")
"""Settings that few need: out of sight while they are what they are at first."""
NUMBERS = ("minutes", "trials", "latency", "gain", "seed")


def _run(request: HttpRequest, pk: UUID) -> TuningRun:
    return owned(TuningRun.objects.select_related("job", "network", "target"), request.user, pk=pk)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    services.ensure_local_target()
    form = NewRun(request.user, request.POST if request.method == "POST" else None, initial=_asked(request))
    if request.method == "POST" and form.is_valid():
        try:
            run = _started(request, form)
        except Refused as error:
            form.add_error(None, error.sentence)
        else:
            return redirect("run", run.pk)
    return render(request, "dashboard/new_run.html", _choices(request, form))


def _asked(request: HttpRequest) -> dict[str, Any]:
    """What the address presets; nothing that the form would not take."""
    network, method = request.GET.get("network", ""), request.GET.get("method", "")
    known = {"network": network, "target": request.GET.get("target", "")}
    preset: dict[str, Any] = {name: value for name, value in known.items() if re.fullmatch(r"[0-9a-f-]{36}", value)}
    preset |= {"method": method} if method in PRESETS else {}
    for name in NUMBERS:
        with suppress(KeyError, ValidationError):
            NewRun.base_fields[name].clean(request.GET[name])
            preset[name] = request.GET[name]
    preset |= {"reuse": False} if request.GET.get("reuse") == "off" else {}
    offered: dict[str, Collection[str]] = {"layout": LAYOUTS, "operators": words.OPERATORS, **methods.OFFERED}
    return preset | {name: value for name, values in offered.items() if (value := request.GET.get(name, "")) in values}


def _choices(request: HttpRequest, form: NewRun) -> dict[str, Any]:
    mine = Network.objects.filter(owner=request.user)  # type: ignore[misc]
    field: Any = form.fields["network"]
    return {
        "form": form,
        "missing": [] if form.is_bound else [said for name in ("network", "target") if (said := _missing(form, name))],
        "method": str(form["method"].value()),
        "everyday": [preset for group in GROUPS if group.everyday for preset in group.methods],
        "others": [group for group in GROUPS if not group.everyday],
        "networks": field.offered,
        "more": field.queryset.count() > len(field.offered),
        "parts": [form[role] for role in methods.OFFERED],
        "composed": any(form[role].value() for role in methods.OFFERED),
        "rare": any(str(form[name].value() or "") not in ("", str(form.fields[name].initial)) for name in RARE),
        "open": mine.filter(OPEN, state=Network.State.READY)[:SHOWN],
        "waiting": mine.filter(state=Network.State.INSPECTING).exists(),
        "targets": form.fields["target"].queryset,  # type: ignore[attr-defined]
        "unready": (unready := list(Target.objects.exclude(state=Target.State.READY).order_by("pk")[:SHOWN])),
        "mine": bool(unready) and services.may_remeasure(request.user),
    }


def _missing(form: NewRun, name: str) -> str:
    """What is to be said where the address names one that is not offered, so that a browser shows another in its place."""
    asked, field = str(form.initial.get(name, "")), form.fields[name]
    offered = [str(key) for key, _ in field.choices]  # type: ignore[attr-defined]
    return str(field.error_messages["invalid_choice"]) if asked and asked not in offered else ""


def _started(request: HttpRequest, form: NewRun) -> TuningRun:
    chosen = form.cleaned_data
    paces.check(paces.RUNS, request.user, chosen["network"].name, "runs begun")
    return services.create_run(
        request.user,
        chosen["network"],
        chosen["target"],
        chosen["method"],
        form.budget(),
        seed=chosen["seed"] or 0,
        parts=form.parts(),
        layout=chosen["layout"] or AUTO,
        operators=chosen["operators"] or ALL,
        reuse=chosen["reuse"],
        within=services.TWICE,
    )


@require_GET
def run(request: HttpRequest, pk: UUID) -> HttpResponse:
    drawn = snapshot(_run(request, pk))
    found = _run(request, pk)  # read after it: what is later than the snapshot is told again, what is earlier never is
    title = methods.titled(found.method, found.parts)
    context = {"run": found, "snapshot": drawn, "method": title, "words": words.PAGE}
    context |= {"controls": _controls(found), "command": repeated.command(found)}
    return render(request, "dashboard/run.html", context | _standing(found) | _left(found))


@require_GET
def standing(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What no event tells the page."""
    found = _run(request, pk)
    return render(request, "dashboard/_waiting.html", {"run": found} | _standing(found))


def _standing(found: TuningRun) -> dict[str, Any]:
    """How long a queued run will wait, with what it is made, of which operators and sizes, within which limits, what its parts
    changed, and the job that was to take what it is compared with, where it failed."""
    wait = waits({found.job_id}).get(found.job_id) if found.job.state == State.QUEUED else None
    told = {"wait": wait, "made": made_with(found), "only": words.only(found), "effects": figures.effects(found)}
    told |= {"sizes": figures.sizes(found), "budget": figures.budget(found)}
    # Complete where another run took them, say. Of a run that failed before it measured anything the cause is told alone.
    asked = not complete(found.baselines) and (found.trials or found.job.state != State.FAILED)
    failed = latest(Job.objects.filter(run=found, task=Job.Task.BASELINE))["failed"] if asked else None
    return told | {"uncompared": failed}


def _controls(found: TuningRun) -> list[dict[str, Any]]:
    """The buttons, and whether they are of use now; the page's script goes on deciding that by the same rules."""
    job = found.job
    goes_on, pausing = job.state in (State.RUNNING, State.QUEUED, State.INTERRUPTED), job.wanted == Job.Wanted.PAUSE
    ends = goes_on or job.state == State.PAUSED
    offered = {
        "pause": goes_on and not pausing,
        "resume": job.state in (State.PAUSED, State.FAILED) or (job.state == State.RUNNING and pausing),
        "stop": ends,
        "keep": ends and services.measured(found),
    }
    return [
        {"word": word, "label": label, "offered": offered[word], "final": word in FINAL, "again": word in ASKED_AGAIN}
        for word, label in WORDS.items()
    ]


@require_GET
def shot(request: HttpRequest, pk: UUID) -> JsonResponse:
    """What the page draws, as JSON."""
    found = _run(request, pk)
    answer = JsonResponse(snapshot(found))
    answer["Content-Disposition"] = f'attachment; filename="{humans.stem(found.network.name)}-figures.json"'
    return answer


@by_button
def ask(request: HttpRequest, pk: UUID, word: str) -> HttpResponse:
    """Pause, resume, stop; the page hears of the outcome on its line, and of a refusal at once."""
    found = _run(request, pk)
    if word not in WORDS:
        raise Http404
    refusal = _refusal(request, found, lambda: _asked_for(found, request.user, word))
    if request.headers.get("HX-Request"):
        return render(request, "dashboard/_refused.html", {"refusal": refusal})
    return _back(request, found, refusal)


def _asked_for(found: TuningRun, user: Any, word: Any) -> None:
    """Refused as its button is called."""
    try:
        services.request(found, user, word)
    except Refused as error:
        if error.value != word:
            raise
        raise Refused(WORDS[word], error.reason, error.next_step) from None


@by_button
def compile_best(request: HttpRequest, pk: UUID) -> HttpResponse:
    """An artifact of the best so far."""
    found = _run(request, pk)
    refusal = _refusal(request, found, lambda: services.request_artifact(found, request.user))
    if request.headers.get("HX-Request"):
        return render(request, "dashboard/_downloads.html", {"run": found, "refusal": refusal} | _left(found))
    return _back(request, found, refusal)


@by_button
def take_baselines(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What the run is compared with, where that could not be measured."""
    found = _run(request, pk)
    return _back(request, found, _refusal(request, found, lambda: services.request_baselines(found, request.user)))


def _refusal(request: HttpRequest, found: TuningRun, act: Callable[[], Any]) -> str:
    """Why it cannot be done, for the page; empty where it was."""
    try:
        paces.check(paces.WORDS, request.user, found.network.name, "requests")
        act()
    except Refused as error:
        return error.sentence
    return ""


def _back(request: HttpRequest, found: TuningRun, refusal: str) -> HttpResponse:
    """To the run's page: who has no script is told there."""
    if refusal:
        messages.error(request, refusal)
    return redirect("run", found.pk)


@require_GET
def downloads(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the run's page that htmx fetches."""
    found = _run(request, pk)
    if not request.headers.get("HX-Request"):
        return redirect(f"{reverse('run', args=[found.pk])}#downloads-section")
    return render(request, "dashboard/_downloads.html", {"run": found} | _left(found))


def _left(found: TuningRun) -> dict[str, Any]:
    """What there is to take, and what can be done next."""
    artifacts = list(found.artifacts.select_related("job")[: 2 * Artifact.KEPT])
    ready, wrong = figures.newest(artifacts)
    first = figures.headline(found)
    siblings = TuningRun.objects.filter(network=found.network_id).exclude(latency=None)
    compiling = latest(Job.objects.filter(run=found, task=Job.Task.COMPILE))
    complete = services.measured(found)
    unready = found.target.state != Target.State.READY
    doubt = busy(first)
    # The newest may have been deleted: what the page tells is then none of those that are left.
    gone = bool(ready and first.library and ready.latency.get("median") != first.library.seconds)
    # Without a sum of operators nobody can tell whether something better was found since; what failed may be tried again.
    improved = ready is None or gone or not first.whole or found.latency is None or bool(doubt or compiling["failed"])
    return {
        "artifacts": artifacts,
        "library": ready,
        "wrong": wrong,
        "headline": first,
        "measured": complete,
        "offered": complete and improved and compiling["job"] is None,
        "better": ready is not None and not first.whole,
        "busy": doubt,
        "comparable": siblings.count() > 1,
        "kept": Artifact.KEPT,
        "compiling": compiling["job"],
        "compile_wait": compiling["wait"],
        "failed": compiling["failed"],
        "over": found.job.state in OVER,
        "again": repeated.further(found) if complete else repeated.afresh(found),
        "resized": found.shapes != found.network.shapes,
        "unready": unready,
        "mine": unready and services.may_remeasure(found.owner),
    }


_FILES = {
    "log.jsonl": (streams.log_lines, "application/x-ndjson"),
    "measurements.csv": (streams.measurement_table, "text/csv"),
    "slots.csv": (streams.slot_table, "text/csv"),
    "report.html": (report.pieces, "text/html; charset=utf-8"),
}


@require_GET
def file(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    found = _run(request, pk)
    if name not in _FILES:
        raise Http404
    pieces, kind = _FILES[name]
    return streams.attachment(request, pieces(found), f"{humans.stem(found.network.name)}-{name}", kind)  # type: ignore[return-value]


@require_GET
def artifact(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The archive, found by its content's hash."""
    rows = Artifact.objects.filter(run__owner_id=request.user.pk, state=Artifact.State.READY)
    found = rows.select_related("run__network", "run__target").filter(pk=pk).first()
    if found is None:
        raise Http404
    try:
        pieces = streams.file_pieces(found.path)
    except OSError:
        raise Http404 from None
    run = found.run
    name = humans.stem(run.network.name, run.machine_name, run.method, f"{found.created:%Y-%m-%d-%H%M}")
    response = streams.attachment(request, pieces, f"{name}.zip", "application/zip")
    response["Content-Length"] = str(found.size)
    return response  # type: ignore[return-value]
