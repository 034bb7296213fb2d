"""What users delete to make room. Files go with the next sweep, as others may have them too."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from apps.catalog.models import Network
from apps.core.errors import Refused
from apps.core.full_disk import with_reserve
from apps.tuning.models import Artifact, Job
from apps.tuning.states import ACTIVE


@with_reserve
def remove_network(network: Network, owner: Any) -> None:
    """Deletes it with its runs, their logs and their libraries. Raises Refused while something works on it."""
    if network.owner_id != owner.pk:
        raise Refused(network.pk, "there is no such network", "choose one of yours")
    try:
        with transaction.atomic():
            # Locked: a worker that claims one of them meanwhile finds it gone.
            jobs = list(Job.objects.select_for_update().filter(network=network))
            if any(job.state in ACTIVE for job in jobs):
                raise Refused(
                    network.name, "something waits or works on it", "stop its runs first, or wait until it is done"
                )
            Network.objects.filter(pk=network.pk).delete()
    except IntegrityError as error:  # found at the commit
        reason, next_step = "something was just started on it", "stop that first, or wait until it is done"
        raise Refused(network.name, reason, next_step) from error


@with_reserve
def remove_library(artifact: Artifact, owner: Any) -> None:
    """Deletes a compiled library; its run can be compiled again."""
    if artifact.run.owner_id != owner.pk:
        raise Refused(artifact.pk, "there is no such library", "choose one of yours")
    Artifact.objects.filter(pk=artifact.pk).delete()
