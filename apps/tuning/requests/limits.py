"""How much of an account may wait or run at a time."""

from __future__ import annotations

from typing import Any

from apps.core.errors import Refused
from apps.tuning.accounts import lock_account
from apps.tuning.models import Job
from apps.tuning.states import ACTIVE, State
from apps.tuning.turns import LATER

MAX_ACTIVE_RUNS = 20
"""Of one owner, waiting or running."""
MAX_OPEN_RUNS = 100
"""The same with the paused ones: each may have something beside it that waits for it to go on."""
MAX_ACTIVE_JOBS = 3 * MAX_ACTIVE_RUNS
"""The same of runs, what they are compared with, libraries, and networks that are read."""


def check_active(owner: Any, resumed: Job | None = None) -> None:
    """Inside a transaction: raises Refused where one more run, and its baselines, would be too many; `resumed` is that."""
    check_jobs(owner, 2)
    runs = Job.objects.filter(owner=owner, task=Job.Task.TUNE)
    if resumed is not None:
        runs = runs.exclude(pk=resumed.pk)
    active, paused = (runs.filter(state__in=states).count() for states in (ACTIVE, (State.PAUSED,)))
    if active + paused >= MAX_OPEN_RUNS:
        reason = f"an account has at most {MAX_OPEN_RUNS} runs that wait, run or are paused"
        raise Refused(active + paused, reason, "stop some that are paused")
    if active >= MAX_ACTIVE_RUNS:
        reason = f"an account has at most {MAX_ACTIVE_RUNS} runs that wait or run"
        raise Refused(active, reason, "wait until one ends, or stop one")


def check_jobs(owner: Any, more: int = 1) -> None:
    """Inside a transaction: raises Refused where so many more of any kind would be too many."""
    lock_account(owner.pk)
    active = Job.objects.filter(owner=owner, state__in=ACTIVE).exclude(LATER).count()
    if active + more > MAX_ACTIVE_JOBS:
        reason = f"an account has at most {MAX_ACTIVE_JOBS} jobs that wait or run: runs, baselines, libraries, uploads"
        raise Refused(active, reason, "wait until some end, or stop a run")
