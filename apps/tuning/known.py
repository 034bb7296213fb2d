"""What earlier runs of the same owner on the same machine found, for a new one to start from."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.tuning.models import Measurement, Operator, TuningRun
from apps.tuning.transitions import Numbers
from workers.messages.known import FEWEST, LASTING, Name, Point, points_of, records, room, share

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
    same = {
        str(pk)
        for pk in TuningRun.objects.filter(pk__in=list(sources), network=run.network_id).values_list("pk", flat=True)
    }
    own = {name for (source, _), name in names.items() if source in same}
    asked = [name for name in names.values() if not own or name in own]
    # An operator that many runs have needs less of each.
    distinct = len(set(asked))
    most = max(FEWEST, share(distinct) * distinct // max(len(asked), 1))
    for source, seq in sources.items():
        for index in (index for run_, index in names if run_ == source):
            name = names[source, index]
            found[name] += points_of(_rows(UUID(source), seq, index, room(name, own, most)))[::-1]
    return records(found, own)


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
    same = Q(network=run.network_id)
    latest = [
        row
        for some in (same, ~same)
        for row in earlier.filter(some)
        .order_by("-created")
        .values_list("created", "pk", "machine", "job__last_seq")[:LOOKED_AT]
    ]
    # What an operator's space says of the machine is compared in the child; here it is not to fill the places.
    fitting = [row for row in latest if _machine(row[2]) == _machine(run.machine)][:SOURCES]
    return [[str(pk), seq] for _, pk, _, seq in sorted(fitting, key=itemgetter(0), reverse=True)]


def _machine(machine: dict[str, Any]) -> tuple[Any, Any]:
    return machine["tvm"], machine["threads"]


def _rows(run: UUID, until: int, operator: int, most: int) -> list[dict[str, Any]]:
    """The operator's fastest and its newest measurements up to a number, in their order: among these are the later rounds of
    a run's end.

    Operator by operator, as the index is: ranked in one query, all measurements of all runs would be sorted, and
    whoever writes to SQLite would wait for it. The fastest are those of over 0 s, which is as narrow as their numbers: of
    those that have any SQLite would look through all by number, and put them in order.
    """
    columns = ("seq", "sketch", "choices", "seconds", "identity", "cause", "round")
    rows = Measurement.objects.filter(run=run, operator=operator, seq__lte=until, cause__in=("", *LASTING))
    fastest = rows.filter(seconds__gt=0).order_by("seconds", "seq")[: (most + 1) // 2]
    found: dict[int, dict[str, Any]] = {}
    for some in (fastest, rows.order_by("-seq")[:most]):
        found.update((row["seq"], row) for row in some.values(*columns))
    return [found[seq] for seq in sorted(found)]
