"""The only door through which jobs and runs are changed.

For users: create_run, choose_shapes, request, request_artifact, request_baselines, ensure_local_target, remeasure,
device_at, add_device, remove_device, remove_network, remove_library; they raise Refused for a user's mistake;
may_remeasure and measured say whether there is a use in asking, MAX_DIMENSION and MAX_TRIALS what is refused, TWICE what
is a second press. For workers: claim or claim_read, then Claim.order, write, heartbeat, conclude; they raise LeaseLost.
For the launcher: reconcile, sweep, forget_uploads, remeasure_if_changed. An upload is apps.catalog.services.create_network.
"""

from __future__ import annotations

from apps.core.errors import Refused
from apps.tuning.journal import write
from apps.tuning.leases import Claim, LeaseLost, claim, claim_read, conclude, heartbeat
from apps.tuning.reconcile import reconcile
from apps.tuning.requests import (
    MAX_DIMENSION,
    MAX_TRIALS,
    TWICE,
    add_device,
    choose_shapes,
    create_run,
    device_at,
    ensure_local_target,
    may_remeasure,
    measured,
    remeasure,
    remeasure_if_changed,
    remove_device,
    remove_library,
    remove_network,
    request,
    request_artifact,
    request_baselines,
)
from apps.tuning.sweep import forget_uploads, sweep

__all__ = [
    "MAX_DIMENSION",
    "MAX_TRIALS",
    "TWICE",
    "Claim",
    "LeaseLost",
    "Refused",
    "add_device",
    "choose_shapes",
    "claim",
    "claim_read",
    "conclude",
    "create_run",
    "device_at",
    "ensure_local_target",
    "forget_uploads",
    "heartbeat",
    "may_remeasure",
    "measured",
    "reconcile",
    "remeasure",
    "remeasure_if_changed",
    "remove_device",
    "remove_library",
    "remove_network",
    "request",
    "request_artifact",
    "request_baselines",
    "sweep",
    "write",
]
