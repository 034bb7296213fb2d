"""A run asked for once more: what New run is preset with, and the command that does it without the web."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

from apps.dashboard import humans
from apps.dashboard.forms import NewRun
from apps.tuning.models import TuningRun
from workers.messages.spec import LAYOUTS, MEASURED

REACHED = {"target": "latency", "gain": "gain"}
"""By the reason of an end the limit that would end another run at once."""
OPTIONS = {"minutes": "minutes", "trials": "trials", "latency": "target-ms", "gain": "min-gain"}
"""Of `manage.py tune`, by the form's limits."""


def further(run: TuningRun) -> str:
    """The query for New run that goes on from what this run found; what the form begins with anyway is left out."""
    return urlencode(_asked(run))


def afresh(run: TuningRun) -> str:
    """The query for New run with the same settings, of a run that found too little to go on from."""
    seed = {"seed": run.seed} if run.seed else {}
    return urlencode({**_asked(run), **seed, **({} if run.reuse else {"reuse": "off"})})


def command(run: TuningRun) -> str:
    """Of `manage.py tune`, for a shell: for the machine on which it runs, from nothing, beside the network's file."""
    network = run.network
    file = network.file_name or f"{network.name}.onnx"
    open_ = dict.fromkeys(dimension["input"] for dimension in network.inspection.get("dynamic", ()))
    options = [
        ("method", run.method),
        *(("part", f"{role}={part}") for role, part in run.parts.items()),
        *((OPTIONS[name], f"{limit}%" if name == "gain" else limit) for name, limit in _limits(run).items()),
        *(("shape", f"{name}={','.join(map(str, run.shapes[name]))}") for name in open_),
        ("layout", run.layout),
        ("operators", run.operators_asked),
        ("seed", run.seed),
        ("out", humans.stem(network.name)),
    ]
    words = ["manage.py", "tune", f"./{file}", *(f"--{name}={value}" for name, value in options)]
    return shlex.join(words + ["--allow-torch-export"] * bool(network.source))


def _asked(run: TuningRun) -> dict[str, Any]:
    rare = {"layout": _settled(run), "operators": run.operators_asked}
    changed = {name: value for name, value in rare.items() if value != NewRun.base_fields[name].initial}
    where = {"network": run.network_id, "target": run.target_id}
    return {**where, "method": run.method, **run.parts, **changed, **_left(run)}


def _left(run: TuningRun) -> dict[str, str]:
    """Of its budget what it did not reach; what the form begins with where nothing is left of it."""
    left = {name: limit for name, limit in _limits(run).items() if name != REACHED.get(run.finished_reason)}
    return {"minutes": "", **left} if left else {}


def _limits(run: TuningRun) -> dict[str, str]:
    """Its budget in the form's units."""
    seconds, latency, gain = run.budget_seconds, run.budget_latency, run.budget_gain
    given = {
        "minutes": humans.given(seconds / 60) if seconds else "",
        "trials": str(run.budget_trials or ""),
        "latency": humans.given(1e3 * latency) if latency else "",
        "gain": humans.given(100 * gain) if gain else "",
    }
    return {name: limit for name, limit in given.items() if limit}


def _settled(run: TuningRun) -> str:
    """What it was tuned in where that was measured: measured again, it might be another, of which nothing is known."""
    layout = run.started_facts.get("layout")
    return str(layout) if run.layout == MEASURED and layout in LAYOUTS else run.layout
