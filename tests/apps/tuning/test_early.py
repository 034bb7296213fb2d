"""Baselines of runs whose turn has not come hold up nobody, and are there when it comes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.catalog.models import Network
from apps.core import clock
from apps.tuning import services
from apps.tuning.models import Job, Outbox, TuningRun
from apps.tuning.requests.limits import MAX_ACTIVE_JOBS
from apps.tuning.requests.queue import enqueue
from tests.apps.rows import Site
from workers.messages.baselines import BASELINES
from workers.messages.spec import Budget

MINUTE = timedelta(minutes=1)
SHORT = Budget(seconds=60)


def baseline_of(run: TuningRun) -> Job:
    return Job.objects.get(run=run, task="baseline", state__in=("queued", "running"))


def taken(run: TuningRun) -> services.Claim | None:
    return services.claim(baseline_of(run).pk)


@pytest.fixture
def bobs(site: Site) -> list[TuningRun]:
    """Three runs that wait while one of ada's has the machine, of different work."""
    hers = site.run()
    assert services.claim(hers.job_id) is not None
    Job.objects.filter(run=hers).update(state="done")
    runs = []
    for size in (1, 2, 3):
        Network.objects.filter(owner=site.bob).update(shapes={"x": [size, 3, 8, 8]})
        runs.append(site.bobs(SHORT))
    return runs


def sent(run: TuningRun) -> bool:
    """Whether its baselines' message is on its way."""
    return Outbox.objects.filter(job=baseline_of(run), sent_at=None).exists()


def test_baselines_of_a_paused_run_wait_until_it_goes_on(site: Site, bobs: list[TuningRun]) -> None:
    for run in bobs:
        services.request(run, site.bob, "pause")
    assert [taken(run) for run in bobs] == [None] * 3
    Outbox.objects.update(sent_at=clock.now())
    Job.objects.filter(state="running").update(lease_until=clock.now() + 2 * MINUTE)
    assert services.reconcile(clock.now() + MINUTE)["resent"] == 0
    services.request(bobs[1], site.bob, "resume")
    assert [sent(run) for run in bobs] == [False, True, False]
    assert taken(bobs[1]) is not None


def test_of_runs_that_wait_for_the_machine_the_next_one_alone_has_its_baselines_taken(bobs: list[TuningRun]) -> None:
    assert [taken(run) is not None for run in bobs] == [True, False, False]
    Job.objects.filter(task="tune", state="running").update(state="done")
    Outbox.objects.update(sent_at=clock.now())
    assert services.claim(bobs[0].job_id) is not None
    assert [sent(run) for run in bobs] == [False, True, False]
    assert [taken(run) is not None for run in bobs[1:]] == [True, False]


def test_a_run_that_is_claimed_has_its_baselines_taken_whoever_is_next(site: Site, bobs: list[TuningRun]) -> None:
    assert taken(bobs[2]) is None
    Job.objects.filter(pk=bobs[2].job_id).update(state="running")
    assert taken(bobs[2]) is not None


def test_lines_that_another_run_has_are_taken_before_a_runs_turn(site: Site, bobs: list[TuningRun]) -> None:
    """They cost nothing."""
    held = taken(bobs[0])
    assert held is not None
    Network.objects.filter(owner=site.bob).update(shapes={"x": [1, 3, 8, 8]})
    twin = site.bobs(SHORT)
    told = [
        {"kind": "baseline", "clock": 1.0, "threads": 2, "spread": 0.0, "name": name, "seconds": 1.0}
        for name in BASELINES
    ]
    services.write(held, [*told, {"kind": "result", "clock": 1.0, "task": "baseline"}])
    services.conclude(held, "finished")
    assert taken(twin) is None
    twin.refresh_from_db()
    assert len(twin.baselines) == len(BASELINES)
    assert Job.objects.get(run=twin, task="baseline").claimed is None, "it was nobody's turn"


def test_lines_that_another_run_has_keep_nobody_waiting_and_wait_for_nobody(site: Site, bobs: list[TuningRun]) -> None:
    """Though it is the turn of another account, whose own message is still to come."""
    Job.objects.filter(task="baseline").exclude(run=bobs[2]).update(state="done")
    TuningRun.objects.filter(pk=bobs[0].pk).update(baselines=[{"name": name, "seconds": 1.0} for name in BASELINES])
    TuningRun.objects.filter(pk=bobs[2].pk).update(shapes=bobs[0].shapes)
    library = enqueue("compile", site.ada, run=TuningRun.objects.get(owner=site.ada), network=site.network)
    Job.objects.filter(owner=site.bob, task="baseline", state="done").update(claimed=clock.now())
    assert taken(bobs[2]) is None
    bobs[2].refresh_from_db()
    assert len(bobs[2].baselines) == len(BASELINES)
    assert services.claim(library.pk) is not None


