"""A lease kept by a thread of its own, while ours is busy for longer than it lasts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from workers.actors import site  # noqa: F401
from workers.messages.channel import LeaseLost

from apps.tuning import services  # isort: skip

RENEWAL = 5.0  # s between two looks at the lease

log = logging.getLogger(__name__)


@contextmanager
def renewed(claim: services.Claim) -> Iterator[None]:
    """Keeps the lease meanwhile. A lost one ends the renewing and nothing else: the next write finds out."""
    over = threading.Event()
    thread = threading.Thread(target=_renew, args=(claim, over), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _renew(claim: services.Claim, over: threading.Event) -> None:
    try:
        while not over.wait(RENEWAL):
            try:
                services.heartbeat(claim)
            except (DatabaseError, InterfaceError) as error:
                # SQLite is locked while others write; the lease lasts for several looks.
                log.warning("%s %s: the lease was not renewed: %s", claim.task, claim.job_id, error)
                close_old_connections()  # of a server that restarted
    except LeaseLost:
        pass
    finally:
        connections.close_all()  # this thread's
