"""What a queued run waits for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core import clock
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from apps.tuning.reconcile import PATIENCE
from apps.tuning.turns import END, TURN
from apps.tuning.waiting import Wait, waits
from tests.apps.rows import Site
from workers.messages.spec import Budget

LATER = timedelta(seconds=1)


def test_those_that_have_the_machine_and_those_asked_for_earlier_come_first(site: Site) -> None:
    running, first, second = (site.run(budget=Budget(seconds=seconds)) for seconds in (100, 200, 300))
    assert services.claim(running.job_id, "worker")
    TuningRun.objects.filter(pk=running.pk).update(clock=40.0)
    assert waits() == {first.job_id: Wait(1, 60.0, True), second.job_id: Wait(2, 260.0, True)}
    with CaptureQueriesContext(connection) as asked:
        waits()
    assert len(asked) == 1


def test_another_account_has_the_machine_for_a_turn_at_most(site: Site) -> None:
    """An own run keeps it to its end."""
    long = site.run(budget=Budget(seconds=30 * 86400))
    site.run(budget=Budget(seconds=1000))
    assert services.claim(long.job_id, "worker")
    run = site.bobs(Budget(seconds=60))
    turn = TURN.total_seconds() + END
    assert waits()[run.job_id] == Wait(2, 2 * turn, True)
    own = site.run()
    assert waits()[own.job_id] == Wait(3, 30 * 86400 + 1000 + 60, True)


def test_how_long_is_not_said_where_a_limit_does_not_tell(site: Site) -> None:
    _, run = site.run(budget=Budget(trials=100)), site.run()
    assert waits()[run.job_id] == Wait(1, None, True)


def test_other_work_of_the_machine_is_no_run(site: Site) -> None:
    Job.objects.create(task="hardware", target=site.target)
    Job.objects.create(task="inspect", network=site.network)
    run = site.run()
    assert waits() == {run.job_id: Wait(0, 0.0, True)}


def test_what_nobody_takes_is_answered_by_no_worker(site: Site) -> None:
    run, now = site.run(), clock.now()
    assert waits(now + PATIENCE - LATER)[run.job_id].answered
    assert not waits(now + PATIENCE + LATER)[run.job_id].answered
    other = site.run()
    assert services.claim(other.job_id, "worker")
    assert waits(now + PATIENCE + LATER)[run.job_id].answered


def test_who_is_resumed_waits_from_then_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held, _ = site.claimed()
    services.request(run, site.ada, "pause")
    services.conclude(held, "paused")
    assert waits() == {}
    Job.objects.update(created=clock.now() - timedelta(days=1))
    services.request(run, site.ada, "resume")
    assert waits()[run.job_id].answered
    assert not waits(clock.now() + PATIENCE + LATER)[run.job_id].answered


def test_who_waits_for_the_next_attempt_waits_for_nobody(site: Site) -> None:
    run = site.run()
    held = services.claim(run.job_id, "worker")
    assert held is not None
    services.conclude(held, "crashed", "no space")
    assert waits() == {}
    assert run.job_id in waits(clock.now() + timedelta(seconds=11))
