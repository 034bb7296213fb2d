"""One attempt at a Job: claim it, supervise its child, conclude it."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import nullcontext
from dataclasses import replace

from workers.actors import site  # noqa: F401
from workers.actors.journal import DatabaseJournal
from workers.sandbox.lock import MeasureLock
from workers.supervision import Ending, LeaseLost
from workers.supervision.terms import terms_of

from apps.tuning import services  # isort: skip

READING = ("inspect", "convert")  # an uploaded file, which may mean harm
BEAT, PAUSE = 0.5, 2.5  # s: together less than what a worker has when the whole site is stopped

log = logging.getLogger(__name__)


class Attempts:
    """What the actors of one worker process do. `name` says on a page who has the Job."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.leaving = threading.Event()

    def at(self, job_id: str) -> None:
        """Attempts the Job, unless somebody else has it or it is not to be run any more.

        Must run in a thread that outlives the child, as dramatiq's worker threads do.
        """
        if self.leaving.is_set():
            return  # the reconciler sends another message
        claim = services.claim(job_id, self.name)
        if claim is None:
            log.info("job %s: nothing to claim", job_id)
            return
        journal = DatabaseJournal(claim, self.leaving)
        try:
            ending = _supervised(claim, journal)
            ours = self.leaving.is_set() and journal.asked == "continue" and ending.kind in ("paused", "crashed")
            kind = "interrupted" if ours else ending.kind
            services.conclude(claim, kind, ending.detail, ending.log, ending.last)
        except (services.LeaseLost, LeaseLost) as lost:
            log.warning("job %s: %s", job_id, lost)
        else:
            log.info("job %s: %s %s", job_id, kind, ending.detail)


def _supervised(claim: services.Claim, journal: DatabaseJournal) -> Ending:
    """Raises LeaseLost; whatever else goes wrong on this side is a crash of the attempt, with its reason."""
    try:
        order = claim.order()
        terms = terms_of(order)
        # A confined inspection has no way to the lock; the others take it themselves around what is timed or compiled.
        with MeasureLock().shared() if claim.task in READING else nullcontext():
            ending = terms.supervise(order, journal, heartbeat=BEAT, pause=PAUSE)
    except (services.LeaseLost, LeaseLost):
        raise
    except Exception as error:
        log.exception("%s %s", claim.task, claim.job_id)
        return Ending("crashed", cause="start", detail=f"{type(error).__name__}: {error}")
    if journal.answered and ending.kind == "crashed":
        return replace(ending, kind="finished", detail="")  # a short task says its result, and no farewell
    return _verdict(ending) if claim.task in READING else ending


def _verdict(ending: Ending) -> Ending:
    """A file that breaks its reader is refused, not tried again.

    Except where the machine may be at fault: it was too busy, or something was killed from outside.
    """
    killed = ending.cause == "signal" and ending.exit_code == -signal.SIGKILL
    if ending.kind != "crashed" or ending.cause in ("start", "time") or killed:
        return ending
    last = {
        "kind": "failed",
        "clock": 0.0,
        "error": "NetworkError",
        "reason": f"reading the file broke off: {ending.detail}",
        "next_step": "check the file with onnx.checker.check_model, or export it again",
    }
    return replace(ending, kind="failed", last=last)
