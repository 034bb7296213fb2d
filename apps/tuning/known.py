"""What earlier runs of the same owner on the same machine found, for a new one to start from."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db import transaction
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from apps.tuning.models import Measurement, Operator, TuningRun
from apps.tuning.transitions import Numbers
from workers.messages.known import FEWEST, LASTING, Name, Point, point_of, records, share

SOURCES = 12
"""Earlier runs that are asked, those of the same network first, then the latest."""
LOOKED_AT = 200


def known_records(run: TuningRun) -> list[dict[str, Any]]:
    """Records as of the run's first attempt: every later one is given the same, as long as those runs are there."""
    if not run.reuse:
        return []
    sources = {str(pk): seq for pk, seq in _sources(run)}
    names: dict[tuple[str, int], Name] = {}
    told = Operator.objects.filter(run__in=list(sources)).exclude(space="").values_list("run", "index", "key", "space")
    for pk, index, key, space in told:
        names[str(pk), index] = (key, space)
    found: defaultdict[Name, list[Point]] = defaultdict(list)
    distinct = len(set(names.values()))
    # An operator that many runs have needs less of each.
    most = max(FEWEST, share(distinct) * distinct // max(len(names), 1))
    for row in _rows(sources, most):
        name, point = names.get((str(row["run"]), row["operator"])), point_of(row)
        if name is not None and point is not None:
            found[name].append(point)
    return records(found)


def _sources(run: TuningRun) -> list[list[Any]]:
    """(run, number of its last event) of the runs that this one starts from, newest first; chosen once."""
    with transaction.atomic():
        Numbers(run.job_id)  # whoever saves a run has read it under this lock
        kept: list[list[Any]] | None = TuningRun.objects.values_list("known_from", flat=True).get(pk=run.pk)
        if kept is None:
            kept = _found(run)
            TuningRun.objects.filter(pk=run.pk).update(known_from=kept)
    return kept


def _found(run: TuningRun) -> list[list[Any]]:
    own = TuningRun.objects.filter(owner=run.owner_id, target=run.target_id, trials__gt=0)
    # A run that was under way before it could choose must not be given what came after its start.
    earlier = own.filter(created__lt=run.created)
    rows = earlier.order_by("-created").values_list("pk", "network", "machine", "job__last_seq")[:LOOKED_AT]
    # What an operator's space says of the machine is compared in the child; here it is not to fill the places.
    fitting = [row for row in rows if _machine(row[2]) == _machine(run.machine)]
    places = sorted(range(len(fitting)), key=lambda place: fitting[place][1] != run.network_id)[:SOURCES]
    return [[str(fitting[place][0]), fitting[place][3]] for place in sorted(places)]


def _machine(machine: dict[str, Any]) -> tuple[Any, Any]:
    return machine["tvm"], machine["threads"]


def _rows(sources: dict[str, int], most: int) -> list[dict[str, Any]]:
    """Of every operator of every source its fastest and its newest measurements, newest first."""
    if not sources:
        return []
    until = Q()
    for pk, seq in sources.items():
        until |= Q(run=pk, seq__lte=seq)
    measured = Measurement.objects.filter(until, round=0, cause__in=("", *LASTING))
    columns = ("run", "seq", "operator", "sketch", "choices", "seconds", "identity", "cause", "round")
    found = {}
    for rows, order, limit in (
        (measured.filter(seconds__isnull=False), [F("seconds").asc(), F("seq").asc()], (most + 1) // 2),
        (measured, [F("seq").desc()], most),
    ):
        rank = Window(RowNumber(), partition_by=[F("run"), F("operator")], order_by=order)
        for row in rows.order_by().annotate(rank=rank).filter(rank__lte=limit).values(*columns):
            found[row["run"], row["seq"]] = row
    place = {pk: number for number, pk in enumerate(sources)}
    return sorted(found.values(), key=lambda row: (place[str(row["run"])], -row["seq"]))
