"""What a queued run waits for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core import clock
from apps.tuning import dispatch, services, waiting
from apps.tuning.models import Job, Outbox, TuningRun
from apps.tuning.reconcile import PATIENCE
from apps.tuning.turns import END, TURN
from apps.tuning.waiting import Wait, wait_of
from tests.apps.rows import Site
from tests.apps.tuning.test_pauses import crash
from workers.messages.spec import Budget

LATER = timedelta(seconds=1)


def waits(now: datetime | None = None) -> dict[Any, Wait]:
    """Of all that wait."""
    return waiting.waits(set(Job.objects.values_list("pk", flat=True)), now)


def test_those_that_have_the_machine_and_those_asked_for_earlier_come_first(site: Site) -> None:
    running, first, second = (site.run(budget=Budget(seconds=seconds)) for seconds in (100, 200, 300))
    assert services.claim(running.job_id)
    TuningRun.objects.filter(pk=running.pk).update(clock=40.0)
    assert waits() == {first.job_id: Wait(1, 60.0, True), second.job_id: Wait(2, 260.0, True)}
    with CaptureQueriesContext(connection) as asked:
        assert waiting.waits({second.job_id}) == {second.job_id: Wait(2, 260.0, True)}, (
            "of others nothing is worked out"
        )
    assert len(asked) == 1


def test_another_account_has_the_machine_for_a_turn_at_most(site: Site) -> None:
    """An own run keeps it to its end."""
    long = site.run(budget=Budget(seconds=30 * 86400))
    site.run(budget=Budget(seconds=1000))
    assert services.claim(long.job_id)
    run = site.bobs(Budget(seconds=60))
    turn = TURN.total_seconds()
    assert waits()[run.job_id] == Wait(1, turn, True), "the second of hers comes after it"
    own = site.run()
    assert waits()[own.job_id] == Wait(3, 30 * 86400 + 1000 + 60, True)
    second = site.bobs(Budget(seconds=60))
    assert waits()[second.job_id] == Wait(2, 60 + 2 * turn, True), "a turn of hers before each of his"


def test_what_is_told_is_in_the_order_in_which_accounts_have_their_turns(site: Site) -> None:
    """Whoever asked first: who had the machine last comes last."""
    had, hers = site.run(budget=Budget(seconds=60)), site.run(budget=Budget(seconds=100))
    his = site.bobs(Budget(seconds=200))
    assert {key: (wait.before, wait.seconds) for key, wait in waits().items()} == {
        had.job_id: (0, 0.0),
        hers.job_id: (2, 260.0),
        his.job_id: (1, 60.0),
    }
    held = services.claim(had.job_id)
    assert held is not None
    services.conclude(held, "finished")
    assert waits() == {hers.job_id: Wait(1, 200.0, True), his.job_id: Wait(0, 0.0, True)}
    claimed = services.claim(hers.job_id)
    assert claimed is not None
    assert claimed.job_id == his.job_id


def test_own_runs_of_several_turns_give_others_as_many(site: Site) -> None:
    first, second = (site.run(budget=Budget(seconds=3600)) for _ in range(2))
    site.bobs(Budget(seconds=30 * 86400))
    assert services.claim(first.job_id)
    turns = (3600 - END) // TURN.total_seconds() + 1
    assert waits()[second.job_id] == Wait(2, 3600 + turns * TURN.total_seconds(), True)


def test_how_long_is_not_said_where_a_limit_does_not_tell(site: Site) -> None:
    _, run = site.run(budget=Budget(trials=100)), site.run()
    assert waits()[run.job_id] == Wait(1, None, True)


def test_other_work_of_the_machine_is_no_run(site: Site) -> None:
    Job.objects.create(task="hardware", target=site.target)
    Job.objects.create(task="inspect", network=site.network)
    run = site.run()
    assert waits() == {run.job_id: Wait(0, 0.0, True)}


def test_a_machine_that_is_being_measured_comes_first(site: Site) -> None:
    job = Job.objects.create(task="hardware", target=site.target)
    run = site.run()
    assert services.claim(job.pk)
    assert waits() == {run.job_id: Wait(0, 0.0, True, machine=True)}


def test_what_nobody_takes_is_answered_by_no_worker(site: Site) -> None:
    run, now = site.run(), clock.now()
    assert waits(now + PATIENCE - LATER)[run.job_id].answered
    assert not waits(now + PATIENCE + LATER)[run.job_id].answered
    other = site.run()
    assert services.claim(other.job_id)
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


def test_that_no_worker_answers_is_said_of_a_message_that_is_sent_again_too(
    site: Site, django_capture_on_commit_callbacks: Any
) -> None:
    run, held, _ = site.claimed()
    services.request(run, site.ada, "pause")
    services.conclude(held, "paused")
    services.request(run, site.ada, "resume")
    Outbox.objects.update(sent_at=clock.now())
    now = clock.now() + PATIENCE + LATER
    assert not waits(now)[run.job_id].answered
    with django_capture_on_commit_callbacks(execute=True):
        assert services.reconcile(now)["resent"]
    assert not waits(now)[run.job_id].answered
    library = Job.objects.create(task="compile", owner=site.ada, run=run, attempt=1)
    for again in range(2):
        dispatch.queue(library)
        wait = wait_of(library, now)
        assert wait is not None
        assert not wait.answered, again


def test_the_message_of_an_attempt_after_a_pause_is_answered_when_that_is_over(site: Site) -> None:
    run, now = site.run(), clock.now()
    for _ in range(2):
        now = crash(run.job_id, now).again + LATER
    assert waits(now)[run.job_id].answered
    assert not waits(now + PATIENCE)[run.job_id].answered


def test_who_waits_for_the_next_attempt_waits_for_nobody(site: Site) -> None:
    run = site.run()
    held = services.claim(run.job_id)
    assert held is not None
    services.conclude(held, "crashed", "no space")
    assert waits() == {}
    assert run.job_id in waits(clock.now() + timedelta(seconds=11))