def test_a_library_whose_worker_died_has_its_place_though_others_wait(site: Site, bobs: list[TuningRun]) -> None:
    Job.objects.filter(task="baseline").update(state="done")
    library = enqueue("compile", site.ada, run=TuningRun.objects.get(owner=site.ada), network=site.network)
    assert services.claim(library.pk) is not None
    Job.objects.filter(pk=library.pk).update(lease_until=clock.now() - MINUTE)
    assert services.claim(library.pk) is not None


def test_whoever_asks_for_a_place_looks_at_no_early_baselines_one_by_one(site: Site, bobs: list[TuningRun]) -> None:
    """Of paused runs alone an account may have a hundred: libraries waited for a second for each twenty."""
    for run in bobs:
        services.request(run, site.bob, "pause")
    library = enqueue("compile", site.ada, run=TuningRun.objects.get(owner=site.ada), network=site.network)
    Job.objects.filter(owner=site.ada, task="baseline").update(claimed=clock.now())  # bob comes first
    with CaptureQueriesContext(connection) as asked:
        held = services.claim(library.pk)
    assert held is not None
    assert held.job_id == library.pk
    early = [key for run in bobs for key in (str(baseline_of(run).pk), baseline_of(run).pk.hex)]
    assert not [query["sql"] for query in asked if any(key in query["sql"] for key in early)]


def test_what_was_asked_for_again_is_taken_of_a_paused_run_too(site: Site, bobs: list[TuningRun]) -> None:
    run = bobs[2]
    baseline = Job.objects.filter(run=run, task="baseline")
    baseline.update(state="failed")
    services.request(run, site.bob, "pause")
    services.request_baselines(run, site.bob)
    assert taken(run) is not None


def test_what_waits_for_paused_runs_leaves_an_account_its_room(site: Site, bobs: list[TuningRun]) -> None:
    for _ in range(MAX_ACTIVE_JOBS - 6):
        enqueue("baseline", site.bob, network=bobs[0].network)
    with pytest.raises(services.Refused, match="60: an account has at most 60 jobs"):
        site.bobs(SHORT)
    services.request(bobs[0], site.bob, "pause")
    site.bobs(SHORT)


def test_the_message_of_what_is_to_wait_keeps_nobody_from_writing(site: Site, bobs: list[TuningRun]) -> None:
    services.request(bobs[2], site.bob, "pause")
    for run in bobs[:2]:
        services.request(run, site.bob, "stop")
    with CaptureQueriesContext(connection) as asked:
        assert taken(bobs[2]) is None
    assert not [query["sql"] for query in asked if query["sql"].startswith(("SAVEPOINT", "UPDATE"))]


def test_reconcile_sends_what_has_come_to_its_turn_meanwhile(site: Site, bobs: list[TuningRun]) -> None:
    Outbox.objects.update(sent_at=clock.now())
    services.request(bobs[0], site.bob, "stop")
    rows = [Outbox.objects.get(job=baseline_of(run)).pk for run in bobs[1:]]
    services.reconcile(clock.now() + MINUTE)
    assert [Outbox.objects.filter(pk=row).exists() for row in rows] == [False, True]


def test_baselines_of_which_an_attempt_ended_wait_for_their_runs_turn(site: Site, bobs: list[TuningRun]) -> None:
    baseline = baseline_of(bobs[0])
    Job.objects.filter(pk=baseline.pk).update(attempt=1)
    assert taken(bobs[0]) is None
    Job.objects.filter(task="tune", state="running").update(state="done")
    assert services.claim(bobs[0].job_id) is not None
    assert taken(bobs[0]) is not None


def test_baselines_beside_another_accounts_run_are_told_to_be_brief(site: Site, bobs: list[TuningRun]) -> None:
    held = taken(bobs[0])
    assert held is not None
    assert held.order()["beside"]
    Job.objects.filter(task="tune", state="running").update(state="done")
    assert services.claim(bobs[0].job_id) is not None
    assert not held.order()["beside"]
