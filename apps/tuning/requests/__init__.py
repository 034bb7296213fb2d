"""What users ask for: runs, pauses, stops, artifacts, shapes, a new look at the machine."""

from apps.tuning.requests.artifacts import being_compiled, compile_if_measured, measured, request_artifact
from apps.tuning.requests.baselines import being_taken, request_baselines, taken_meanwhile, waiting_for
from apps.tuning.requests.limits import MAX_ACTIVE_JOBS, MAX_ACTIVE_RUNS, check_jobs
from apps.tuning.requests.machines import (
    add_device,
    device_at,
    ensure_local_target,
    may_remeasure,
    remeasure,
    remeasure_if_changed,
    remove_device,
)
from apps.tuning.requests.queue import enqueue
from apps.tuning.requests.removals import remove_library, remove_network
from apps.tuning.requests.runs import MAX_TRIALS, TWICE, create_run
from apps.tuning.requests.shapes import MAX_DIMENSION, choose_shapes
from apps.tuning.requests.words import request

__all__ = [
    "MAX_ACTIVE_JOBS",
    "MAX_ACTIVE_RUNS",
    "MAX_DIMENSION",
    "MAX_TRIALS",
    "TWICE",
    "add_device",
    "being_compiled",
    "being_taken",
    "check_jobs",
    "choose_shapes",
    "compile_if_measured",
    "create_run",
    "device_at",
    "enqueue",
    "ensure_local_target",
    "may_remeasure",
    "measured",
    "remeasure",
    "remeasure_if_changed",
    "remove_device",
    "remove_library",
    "remove_network",
    "request",
    "request_artifact",
    "request_baselines",
    "taken_meanwhile",
    "waiting_for",
]
