"""What users delete to make room."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.catalog.models import Network
from apps.core.errors import Refused
from apps.core.full_disk import with_reserve
from apps.tuning.models import Artifact, Job, TuningRun
from apps.tuning.requests.queue import end_waiting, locked
from apps.tuning.states import ACTIVE
from apps.tuning.sweep import forget
from apps.tuning.transitions import tell


@with_reserve
def remove_network(network: Network, owner: Any) -> None:
    """Takes it from its owner, with its runs, their logs and their libraries; reconcile deletes them (remains), a sweep the
    files, as others may have them too. What waits beside runs that do not go on is not done. Raises Refused while something
    else waits or works on it."""
    with transaction.atomic():
        # In the order in which workers lock them. Who asks for something new of these finds that they are nobody's.
        jobs = Job.objects.filter(network=network)
        list(jobs.select_for_update(no_key=True).values_list("pk"))
        row = Network.objects.select_for_update(no_key=True).filter(pk=network.pk, owner=owner)
        if row.first() is None:
            raise Refused(network.pk, "there is no such network", "choose one of yours")
        end_waiting(jobs.exclude(run__job__state__in=ACTIVE))
        if jobs.filter(state__in=ACTIVE).exists():
            next_step = "stop its runs, and what is compiled of them, on their pages, or wait until it is done"
            raise Refused(network.name, "something waits or works on it", next_step)
        row.update(owner=None)
        TuningRun.objects.filter(network=network).update(owner=None)
        jobs.update(owner=None)


@with_reserve
def remove_library(artifact: Artifact, owner: Any) -> None:
    """Deletes a compiled library, which its run's pages are told; it can be compiled again. Raises Refused."""
    if artifact.run.owner_id != owner.pk:
        raise Refused(artifact.pk, "there is no such library", "choose one of yours")
    with transaction.atomic():
        locked(artifact.run, owner)
        tell(artifact.run, "artifact", state="deleted")
        forget(Artifact.objects.filter(pk=artifact.pk))
