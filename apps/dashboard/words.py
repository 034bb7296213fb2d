"""What the engine's short names are called on pages; the run page's scripts are handed `PAGE`."""

from __future__ import annotations

import math

from apps.core import clock
from apps.dashboard import humans
from apps.tuning.models import Job, TuningRun

RULES = {
    "rescue": "nothing valid yet",
    "gamma": "its first slot",
    "bonus": "uncertain, worth a look",
    "belief": "largest gain expected",
    "round_robin": "its turn",
    "sequential": "next in order",
    "random": "by chance",
    "linear": "behind its share of the work",
    "warm_up": "its first slot",
    "epsilon": "by chance, to explore",
    "greedy": "largest gain expected",
    "softmax": "by chance, larger gains more often",
    "gradient": "steepest descent",
    "tie": "all alike",
    "oracle": "known to pay",
    "remainder": "what is left",
}
"""Why a scheduler chose an operator."""

SPENT = {
    "build": "building",
    "measure": "measuring",
    "search": "searching",
    "decision": "deciding",
    "wait": "waiting",
    "start": "starting up",
    "bookkeeping": "keeping books",
    "overhead": "overhead",
    "checkpoint": "saving",
}
"""What the clock went into."""

REASONS = {
    "seconds": "time is up",
    "trials": "all trials used",
    "target": "target latency reached",
    "gain": "little more to gain",
    "exhausted": "everything was tried",
    "stopped": "stopped",
}
"""Why a run ended."""

CAUSES = {
    "invalid": "not a valid program",
    "build": "did not compile",
    "crash": "crashed",
    "timeout": "took too long",
    "memory": "out of memory",
    "run": "failed while it ran",
    "device": "the device failed",
}
"""Why a configuration has no latency."""

PAGE = {"rules": RULES, "spent": SPENT, "reasons": REASONS}


def named(words: dict[str, str], name: str) -> str:
    """A name that has no words of its own says itself."""
    return words.get(name) or name.replace("_", " ")


def again(job: Job | None) -> str:
    """When a job whose last attempt got nowhere is tried again; empty for others, and when that time has come."""
    left = (job.again - clock.now()).total_seconds() if job and job.again else 0.0
    return f"tries again in {humans.duration(math.ceil(left))}" if left > 0 else ""


def ending(run: TuningRun) -> str:
    """A run's state, and why it ended."""
    reason = REASONS.get(run.finished_reason)
    return f"{run.job.state}: {reason}" if run.job.state == "done" and reason else run.job.state
