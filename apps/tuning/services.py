"""The only door through which jobs and runs are changed.

For users: what of `requests` is named below; Refused is a user's mistake. may_remeasure and measured say whether there is a
use in asking, MAX_DIMENSION what is refused, TWICE what is a second press. For workers: claim or claim_read,
then Claim.order, write, heartbeat, conclude; they raise LeaseLost. For the launcher: reconcile, sweep, forget_uploads,
remeasure_if_changed. An upload is apps.catalog.services.create_network.
"""

# ruff: noqa: F401
# mypy: implicit-reexport

from __future__ import annotations

from apps.core.errors import Refused
from apps.tuning.journal import write
from apps.tuning.leases import Claim, claim, claim_read, conclude, heartbeat
from apps.tuning.reconcile import reconcile
from apps.tuning.requests.artifacts import measured, request_artifact
from apps.tuning.requests.baselines import request_baselines
from apps.tuning.requests.machines import (
    add_device,
    device_at,
    ensure_local_target,
    may_remeasure,
    remeasure,
    remeasure_if_changed,
    remove_device,
)
from apps.tuning.requests.removals import remove_library, remove_network
from apps.tuning.requests.runs import TWICE, create_run
from apps.tuning.requests.shapes import MAX_DIMENSION, choose_shapes
from apps.tuning.requests.words import request
from apps.tuning.sweep import forget_uploads, sweep
from workers.messages.channel import LeaseLost
