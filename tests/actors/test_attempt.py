"""What an attempt does before it has a child."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.core import clock
from apps.tuning import services
from apps.tuning.leases import Claim
from apps.tuning.models import Job
from tests.apps.rows import Site
from tests.operations.running import eventually
from workers.actors import attempt
from workers.actors.journal import DatabaseJournal


@pytest.fixture
def held(transactional_db: None, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Claim:
    """Of a lease that is nearly over."""
    monkeypatch.setattr(attempt, "RENEWAL", 0.02)
    held = services.claim(Site().run().job_id, "worker", now=clock.now() - timedelta(seconds=29))
    assert held is not None
    return held


def test_the_lease_is_renewed_while_an_order_is_made(held: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run with many measurements that takes longer than a lease lasts."""
    lease = lambda: Job.objects.values_list("lease_until", flat=True).get(pk=held.job_id)  # noqa: E731
    before = lease()

    def slow(self: Claim) -> dict[str, Any]:
        eventually(lambda: lease() > before + timedelta(seconds=20), 20, "the renewal")
        raise RuntimeError("that is enough")

    monkeypatch.setattr(Claim, "order", slow)
    ending = attempt._supervised(held, DatabaseJournal(held, threading.Event()))
    assert (ending.kind, ending.detail) == ("crashed", "RuntimeError: that is enough")
    assert not [thread for thread in threading.enumerate() if thread.name == "lease"]


def test_an_attempt_that_lost_its_lease_meanwhile_writes_nothing(held: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: Claim) -> dict[str, Any]:
        Job.objects.filter(pk=held.job_id).update(fence=held.fence + 1)
        eventually(lambda: not [thread for thread in threading.enumerate() if thread.name == "lease"], 20, "the end")
        raise RuntimeError("too late")

    monkeypatch.setattr(Claim, "order", slow)
    attempt._supervised(held, DatabaseJournal(held, threading.Event()))
    assert Job.objects.get(pk=held.job_id).lease_until < clock.now() + timedelta(seconds=20)
