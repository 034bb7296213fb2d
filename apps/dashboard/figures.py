"""What rows and headlines say of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from apps.catalog.models import Network
from apps.dashboard import humans, run_curves, words
from apps.tuning.methods import titled
from apps.tuning.models import Artifact, Slot, TuningRun
from apps.tuning.states import ACTIVE, OVER, State
from apps.tuning.thinning import thinned
from apps.tuning.turns import eta
from apps.tuning.waiting import Wait, waits
from workers.messages.baselines import ONNX_RUNTIME, UNTUNED
from workers.messages.effects import Effect, effects_of

SPARK = 48
UNSTEADY = 0.1
"""Of a latency: runs of a machine that does nothing else differ less."""


@dataclass(frozen=True)
class Library:
    """The last compiled network that computed what the reference computes: `seconds` end to end, `sum` of the operators
    that it was made of, told at `clock`."""

    clock: float
    seconds: float
    spread: float
    sum: float | None

    @property
    def unsteady(self) -> bool:
        """Whether the machine did something else meanwhile."""
        return self.spread > UNSTEADY * self.seconds


@dataclass(frozen=True)
class Headline:
    """The latency that is told first: that of the library end to end, while nothing better was found since (`whole`), else
    the `sum` of operators. static/js/run/state.js chooses by the same rule.
    """

    seconds: float | None
    spread: float
    whole: bool
    sum: float | None
    library: Library | None

    @property
    def unsteady(self) -> bool:
        """Of the library, where it is told first."""
        return self.whole and self.library is not None and self.library.unsteady

    @property
    def distance(self) -> float | None:
        """How many times the sum of operators the whole network takes."""
        return self.seconds / self.sum if self.whole and self.seconds and self.sum else None

    def over(self, baseline: float | None) -> float | None:
        """How many times faster than a baseline, the library where there is one: operators alone promise no network."""
        seconds = self.library.seconds if self.library else self.seconds
        return baseline / seconds if baseline and seconds else None


def headline(run: TuningRun) -> Headline:
    found = library(run)
    if found is None or (run.latency and found.sum and run.latency < found.sum):
        return Headline(run.latency, 0.0, False, run.latency, found)
    return Headline(found.seconds, found.spread, True, run.latency, found)


def effects(run: TuningRun) -> list[Effect]:
    """What each part changed, once a run stands still. What a child told may be anything: none where it is no report."""
    if run.job.state not in (State.PAUSED, *OVER):
        return []
    with suppress(LookupError, AttributeError, TypeError, ValueError, ArithmeticError):
        return effects_of(run.report)
    return []


def library(run: TuningRun, by: float = math.inf) -> Library | None:
    """The last one until then, by the run's clock."""
    told = [
        point for point in run.end_to_end if point.get("seconds") and point.get("verified") and point["clock"] <= by
    ]
    if not told:
        return None
    last = told[-1]
    return Library(last["clock"], last["seconds"], last.get("spread") or 0.0, last.get("latency"))


@dataclass(frozen=True)
class Row:
    """A run on a list. `latency` is the sum of operators where that is lower than the library's (`of_sum`); ratios are of the
    library, or of `operators_alone`. `unanswered`: it waits for a worker, and none answers."""

    run: TuningRun
    method: str
    sizes: str
    word: str
    eta: float | None
    latency: float | None
    spread: float
    unsteady: bool
    of_sum: bool
    operators_alone: bool
    over_untuned: float | None
    over_onnxruntime: float | None
    spark: Sequence[tuple[float, float]]
    unanswered: bool


def newest(artifacts: Sequence[Artifact] | QuerySet[Artifact]) -> tuple[Artifact | None, Artifact | None]:
    """Of a run's, the latest first: the last that is offered, and the last one of all where that computes something else."""
    ready = next((one for one in artifacts if one.state == Artifact.State.READY), None)
    last = next(iter(artifacts), None)
    return ready, last if last is not None and last.state == Artifact.State.REJECTED else None


def rows(runs: Iterable[TuningRun]) -> list[Row]:
    """With three queries for all of them, and as many more where one is queued."""
    runs = list(runs)
    drawn, dynamic = _curves(runs), _dynamic(runs)
    asked = {run.job_id for run in runs if run.job.state == State.QUEUED}
    queued = waits(asked) if asked else {}
    return [_row(run, drawn[run.pk], dynamic.get(run.network_id), queued.get(run.job_id)) for run in runs]


