"""What rows and headlines say of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from apps.dashboard.methods import TITLES
from apps.tuning.live import eta, thinned
from apps.tuning.models import Slot, TuningRun
from apps.tuning.states import State

SPARK = 48


@dataclass(frozen=True)
class Row:
    """A run on the first page. Ratios are baseline / ours: more is better."""

    run: TuningRun
    method: str
    eta: float | None
    over_untuned: float | None
    over_onnxruntime: float | None
    spark: Sequence[tuple[float, float]]

    @property
    def word(self) -> str:
        """While it runs, what it does."""
        return "pausing" if self.run.job.state == State.RUNNING and self.run.job.wanted == "pause" else ""


def rows(runs: Iterable[TuningRun]) -> list[Row]:
    """With two queries for all of them."""
    runs = list(runs)
    drawn = curves(runs, SPARK)
    return [_row(run, drawn[run.pk]) for run in runs]


def curves(runs: Sequence[TuningRun], most: int) -> dict[Any, list[tuple[float, float]]]:
    """(clock, latency) of each run, by its key: no more slots are read than `most` of each."""
    found: dict[Any, list[tuple[float, float]]] = {run.pk: [] for run in runs}
    wanted = Q()
    for run in runs:
        if run.slots_count:
            wanted |= Q(run=run, number__in=thinned(range(1, run.slots_count + 1), most))
    if wanted:
        told = Slot.objects.filter(wanted).order_by("number").values_list("run_id", "ended", "latency")
        for key, ended, latency in told:
            if latency is not None:
                found[key].append((ended, latency))
    return found


def _row(run: TuningRun, curve: list[tuple[float, float]]) -> Row:
    return Row(
        run=run,
        method=TITLES.get(run.method, run.method),
        eta=eta(run) if run.job.state in (State.RUNNING, State.QUEUED) else None,
        over_untuned=over(run, "untuned"),
        over_onnxruntime=over(run, "onnx runtime"),
        spark=curve,
    )


def over(run: TuningRun, name: str) -> float | None:
    """How many times faster than a baseline: by the verified network where it was measured, else by the sum."""
    whole = [point["seconds"] for point in run.end_to_end if point.get("seconds") and point.get("verified")]
    ours = whole[-1] if whole else run.latency
    theirs = next((line["seconds"] for line in run.baselines if name in line["name"].lower()), None)
    return theirs / ours if ours and theirs else None
