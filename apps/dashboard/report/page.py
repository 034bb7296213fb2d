"""What stands in a report, and the file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from apps.core import clock
from apps.dashboard import figures, words
from apps.dashboard.busy import busy
from apps.dashboard.report import tables
from apps.dashboard.report.story import coloured, story, titled
from apps.tuning import methods
from apps.tuning.live import snapshot
from apps.tuning.models import TuningRun
from apps.tuning.thinning import thinned

SHEETS = ("tokens", "page", "run", "report")
STEPS, SLOTS = 100, 200
"""As many rows of a table under a chart; of more an even choice."""


def pieces(run: TuningRun) -> Iterator[bytes]:
    """The file, made when it is asked for. A snapshot bounds what is held and written, however long the run was."""
    yield render_to_string("dashboard/report.html", _told(run)).encode()


def _told(run: TuningRun) -> dict[str, Any]:
    drawn = snapshot(run)
    operators = drawn["operators"]
    colours = coloured(operators)
    names = {operator["index"]: titled(operator) for operator in operators}
    shares, first = tables.shares(operators, colours), figures.headline(run)
    artifact, wrong = figures.newest(run.artifacts.all())
    return {
        "style": style(),
        "run": run,
        "made": clock.now(),
        "method": methods.titled(run.method, run.parts),
        "only": words.only(run),
        "ending": words.of_state(run),
        "budget": figures.budget(run),
        "headline": first,
        "busy": busy(first),
        "compared": tables.compared(run),
        "story": story(drawn, colours),
        "curve": thinned(drawn["curve"], STEPS),
        "steps": len(drawn["curve"]),
        "drawn": len(drawn["slots"]),
        "slots": [(row, names.get(row[1], "")) for row in thinned(drawn["slots"], SLOTS)],
        "shares": shares,
        "most": tables.scale(shares),
        "spent": tables.spent(run.spent),
        "effects": figures.effects(run),
        "rows": tables.rows(run, operators, colours),
        "failures": tables.failures(run),
        "facts": tables.facts(run),
        "notes": run.started_facts.get("notes") or [],
        "artifact": artifact,
        "wrong": wrong,
    }


@cache
def style() -> str:
    """The site's own style."""
    return "\n".join(Path(str(finders.find(f"css/{name}.css"))).read_text(encoding="utf-8") for name in SHEETS)