def table(runs: Iterable[TuningRun]) -> dict[str, Any]:
    """What _rows.html shows: `rows`, whether anything of them goes on, so that it asks again soon, and whether one waits for a
    worker and none answers."""
    shown = rows(runs)
    return {
        "rows": shown,
        "busy": any(row.run.job.state in ACTIVE for row in shown),
        "unanswered": any(row.unanswered for row in shown),
    }


def _dynamic(runs: Iterable[TuningRun]) -> dict[Any, Any]:
    """What the files of their networks leave open, by network: of an inspection, which may be long, that alone."""
    networks = Network.objects.filter(pk__in={run.network_id for run in runs}, inspection__dynamic__0__isnull=False)
    return dict(networks.order_by().values_list("pk", "inspection__dynamic"))


def _curves(runs: Sequence[TuningRun]) -> dict[Any, list[tuple[float, float]]]:
    """(clock, latency) of each run, by its key: no more slots are read than SPARK of each."""
    numbers = {run.pk: thinned(range(1, run.slots_count + 1), SPARK) for run in runs}
    asked = {key: Q(number__in=some) for key, some in numbers.items() if some}
    told = run_curves.read(Slot.objects.all(), asked, "ended", "latency")
    return {
        run.pk: [(ended, latency) for _, ended, latency in told.get(run.pk, ()) if latency is not None] for run in runs
    }


def _row(run: TuningRun, curve: list[tuple[float, float]], dynamic: Any, wait: Wait | None) -> Row:
    first, word = headline(run), words.of_state(run)
    theirs = {line["name"]: line["seconds"] for line in run.baselines}
    return Row(
        run=run,
        method=titled(run.method, run.parts),
        sizes=humans.sizes(run.shapes, dynamic),
        word=", ".join(filter(None, [word, _held_up(wait)])),
        eta=eta(run) if run.job.state == State.RUNNING else None,
        latency=first.seconds,
        spread=first.spread,
        unsteady=first.unsteady,
        of_sum=not first.whole,
        operators_alone=first.library is None,
        over_untuned=first.over(theirs.get(UNTUNED)),
        over_onnxruntime=first.over(theirs.get(ONNX_RUNTIME)),
        spark=curve,
        unanswered=wait is not None and not wait.answered,
    )


def _held_up(wait: Wait | None) -> str:
    if wait and wait.before:
        return f"{wait.before} before"
    return "a machine is being measured" if wait and wait.machine else ""


def sizes(run: TuningRun) -> str:
    """Of inputs that its network's file leaves open."""
    return humans.sizes(run.shapes, run.network.inspection.get("dynamic"))


def budget(run: TuningRun) -> str:
    """The limits that a run was given, as they were."""
    limits = (
        humans.duration(run.budget_seconds) if run.budget_seconds else "",
        f"{humans.whole(run.budget_trials)} configurations" if run.budget_trials else "",
        f"until {humans.given(1e3 * run.budget_latency)} ms" if run.budget_latency else "",
        f"until a gain under {humans.given(100 * run.budget_gain)} % is expected" if run.budget_gain else "",
    )
    return ", ".join(limit for limit in limits if limit)


@dataclass(frozen=True)
class Speed:
    """An operator's part of the network's latency, its FLOP/s, and their part of the measured peak; None: unknown."""

    share: float | None
    rate: float | None
    of_peak: float | None


def told_sum(run: TuningRun, operators: Iterable[tuple[float, float | None]]) -> float:
    """Of which shares are: the run's latency, or of (weight, best) what is known while some operator has no time."""
    return run.latency or sum(weight * best for weight, best in operators if best)


def speed(run: TuningRun, whole: float, weight: float, flops: float, best: float | None, at_once: int) -> Speed:
    """Of an operator of the run by its best time in seconds, and of the `whole` (`told_sum`); one that only moves data has no
    FLOP/s. The peak is float32's, of which whole numbers have so many more products `at_once`."""
    rate, peak = flops / best if flops and best else None, run.machine["peak_flops"]
    return Speed(
        share=weight * best / whole if best and whole else None,
        rate=rate,
        of_peak=rate / (at_once * peak) if rate and peak else None,
    )
