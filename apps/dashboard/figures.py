"""What rows and headlines say of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from apps.dashboard import humans, words
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
    def of_sum(self) -> bool:
        """Whether the ratios are of the sum of operators: no compiled network was verified yet."""
        return verified(self.run) is None

    @property
    def word(self) -> str:
        """What it does, where its state does not say it."""
        job = self.run.job
        return "pausing" if job.state == State.RUNNING and job.wanted == "pause" else words.again(job)


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
    ours = verified(run) or run.latency
    theirs = next((line["seconds"] for line in run.baselines if name in line["name"].lower()), None)
    return theirs / ours if ours and theirs else None


def verified(run: TuningRun) -> float | None:
    """Latency of the network as it was last compiled, where it computed what the reference computes."""
    whole = [point["seconds"] for point in run.end_to_end if point.get("seconds") and point.get("verified")]
    return whole[-1] if whole else None


def budget(run: TuningRun) -> str:
    """The limits that a run was given."""
    limits = (
        humans.duration(run.budget_seconds) if run.budget_seconds else "",
        f"{humans.whole(run.budget_trials)} trials" if run.budget_trials else "",
        f"until {humans.latency(run.budget_latency)}" if run.budget_latency else "",
        f"until a gain under {humans.percent(run.budget_gain)} is expected" if run.budget_gain else "",
    )
    return ", ".join(limit for limit in limits if limit)


@dataclass(frozen=True)
class Speed:
    """An operator's part of the network's latency, its FLOP/s, and their part of the measured peak; None: unknown."""

    share: float | None
    rate: float | None
    of_peak: float | None


def speed(run: TuningRun, weight: float, flops: float, best: float | None) -> Speed:
    """Of an operator of the run by its best time in seconds; one that only moves data has no FLOP/s."""
    rate, peak = flops / best if flops and best else None, run.machine["peak_flops"]
    return Speed(
        share=weight * best / run.latency if best and run.latency else None,
        rate=rate,
        of_peak=rate / peak if rate and peak else None,
    )
