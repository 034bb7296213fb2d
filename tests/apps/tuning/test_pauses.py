"""Attempts that got nowhere follow each other with growing pauses, and the page knows when the next one is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.core import clock
from apps.tuning import dispatch, endings, live, services
from apps.tuning.models import Job, TuningRun
from tests.apps.rows import Site
from workers.messages.names import ATTEMPTS

SECOND = timedelta(seconds=1)


def job_of(run: TuningRun) -> Job:
    return Job.objects.get(pk=run.job_id)


def crash(job_id: Any, now: datetime) -> Job:
    """An attempt that ends at once."""
    held = services.claim(job_id, now=now)
    assert held is not None
    services.conclude(held, "crashed", "no space left", now=now)
    return Job.objects.get(pk=job_id)


def pauses(job_id: Any) -> list[timedelta]:
    """How long a job that always crashes is left alone after each attempt."""
    now, found = clock.now(), []
    while (job := crash(job_id, now)).state == "queued":
        assert job.again is not None
        found.append(job.again - now)
        now = job.again + SECOND
    assert job.state == "failed"
    return found


@pytest.mark.parametrize("task", ["tune", "compile"])
def test_attempts_that_get_nowhere_follow_with_growing_pauses(site: Site, task: str) -> None:
    run = site.run()
    job = run.job if task == "tune" else Job.objects.create(task=task, owner=site.ada, run=run, network=site.network)
    found = pauses(job.pk)
    assert found == [timedelta(seconds=10), timedelta(seconds=60)]
    assert len(found) == ATTEMPTS - 1


def test_nobody_claims_it_and_no_message_is_sent_before_the_pause_is_over(site: Site) -> None:
    run, now = site.run(), clock.now()
    dispatch.deliver()
    again = crash(run.job_id, now).again
    assert again is not None
    for early in (now, again):
        assert services.claim(run.job_id, now=early) is None
        assert not any(services.reconcile(early).values())
    assert services.reconcile(again + SECOND)["sent"] == 1
    assert services.reconcile(again + 2 * SECOND)["sent"] == 0
    assert services.claim(run.job_id, now=again + SECOND) is not None


@pytest.mark.mutation
def test_attempts_without_a_pause_are_noticed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "PAUSES", (timedelta(0), timedelta(0)))
    with pytest.raises(AssertionError):
        test_attempts_that_get_nowhere_follow_with_growing_pauses(site, "tune")


@pytest.mark.mutation
def test_a_message_before_its_time_is_noticed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be taken, found too early, and lost until somebody misses it."""
    late = clock.now() + timedelta(days=1)
    monkeypatch.setattr(dispatch, "deliver", lambda now=None, deliver=dispatch.deliver, **only: deliver(late, **only))
    with pytest.raises(AssertionError):
        test_nobody_claims_it_and_no_message_is_sent_before_the_pause_is_over(site)


def test_who_measured_something_goes_on_at_once(site: Site) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5)])
    services.conclude(held, "crashed", "signal 11")
    assert (job_of(run).again, job_of(run).error) == (None, "attempt 1 crashed: signal 11")
    assert [line["error"] for line in live.snapshot(run)["log"] if line.get("error")] == [
        "attempt 1 crashed: signal 11"
    ]
    assert services.claim(run.job_id) is not None


def test_who_waited_for_a_dead_workers_lease_has_waited_enough(site: Site) -> None:
    run, _, _ = site.claimed()
    services.reconcile(clock.now() + timedelta(minutes=1))
    assert (job_of(run).state, job_of(run).again) == ("queued", None)
    assert services.claim(run.job_id) is not None


@pytest.mark.parametrize("words", [("pause", "resume"), ("pause",), ("stop",)])
def test_whoever_asks_for_something_need_not_wait(site: Site, words: tuple[Any, ...]) -> None:
    run = site.run()
    assert crash(run.job_id, clock.now()).again is not None
    for word in words:
        services.request(run, site.ada, word)
    job = job_of(run)
    assert (job.lease_until, job.error, job.next_step) == (None, "", "")
    assert (services.claim(run.job_id) is not None) is (words[-1] == "resume")


def test_the_page_is_told_why_and_when_and_no_more_once_it_runs(site: Site) -> None:
    run, now = site.run(), clock.now()
    crash(run.job_id, now)
    shown = live.snapshot(run)["run"]
    assert shown["again"] == (now + timedelta(seconds=10)).timestamp()
    assert shown["error"] == "attempt 1 of 3 got nowhere: no space left"
    told = run.events.filter(kind="state").order_by("seq").last()
    assert told is not None
    assert {name: told.payload[name] for name in ("again", "error")} == {
        name: shown[name] for name in ("again", "error")
    }
    assert services.claim(run.job_id, now=now + 11 * SECOND) is not None
    shown = live.snapshot(run)["run"]
    assert (shown["state"], shown["again"], shown["error"], shown["next_step"]) == ("running", None, "", "")
