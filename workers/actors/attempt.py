"""One attempt at a Job: claim it, supervise its child, conclude it."""

from __future__ import annotations

import logging
import signal
import threading
from dataclasses import replace

from workers.actors import site  # noqa: F401
from workers.actors.journal import DatabaseJournal, again
from workers.actors.lease import renewed
from workers.messages.channel import LeaseLost
from workers.messages.folders import remove_tree
from workers.messages.names import READING
from workers.supervision import Ending
from workers.supervision.terms import Unconfined, terms_of

from apps.core.errors import Refused  # isort: skip
from apps.tuning import services  # isort: skip

CHECK = "check the file with onnx.checker.check_model, or export it again"
ONNX = "export the network as .onnx and upload that"
KILLED = (-signal.SIGKILL, -signal.SIGTERM)
BEAT, PAUSE = 0.5, 2.5  # s: together less than what a worker has when the whole site is stopped

log = logging.getLogger(__name__)


class Attempts:
    """What the actors of one worker process do."""

    def __init__(self) -> None:
        self.leaving = threading.Event()
        self._claiming = threading.Lock()

    def at(self, job_id: str) -> None:
        """Attempts the Job, unless somebody else has it or it is not to be run any more.

        Of jobs that read a file it attempts, one after the other, those whose turn it is: one that had to wait for another of
        its account has had its message. Must run in a thread that outlives the child, as dramatiq's worker threads do.
        """
        if self.leaving.is_set():
            return  # the reconciler sends another message
        with self._claiming:  # two threads at once would both see an account that has nothing here
            claim = services.claim(job_id)
        if claim is None:
            log.info("job %s: nothing to claim", job_id)
        while claim is not None:
            self._attempt(claim)
            again = claim.task in READING and not self.leaving.is_set()
            claim = services.claim_read() if again else None

    def _attempt(self, claim: services.Claim) -> None:
        journal = DatabaseJournal(claim, self.leaving)
        try:
            try:
                ending = _supervised(claim, journal)
            finally:  # nobody needs it, and where it filled the disk, how the attempt ended could not be kept
                remove_tree(claim.work_dir)
            kind: str = ending.kind
            if self.leaving.is_set() and journal.ours and kind in ("paused", "crashed"):
                kind = "interrupted"
            elif journal.turned and kind == "paused":
                kind = "turn"
            state = again(claim, services.conclude, claim, kind, ending.detail, ending.log, ending.last)
        except LeaseLost as lost:
            log.warning("job %s: %s", claim.job_id, lost)
        else:
            log.info("job %s: %s, now %s %s", claim.job_id, kind, state or "another worker's", ending.detail)


def _supervised(claim: services.Claim, journal: DatabaseJournal) -> Ending:
    """Raises LeaseLost; whatever else goes wrong on this side is a crash of the attempt, with its reason."""
    try:
        with renewed(claim):  # the order of a run with many measurements can take longer than a lease lasts
            order = claim.order()
            terms = terms_of(order)
        ending = terms.supervise(order, journal, heartbeat=BEAT, pause=PAUSE)
    except LeaseLost:
        raise
    except Unconfined as error:  # the next attempt would find the same kernel
        return _refused(Ending("failed"), error.reason, error.next_step)
    except Exception as error:
        log.exception("%s %s", claim.task, claim.job_id)
        if claim.task == "convert" and isinstance(error, Refused):  # of what the child made, not of this side
            return _refused(Ending("failed"), f"converting the file broke off: {error.reason}", ONNX)
        return Ending("crashed", cause="start", detail=f"{type(error).__name__}: {error}")
    return _verdict(ending, claim.task) if claim.task in READING else ending


def _verdict(ending: Ending, task: str) -> Ending:
    """A file that breaks its reader is refused, not tried again.

    Except where the machine may be at fault: an inspection found it too busy, or something was killed from outside, as all of a
    site is that is stopped. A conversion has minutes, and its file may hang on purpose.
    """
    killed = ending.cause == "signal" and ending.exit_code in KILLED
    spared = ("start",) if task == "convert" else ("start", "time")
    if ending.kind != "crashed" or ending.cause in spared or killed:
        return ending
    word, next_step = ("converting", ONNX) if task == "convert" else ("reading", CHECK)
    return _refused(ending, f"{word} the file broke off: {ending.detail}", next_step)


def _refused(ending: Ending, reason: str, next_step: str) -> Ending:
    last = {"kind": "failed", "clock": 0.0, "error": "NetworkError", "reason": reason, "next_step": next_step}
    return replace(ending, kind="failed", last=last)
