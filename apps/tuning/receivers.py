"""What tuning does when the catalog changes."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from apps.catalog.models import Network
from apps.catalog.signals import network_added
from apps.tuning import quota
from apps.tuning.models import Job
from apps.tuning.requests.limits import check_jobs
from apps.tuning.requests.queue import enqueue


@receiver(network_added, sender=Network, dispatch_uid="inspect a new network")
def inspect(network: Network, uploaded: bool = False, **_: Any) -> None:
    """Every upload is inspected, by a worker's child; what is not ONNX yet is converted first, by another. Raises Refused
    for one that the account has no room for, or too much of that waits."""
    if uploaded:
        check_jobs(network.owner)
        quota.check_kept(network.owner, network.file_name, network.size)
    enqueue(Job.Task.CONVERT if network.unconverted else Job.Task.INSPECT, network.owner, network=network)
