"""One attempt at a Job: claim it, supervise its child, conclude it."""

from __future__ import annotations

import logging
import tempfile
import threading
from dataclasses import replace
from typing import Any

from django.conf import settings

from workers.actors import site  # noqa: F401
from workers.actors.journal import DatabaseJournal
from workers.actors.terms import Terms, terms_of
from workers.supervision import Ending, LeaseLost, supervise

from apps.tuning import services  # isort: skip

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
            if self._handed_back(ending, journal):
                services.release(claim)
            elif ending.kind != "lost":
                services.conclude(claim, ending.kind, ending.detail, ending.log, ending.last)
        except (services.LeaseLost, LeaseLost) as lost:
            log.warning("job %s: %s", job_id, lost)
        else:
            log.info("job %s: %s %s", job_id, ending.kind, ending.detail)

    def _handed_back(self, ending: Ending, journal: DatabaseJournal) -> bool:
        return self.leaving.is_set() and journal.asked == "continue" and ending.kind in ("paused", "crashed")


def _supervised(claim: services.Claim, journal: DatabaseJournal) -> Ending:
    """Never raises for what is wrong on this side, except that the lease is lost: the Job gets the reason instead."""
    try:
        folder = settings.DATA_DIR / "scratch"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as scratch:
            order = claim.order()
            terms = terms_of(order, scratch)
            ending = _started(order, terms, journal, scratch)
        return _verdict(ending) if order["task"] == "inspect" else ending
    except (services.LeaseLost, LeaseLost):
        raise
    except Exception as error:
        log.exception("job %s", claim)
        return Ending("crashed", cause="start", detail=f"{type(error).__name__}: {error}")


def _started(order: dict[str, Any], terms: Terms, journal: DatabaseJournal, scratch: str) -> Ending:
    deadlines = replace(terms.deadlines, heartbeat=BEAT, pause=PAUSE)
    return supervise(
        order,
        journal,
        limits=terms.limits,
        access=terms.access,
        resident=terms.resident,
        env=terms.env,
        cwd=scratch,
        deadlines=deadlines,
    )


def _verdict(ending: Ending) -> Ending:
    """A file that breaks its reader is refused, not tried again; only what was killed from outside is."""
    if ending.kind != "crashed" or ending.cause == "start" or ending.exit_code == -9 and ending.cause == "signal":
        return ending
    last = {
        "kind": "failed",
        "clock": 0.0,
        "error": "NetworkError",
        "reason": f"reading the file broke off: {ending.detail}",
        "next_step": "check the file with onnx.checker.check_model, or export it again",
    }
    return replace(ending, kind="failed", last=last)
