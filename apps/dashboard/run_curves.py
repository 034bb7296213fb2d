"""The latency of runs against their tuning time, read with few queries however long they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet

from apps.tuning.models import Event, Slot, TuningRun
from apps.tuning.thinning import thinned

POINTS = 300
"""As many are read of a run, and as many more where it had no latency at first."""


def curves(runs: Sequence[TuningRun]) -> dict[Any, list[tuple[float, float]]]:
    """(clock, latency) of each run, by its key, as its own page draws them: after each batch, of many an even choice and the
    first one with a latency, and now. Of more slots than POINTS an even choice stands for the batches from the first to the
    last one: of a run of hours nobody counts them. In four queries for all of them."""
    long = {run.pk: thinned(range(1, run.slots_count + 1), POINTS) for run in runs if run.slots_count > POINTS}
    slots = read(Slot.objects.all(), {key: Q(number__in=numbers) for key, numbers in long.items()}, "ended", "latency")
    counted = Q(run__in=[run.pk for run in runs if run.pk not in long])
    for key, rows in slots.items():
        if rows:  # else it is being deleted
            counted |= Q(run=key, seq__lt=rows[0][0]) | Q(run=key, seq__gt=rows[-1][0])
    batches, kept = Event.objects.filter(kind="batch"), defaultdict[Any, list[int]](list)
    for key, number in batches.filter(counted).order_by("seq").values_list("run_id", "seq"):
        kept[key].append(number)
    chosen = {key: Q(seq__in=thinned(numbers, POINTS)) for key, numbers in kept.items()}
    told = read(batches, chosen, "clock", "payload__latency")
    between = {key: gap for key, rows in told.items() if key not in long and (gap := _before_the_first(rows))}
    earlier = read(batches, between, "clock", "payload__latency")
    found = {}
    for run in runs:
        rows = [row for part in (earlier, told, slots) for row in part.get(run.pk, ())]
        found[run.pk] = curve = [(clock, latency) for _, clock, latency in sorted(rows) if latency is not None]
        if curve and run.latency is not None and run.clock > curve[-1][0]:
            curve.append((run.clock, run.latency))
    return found


Told = tuple[int, float, float | None]
"""A batch or a slot: its number, its time and the latency then."""


def read(rows: QuerySet[Any], asked: Mapping[Any, Q], *fields: str) -> dict[Any, list[Told]]:
    """Of what is asked for of each run: time and latency are these fields."""
    wanted = Q()
    for key, which in asked.items():
        wanted |= Q(run=key) & which
    found: dict[Any, list[Told]] = {key: [] for key in asked}
    if asked:
        for key, *row in rows.filter(wanted).order_by("seq").values_list("run_id", "seq", *fields):
            found[key].append((row[0], row[1], row[2]))
    return found


def _before_the_first(rows: Sequence[Told]) -> Q | None:
    """What was left out just before the first one with a latency."""
    first = next((n for n, (*_, latency) in enumerate(rows) if latency is not None), 0)
    return Q(seq__gt=rows[first - 1][0], seq__lt=rows[first][0]) if first else None
