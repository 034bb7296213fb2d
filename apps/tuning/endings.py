"""What becomes of a job when an attempt at it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from apps.tuning.models import Job, TuningRun
from apps.tuning.states import ACTIVE, State
from workers.messages.events import Event
from workers.messages.names import ATTEMPTS

PAUSES = (timedelta(seconds=10), timedelta(seconds=60))
"""Between `ATTEMPTS` that got nowhere: what passes, as a full disk or memory that others hold, takes time to pass."""
TURN = "its turn is over: others wait for the machine"
LONGEST = 4000
_WORK = {
    "inspect": "read the network", "convert": "convert the network", "hardware": "measure the machine",
    "compile": "compile the best so far", "baseline": "measure the baselines",
}  # fmt: skip
_WAIT = "wait, it is tried again by itself"
_ON = "wait, it goes on by itself from where it is"
_AGAIN = {
    "tune": "look at the log; resume to try again",
    "baseline": "look at the log, and have it measured again",
}


@dataclass(frozen=True)
class After:
    """A job's next state. `reason` is for its run, `error` and `next_step` are for the user; `fruitless` is what counts
    from now on; `pause` is how long nobody may claim it."""

    state: State
    fruitless: int
    reason: str = ""
    error: str = ""
    next_step: str = ""
    pause: timedelta | None = None


def after(job: Job, kind: str, detail: str = "", last: Event | None = None) -> After:
    """The first rule that fits. `kind` is workers.supervision.ports.EndingKind without "lost", or "interrupted" for a
    worker that is shut down, "expired" for one that went away, or "turn" for a run that makes room for others (`turns`);
    `last` is the child's farewell.
    """
    told = last or {}
    if job.answered:
        # However it left: its result is kept, or `error` says why it could not be, and another attempt has nothing to do.
        return After(State.FAILED if job.error else State.DONE, job.fruitless, "", job.error, job.next_step)
    if kind == "failed":
        error, next_step = plain(told.get("reason") or detail), plain(told.get("next_step", ""))
        return After(State.FAILED, job.fruitless, error=error[:LONGEST], next_step=next_step[:LONGEST])
    if job.task == Job.Task.COMPILE and kind == "stopped" and job.wanted == Job.Wanted.STOP:
        return After(State.DONE, job.fruitless)
    if job.task == Job.Task.BASELINE and job.wanted == Job.Wanted.STOP and kind != "finished":
        # Its run was paused, which was no attempt's fault, and may have been stopped since then.
        return After(State.DONE if _unwanted(job.run) else State.QUEUED, max(0, job.fruitless - 1))
    if job.task != Job.Task.TUNE and kind in ("finished", "paused", "stopped"):
        # The code of an uploaded file may say any farewell: nobody can pause what is no run, and tried again it would say
        # it again.
        error = f"the process that was to {_WORK[job.task]} ended without a result"
        look = "try again; if that does not help, look at the log of the worker"
        return After(State.FAILED, job.fruitless, error=error, next_step=look)
    if kind == "finished":
        return After(State.DONE, job.fruitless, plain(told.get("reason", "")))
    if kind == "stopped" or job.state == State.STOPPING or job.wanted in (Job.Wanted.STOP, Job.Wanted.KEEP):
        return After(State.DONE, job.fruitless, "stopped")
    if job.wanted == Job.Wanted.PAUSE:
        return After(State.PAUSED, fruitless=0)
    return _again(job, kind, plain(detail))


def _unwanted(run: TuningRun | None) -> bool:
    """Whether it was stopped, and nothing of it is kept: then what it would be compared with is asked for no more."""
    if run is None or run.job.state != State.DONE or run.finished_reason != "stopped":
        return False
    return not Job.objects.filter(run=run, task=Job.Task.COMPILE, state__in=ACTIVE).exists()


def _again(job: Job, kind: str, detail: str) -> After:
    """It is to go on, and does, unless too many attempts got nowhere."""
    if kind == "interrupted":
        return After(State.INTERRUPTED, max(0, job.fruitless - 1))
    if kind == "paused":
        return After(State.QUEUED, fruitless=0)
    if job.fruitless >= ATTEMPTS:
        reason = f"{ATTEMPTS} attempts in a row got nowhere; the last one: {detail or TURN}"
        return After(State.FAILED, job.fruitless, error=reason, next_step=_AGAIN.get(job.task, "ask for it again"))
    if kind == "turn":
        return After(State.QUEUED, job.fruitless, error=TURN, next_step=_ON)
    if kind == "crashed" and job.fruitless:
        # Not of one that expired: who waited for a lease to run out has waited enough.
        error = f"attempt {job.fruitless} of {ATTEMPTS} got nowhere: {detail}"[:LONGEST]
        return After(State.QUEUED, job.fruitless, error=error, next_step=_WAIT, pause=PAUSES[job.fruitless - 1])
    if kind == "crashed":  # it got on, and does so at once: who looks is to know why it began again
        error = f"attempt {job.attempt} crashed: {detail}"[:LONGEST]
        return After(State.QUEUED, job.fruitless, error=error, next_step=_WAIT)
    return After(State.QUEUED, job.fruitless)


def plain(said: object) -> str:
    """As the database takes it: a child may say anything, half characters and NUL too."""
    return str(said).encode(errors="replace").decode().replace("\0", "")
