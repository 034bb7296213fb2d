"""Claims, requests, endings and what reconcile mends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from apps.catalog.models import Network, Target
from apps.catalog.services import create_network
from apps.core import clock
from apps.core.access import owned
from apps.core.errors import Refused
from apps.operations.management.commands.reconcile import Command as Reconcile
from apps.tuning import dispatch, leases, orders, reconcile, services
from apps.tuning.models import Artifact, Job, Outbox, TuningRun
from apps.tuning.requests import runs
from apps.tuning.requests.limits import MAX_ACTIVE_JOBS, MAX_ACTIVE_RUNS
from apps.tuning.requests.queue import enqueue
from apps.tuning.states import LEGAL, State, before
from apps.tuning.transitions import move
from tests.apps.rows import Site
from tests.apps.threads import in_threads
from workers.messages.baselines import BASELINES, PACKAGES
from workers.messages.machine import fingerprint
from workers.messages.names import TASKS_OF, THREADS
from workers.messages.orders import FUTILE
from workers.messages.spec import Budget, RunSpec

MINUTE = timedelta(minutes=1)


def job_of(run: TuningRun) -> Job:
    return Job.objects.get(pk=run.job_id)


@pytest.fixture
def queue() -> Any:
    """The message broker in memory; `messages` are what was sent since."""
    stub = dispatch.broker()
    stub.flush_all()

    def messages() -> int:
        return sum(waiting.qsize() for waiting in stub.queues.values())

    return messages


def racing_claims(job_id: Any, count: int) -> list[Any]:
    barrier = threading.Barrier(count)

    def attempt(_number: int) -> Any:
        barrier.wait()
        return services.claim(job_id)

    return in_threads(count, attempt)


def test_every_task_waits_in_one_queue() -> None:
    assert sorted(task for tasks in TASKS_OF.values() for task in tasks) == sorted(Job.Task.values)
    assert set(TASKS_OF) == set(THREADS)


@pytest.mark.django_db(transaction=True)
def test_of_many_claims_one_wins() -> None:
    run = Site().run()
    results = racing_claims(run.job_id, 6)
    assert len(results) == 6
    assert sum(result is not None for result in results) == 1
    assert job_of(run).fence == 1


@pytest.mark.django_db(transaction=True)
def test_a_run_and_its_message_are_one_transaction(queue: Any) -> None:
    site = Site()
    with transaction.atomic():
        site.run()
        transaction.set_rollback(True)
    assert not TuningRun.objects.exists()
    assert not Outbox.objects.exists()
    assert queue() == 0
    run = site.run()
    assert queue() == 2  # the run, and its baselines
    assert Outbox.objects.get(job=run.job).sent_at is not None


@pytest.mark.mutation
@pytest.mark.django_db(transaction=True)
def test_a_message_sent_before_the_commit_is_noticed(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    monkeypatch.setattr(dispatch.transaction, "on_commit", lambda send, **_: send())
    with transaction.atomic():
        site.run()
        transaction.set_rollback(True)
    assert queue() == 2


def test_a_job_is_claimed_again_only_when_its_lease_ran_out(site: Any) -> None:
    run, held, _ = site.claimed()
    assert services.claim(run.job_id) is None
    now = clock.now() + timedelta(seconds=20)
    assert services.heartbeat(held, now=now) == "continue"
    assert services.claim(run.job_id, now=now + timedelta(seconds=29)) is None
    assert services.claim(run.job_id, now=now + timedelta(seconds=31)) is not None


def test_a_lease_of_a_clock_that_was_ahead_ends_with_the_next_sign_of_life(site: Any) -> None:
    run, _, _ = site.claimed()
    ahead = services.claim(run.job_id, now=clock.now() + timedelta(hours=1))
    assert ahead is not None
    assert services.heartbeat(ahead, now=clock.now()) == "continue"
    assert services.claim(run.job_id, now=clock.now() + timedelta(seconds=60)) is not None


@pytest.mark.parametrize("alive", [True, False])
def test_a_dead_workers_lease_of_a_clock_that_was_ahead_ends_as_any_other(site: Any, alive: bool) -> None:
    run, held, _ = site.claimed()
    now = clock.now() - timedelta(hours=1)
    assert services.reconcile(now)["expired"] == 0
    if alive:
        assert services.heartbeat(held, now=now + timedelta(seconds=5)) == "continue"
    assert services.reconcile(now + timedelta(seconds=29))["expired"] == 0
    assert services.reconcile(now + timedelta(seconds=31))["expired"] == (not alive)
    assert job_of(run).state == ("running" if alive else "queued")


def test_what_waits_by_a_clock_that_was_ahead_waits_no_hour(
    site: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held, _ = site.claimed()
    services.conclude(held, "crashed", "signal 11")
    services.reconcile()
    assert queue() == 1  # the baselines; the run has its pause
    now = clock.now() - timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: now)
    assert services.reconcile()["resent"] == 1
    now += timedelta(seconds=31)
    assert services.reconcile()["sent"] == 1
    assert services.claim(run.job_id) is not None


@pytest.mark.parametrize("name", ["", "no id", "0" * 40])
def test_a_message_without_a_job_is_left(site: Any, name: str) -> None:
    assert services.claim(name) is None


@pytest.mark.parametrize(
    ("kind", "last", "state", "reason"),
    [
        ("finished", {"reason": "trials"}, "done", "trials"),
        ("paused", None, "queued", ""),
        ("stopped", None, "done", "stopped"),
        ("failed", {"reason": "no memory", "next_step": "buy some"}, "failed", ""),
        ("crashed", None, "queued", ""),
        ("interrupted", None, "interrupted", ""),
        ("lost", None, "running", ""),
    ],
)
def test_an_ending_becomes_a_state(site: Any, kind: str, last: Any, state: str, reason: str) -> None:
    run, held, _ = site.claimed()
    services.conclude(held, kind, "why", "log", last)
    run.refresh_from_db()
    assert (job_of(run).state, run.finished_reason) == (state, reason)
    if kind == "failed":
        assert (job_of(run).error, job_of(run).next_step) == ("no memory", "buy some")


def test_what_a_worker_that_was_shut_down_had_goes_on_at_once(site: Any, queue: Any) -> None:
    run, held, _ = site.claimed()
    services.reconcile()
    dispatch.broker().flush_all()
    services.conclude(held, "interrupted")
    counts = services.reconcile()
    assert (counts["interrupted"], counts["sent"], queue()) == (1, 1, 1)
    job = job_of(run)
    assert (job.state, job.fruitless, job.lease_until, job.error) == ("queued", 0, None, "")
    assert services.claim(run.job_id) is not None


@pytest.mark.parametrize("task", ["inspect", "convert"])
@pytest.mark.parametrize("kind", ["finished", "paused", "stopped"])
def test_a_child_that_ends_without_its_result_fails_its_network(site: Any, task: str, kind: str) -> None:
    """Code of an uploaded file can say any farewell; unasked, none of them is an answer."""
    network = site.network
    Network.objects.filter(pk=network.pk).update(state="inspecting")
    job = Job.objects.create(task=task, owner=site.ada, network=network)
    held = services.claim(job.pk)
    assert held is not None
    services.write(held, [{"kind": "result", "clock": 0.0, "task": "something else"}])
    assert services.conclude(held, kind, last={"kind": "finished", "reason": kind}) == State.FAILED
    network.refresh_from_db()
    assert network.state == "rejected"
    assert "without a result" in network.error
    assert network.next_step


def test_pause_and_resume(site: Any) -> None:
    run, held, _ = site.claimed()
    services.request(run, site.ada, "pause")
    assert services.heartbeat(held) == "pause"
    assert services.conclude(held, "paused") == State.PAUSED
    services.request(run, site.ada, "resume")
    assert job_of(run).state == "queued"
    assert services.claim(run.job_id) is not None


@pytest.mark.parametrize(
    ("words", "kind", "compiled"),
    [(("pause",), "paused", 0), (("pause", "keep"), "paused", 1), (("pause", "stop"), "paused", 0), (("stop",), "stopped", 0),
     (("keep",), "stopped", 1), ((), "finished", 1)],
)  # fmt: skip
def test_a_library_is_made_at_the_end_and_not_at_a_pause(
    site: Any, words: tuple[Any, ...], kind: str, compiled: int
) -> None:
    """A pause is for the machine, which a compilation would take; at its end a stop without keeping asks for none."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    for word in words[:1]:
        services.request(run, site.ada, word)
    services.conclude(held, kind)
    for word in words[1:]:
        services.request(run, site.ada, word)
    assert Job.objects.filter(task="compile", run=run).count() == compiled


@pytest.mark.parametrize("measured", [(), (0.5,), (0.5, None, None, "duplicate", "duplicate")])
def test_a_run_that_ends_before_everything_was_measured_says_why_there_is_no_library(
    site: Any, measured: tuple[Any, ...]
) -> None:
    """Of the second operator two builds failed, and what was known before was no try."""
    run, held, told = site.claimed()
    for number, what in enumerate(measured):
        batch = told.batch(what if isinstance(what, float) else None, operator=min(number, 1))
        if isinstance(what, str):
            batch["measurements"][0]["cause"] = what
        services.write(held, [batch])
    services.request(run, site.ada, "keep")
    services.conclude(held, "stopped")
    assert not Job.objects.filter(task="compile", run=run).exists()
    said = [event.payload["text"] for event in run.events.filter(kind="log")]
    why = f"{1 if measured else 2} operators have no valid configuration yet"
    assert said[-1] == f"the best was not compiled: {why}. Next step: wait, or give a run more time"


def test_a_run_of_which_nothing_works_says_so(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(*[None] * FUTILE, operator=operator) for operator in range(2)])
    services.conclude(held, "finished")
    said = [event.payload["text"] for event in run.events.filter(kind="log")]
    why = "no configuration of any operator works. Next step: look at their causes in the tuning log"
    assert said[-1] == f"the best was not compiled: {why}"


@pytest.mark.parametrize("words", [("keep", "stop"), ("keep", "stop", "stop")])
def test_who_stops_a_run_that_stops_for_a_library_has_none(site: Any, words: tuple[Any, ...]) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    early = services.request_artifact(run, site.ada)
    for word in words:
        services.request(run, site.ada, word)
    services.conclude(held, "stopped")
    assert list(Job.objects.filter(task="compile", run=run).values_list("pk", "state")) == [(early.pk, "done")]
    assert baseline_of(run).state == "done"


@pytest.mark.parametrize("kind", ["stopped", "failed", "finished"])
def test_a_library_that_waits_for_a_run_that_is_over_can_be_cancelled(site: Any, kind: str) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    if kind == "stopped":
        services.request(run, site.ada, "keep")
    services.conclude(held, kind, last={"reason": "time"})
    library = services.request_artifact(run, site.ada)
    for _ in range(1 if kind == "finished" else 2):
        services.request(run, site.ada, "stop")
    library.refresh_from_db()
    assert (library.state, baseline_of(run).state) == ("done", "done" if kind == "stopped" else "queued")
    taken = services.claim(library.pk)
    assert (taken and taken.task) == (None if kind == "stopped" else "baseline")


@pytest.mark.parametrize("kind", ["stopped", "crashed", "expired"])
def test_a_library_that_a_worker_makes_of_a_run_that_is_over_can_be_cancelled(site: Any, kind: str) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    services.conclude(held, "finished")
    library = Job.objects.get(task="compile", run=run)
    making = services.claim(library.pk)
    assert making is not None
    assert services.heartbeat(making) == "continue"
    services.request(run, site.ada, "stop")
    assert services.heartbeat(making) == "stop"
    if kind == "crashed":
        assert services.request_artifact(run, site.ada) != library, "of that one nobody will have anything"
    if kind == "expired":
        services.reconcile(clock.now() + MINUTE)
    else:
        services.conclude(making, kind)
    library.refresh_from_db()
    assert (library.state, library.wanted, library.error) == ("done", "continue", "")
    run.refresh_from_db()
    assert run.finished_reason != "stopped"
    assert services.request_artifact(run, site.ada) != library, "it can be asked for again"


@pytest.mark.parametrize("words", [("keep", "keep"), ("stop", "keep")])
def test_a_library_that_is_asked_for_while_a_run_stops_has_its_last_batch(site: Any, words: tuple[Any, ...]) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    for word in words:
        services.request(run, site.ada, word)
    compiling = Job.objects.filter(task="compile", run=run)
    assert not compiling.exists()
    services.write(held, [told.batch(0.4)])
    services.conclude(held, "stopped")
    compiled = services.claim(compiling.get().pk)
    assert compiled is not None
    assert compiled.order()["best"]["0"]["seconds"] == 0.4


def test_a_library_that_is_being_made_when_a_run_ends_is_followed_by_one_of_the_last_best(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    early = services.claim(services.request_artifact(run, site.ada).pk)
    assert early is not None
    assert early.order()["best"]["0"]["seconds"] == 0.5
    assert services.request_artifact(run, site.ada).pk == early.job_id
    services.write(held, [told.batch(0.4)])
    services.conclude(held, "finished")
    last = Job.objects.filter(task="compile", run=run).exclude(pk=early.job_id).get()
    assert services.claim(last.pk) is None, "else the older library could be the newer one"
    Outbox.objects.filter(job=last).update(sent_at=clock.now())
    services.conclude(early, "failed")
    assert Outbox.objects.filter(job=last, sent_at=None).exists(), "it is told at once"
    compiled = services.claim(last.pk)
    assert compiled is not None
    assert compiled.order()["best"]["0"]["seconds"] == 0.4


def test_a_library_that_waits_when_a_run_ends_is_that_of_its_last_best(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    waiting = services.request_artifact(run, site.ada)
    services.conclude(held, "finished")
    assert Job.objects.get(task="compile", run=run) == waiting


def test_what_is_told_of_a_library_is_the_sum_of_what_it_is_made_of(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on finds something better while the log is written."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    compiled = services.claim(services.request_artifact(run, site.ada).pk)
    assert compiled is not None
    log = orders.tuning_log

    def slowly(run: TuningRun) -> Any:
        services.write(held, [told.batch(0.1)])
        return log(run)

    monkeypatch.setattr(orders, "tuning_log", slowly)
    order = compiled.order()
    weights = dict(run.operators.values_list("index", "weight"))
    assert order["latency"] == sum(weights[int(index)] * row["seconds"] for index, row in order["best"].items())


def test_stop_in_every_state(site: Any) -> None:
    queued, (running, held, _), (paused, other, _) = site.run(), site.claimed(), site.claimed()
    services.request(paused, site.ada, "pause")
    services.conclude(other, "paused")
    for run in (queued, running, paused):
        services.request(run, site.ada, "stop")
    assert [job_of(run).state for run in (queued, running, paused)] == ["done", "stopping", "done"]
    assert services.heartbeat(held) == "stop"
    services.conclude(held, "stopped")
    running.refresh_from_db()
    assert (job_of(running).state, running.finished_reason) == ("done", "stopped")


@pytest.mark.parametrize("state", ["queued", "paused", "running"])
def test_a_stop_that_is_asked_for_twice_is_no_mistake(site: Any, state: str) -> None:
    run, held, _ = site.claimed() if state == "running" else (site.run(), None, None)
    if state == "paused":
        services.request(run, site.ada, "pause")
    services.request(run, site.ada, "stop")
    if held:
        services.conclude(held, "stopped")
    services.request(run, site.ada, "stop")
    with pytest.raises(services.Refused, match="it is done"):
        services.request(run, site.ada, "keep")  # nothing is compiled


def test_a_stop_of_what_ended_by_itself_is_refused(site: Any) -> None:
    run, held, _ = site.claimed()
    services.conclude(held, "finished", last={"reason": "trials"})
    with pytest.raises(services.Refused, match="it is done"):
        services.request(run, site.ada, "stop")


@pytest.mark.parametrize("word", ["stop", "keep"])
def test_what_is_asked_for_again_while_a_run_stops_is_told_once(site: Any, word: Any) -> None:
    run, _, _ = site.claimed()
    for _ in range(3):
        services.request(run, site.ada, word)
    assert [event.payload["wanted"] for event in run.events.filter(kind="state")][2:] == [word]


def test_a_library_that_is_asked_for_twice_is_made_once(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    services.request(run, site.ada, "pause")
    services.conclude(held, "paused")
    for _ in range(2):
        services.request(run, site.ada, "keep")
    assert Job.objects.filter(task="compile", run=run).count() == 1


def test_three_attempts_without_a_measurement_fail(site: Any) -> None:
    run = site.run()
    for number in range(3):
        now = clock.now() + number * MINUTE
        held = services.claim(run.job_id, now=now)
        assert held is not None
        services.conclude(held, "crashed", "signal 11", now=now - MINUTE)
    assert job_of(run).state == "failed"
    assert "signal 11" in job_of(run).error
    services.request(run, site.ada, "resume")
    assert services.claim(run.job_id) is not None


def test_a_run_that_goes_on_is_told_in_which_slots_it_measured(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), {**told.batch(0.4, 0.3), "slot": 3}])
    services.conclude(held, "crashed", "signal 11")
    again = services.claim(run.job_id)
    assert again is not None
    assert [row["slot"] for row in again.order()["measurements"]] == [0, 3, 3]


def test_progress_gives_new_attempts(site: Any) -> None:
    run, held, told = site.claimed()
    for _ in range(5):
        services.write(held, [told.batch(0.5)])
        services.conclude(held, "crashed", "signal 11")
        claim = services.claim(run.job_id)
        assert claim is not None
        held = claim


def test_reconcile_requeues_an_expired_lease_and_cuts_its_worker_off(site: Any) -> None:
    run, held, told = site.claimed()
    assert services.reconcile(clock.now())["expired"] == 0
    assert services.reconcile(clock.now() + MINUTE)["expired"] == 1
    assert job_of(run).state == "queued"
    with pytest.raises(services.LeaseLost):
        services.write(held, [told.batch(0.5)])


@pytest.mark.parametrize(("reason", "state"), [("trials", "done"), ("paused", "queued")])
def test_a_run_that_said_that_it_was_over_is_so_whatever_its_worker_dies_of(site: Any, reason: str, state: str) -> None:
    run, held, told = site.claimed()
    services.write(
        held, [told.batch(0.5), told.batch(0.3, operator=1), told.event("finished", reason=reason, report={})]
    )
    late = clock.now() + MINUTE
    assert services.reconcile(late)["expired"] == 1
    assert (job_of(run).state, job_of(run).attempt, job_of(run).error) == (state, 1, "")
    assert (services.claim(run.job_id, now=late) is not None) is (state == "queued")
    assert Job.objects.filter(task="compile", run=run).exists() is (state == "done")
    run.refresh_from_db()
    assert run.finished_reason == ("trials" if state == "done" else "")


def test_nobody_takes_over_a_run_that_said_that_it_was_over(site: Any) -> None:
    """Its message comes again before its lease is seen to have run out."""
    run, held, told = site.claimed()
    Job.objects.filter(task="baseline").delete()  # else that is what a message finds
    services.write(held, [told.batch(0.5), told.event("finished", reason="trials", report={})])
    assert services.claim(run.job_id, now=clock.now() + MINUTE) is None


def test_reconcile_fails_what_gets_nowhere(site: Any) -> None:
    run = site.run()
    for _ in range(3):
        assert services.claim(run.job_id) is not None
        services.reconcile(clock.now() + MINUTE)
    assert job_of(run).state == "failed"


@pytest.mark.parametrize(("word", "state"), [("stop", "done"), ("pause", "paused")])
def test_reconcile_does_what_the_user_wanted_of_a_dead_worker(site: Any, word: Any, state: str) -> None:
    run, _, _ = site.claimed()
    services.request(run, site.ada, word)
    services.reconcile(clock.now() + MINUTE)
    assert job_of(run).state == state


def test_reconcile_sends_what_was_never_sent_and_what_was_lost(site: Any, queue: Any) -> None:
    run = site.run()
    assert services.reconcile()["sent"] == 2  # the run, and its baselines
    assert services.reconcile()["sent"] == 0
    dispatch.broker().flush_all()
    counts = services.reconcile(clock.now() + 2 * MINUTE)
    assert (counts["resent"], counts["sent"]) == (2, 2)
    assert queue() == 2
    assert Outbox.objects.filter(job=run.job).count() == 1


@pytest.mark.django_db(transaction=True)
def test_reconcile_keeps_nobody_from_writing_for_what_is_not_overdue() -> None:
    """A transaction each was 300 of SQLite's locks every ten seconds."""
    site = Site()
    asked = {}
    for count in (1, 30):
        for _ in range(count):
            enqueue("inspect", site.ada, network=site.network)
        Outbox.objects.update(sent_at=clock.now())
        with CaptureQueriesContext(connection) as queries:
            assert services.reconcile()["resent"] == 0
        asked[count] = [query["sql"].split()[0] for query in queries]
    assert asked[30] == asked[1]
    assert "BEGIN" not in asked[30]
    Outbox.objects.filter(job=Job.objects.first()).update(sent_at=clock.now() - MINUTE)
    assert services.reconcile()["resent"] == 1


@pytest.mark.django_db(transaction=True)
def test_reconcile_asks_once_what_is_overdue_however_much_is(queue: Any) -> None:
    """As after a queue server that forgot all its messages: a transaction and a look through all jobs for each of 300."""
    site = Site()
    asked = {}
    for count in (1, 30):
        for _ in range(count):
            enqueue("inspect", site.ada, network=site.network)
        dispatch.broker().flush_all()
        overdue = Outbox.objects.update(sent_at=clock.now() - MINUTE)
        with CaptureQueriesContext(connection) as queries:
            assert services.reconcile()["resent"] == overdue
        texts = [query["sql"] for query in queries]
        assert queue() == sum('SET "sent_at"' in text for text in texts) == Outbox.objects.count() == overdue
        asked[overdue] = len(texts) - overdue  # who sends notes each by itself
    assert asked[31] == asked[1]


def test_what_somebody_else_sent_meanwhile_is_not_sent_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    job = enqueue("inspect", site.ada, network=site.network)
    Outbox.objects.filter(job=job).update(sent_at=clock.now() - MINUTE)

    @contextmanager
    def locked(**_: Any) -> Iterator[None]:
        Outbox.objects.filter(job=job).update(sent_at=clock.now())
        yield

    monkeypatch.setattr(transaction, "atomic", locked)
    assert reconcile._overdue(clock.now()) == 0


@pytest.mark.parametrize(("at_work", "again"), [(0, True), (1, True), (2, False)])
def test_a_lost_message_waits_for_ten_minutes_only_where_every_thread_is_at_work(
    site: Any, queue: Any, at_work: int, again: bool
) -> None:
    jobs = [Job.objects.create(task="inspect", owner=site.ada, network=site.network) for _ in range(at_work)]
    now = clock.now() + MINUTE
    for job in jobs:
        assert services.claim(job.pk, now=now) is not None
    enqueue("inspect", site.ada, network=site.network)
    services.reconcile()
    dispatch.broker().flush_all()  # as if Redis had died
    assert services.reconcile(now)["resent"] == again
    assert queue() == again
    later = now + 10 * MINUTE
    if at_work == 2:
        dispatch.broker().flush_all()
        enqueue("inspect", site.bob, network=site.network)
        services.reconcile(now)
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(lease_until=later + MINUTE)
        assert services.reconcile(later)["resent"] == 0, "others of the queue are there, unread, so it is"
        Job.objects.filter(owner=site.bob).delete()
    dispatch.broker().flush_all()
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(lease_until=later + MINUTE)
    assert services.reconcile(later)["resent"] == 1


def test_an_operator_that_nothing_works_for_is_left_out_of_what_is_compiled(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(*[None] * (FUTILE - 1), operator=1)])
    with pytest.raises(services.Refused, match="1 operators have no valid configuration yet"):
        services.request_artifact(run, site.ada)
    services.write(held, [told.batch(None, operator=1), told.event("finished", reason="trials", report={})])
    services.conclude(held, "finished")
    taken = services.claim(Job.objects.get(task="compile").pk)
    assert taken is not None
    assert list(taken.order()["best"]) == ["0"]


def test_a_measured_run_is_compiled_when_it_ends(site: Any, tmp_path: Path) -> None:
    run, held, told = site.claimed()
    with pytest.raises(services.Refused):
        services.request_artifact(run, site.ada)
    services.write(
        held, [told.batch(0.5), told.batch(0.3, operator=1), told.event("finished", reason="trials", report={})]
    )
    services.conclude(held, "finished")
    job = Job.objects.get(task="compile")
    assert services.request_artifact(run, site.ada) == job
    taken = services.claim(job.pk)
    assert taken is not None
    order = taken.order()
    assert {index: best["seconds"] for index, best in order["best"].items()} == {"0": 0.5, "1": 0.3}
    assert len(Path(order["log"]).read_text().splitlines()) == 2 + run.events.count()
    archive = taken.work_dir / "artifact.zip"
    archive.write_bytes(b"library")
    result = {"kind": "result", "clock": 5.0, "task": "compile", "passed": True, "verdict": {}, "latency": {"median": 1.0},
              "onnxruntime": {"median": 2.0}, "ratio": 0.5, "archive": str(archive)}  # fmt: skip
    end = {
        "kind": "end_to_end",
        "clock": 4.0,
        "seconds": 1.2,
        "spread": 0.1,
        "runs": 9,
        "latency": 1.1,
        "verified": True,
        "error": "",
    }
    for _ in range(2):
        services.write(taken, [end, result])
    assert services.conclude(taken, "crashed", "it exited without saying that it had finished") == State.DONE
    artifact = Artifact.objects.get()
    assert artifact.path.read_bytes() == b"library"
    run.refresh_from_db()
    assert [point["seconds"] for point in run.end_to_end] == [1.2]
    assert run.end_to_end[0]["clock"] == run.clock


@pytest.mark.parametrize("archive", ["/etc/passwd", "../../secret_key"])
def test_an_archive_from_elsewhere_is_refused(site: Any, archive: str) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    taken = services.claim(services.request_artifact(run, site.ada).pk)
    assert taken is not None
    taken.order()
    with pytest.raises(services.Refused, match="own directory"):
        services.write(taken, [{"kind": "result", "clock": 1.0, "task": "compile", "archive": archive}])


def test_this_machine_is_measured_once(site: Any) -> None:
    Target.objects.all().delete()
    target = services.ensure_local_target()
    with CaptureQueriesContext(connection) as asked:
        assert services.ensure_local_target() == target
    assert all(query["sql"].startswith("SELECT") for query in asked), "a page that looks every second locks nothing"
    held = services.claim(Job.objects.get(task="hardware").pk)
    assert held is not None
    found = {"name": "cpu", "cores": 4, "target": {"kind": "llvm"}}
    event = {
        "kind": "result",
        "clock": 1.0,
        "task": "hardware",
        "hardware": found,
        "peak": {"flops": 1e11, "bandwidth": 1e10},
        "versions": {},
    }
    services.write(held, [event])
    services.conclude(held, "finished")
    target.refresh_from_db()
    assert (target.state, target.threads, target.peak_flops, target.tvm) == ("ready", 4, 1e11, {"kind": "llvm"})
    assert not services.remeasure_if_changed()


@pytest.fixture
def here(site: Any) -> Target:
    """This machine, measured."""
    Target.objects.update(hardware={"name": "cpu", "fingerprint": fingerprint()})
    return Target.objects.get(kind="local")


def moved(target: Target) -> None:
    """As if the site had been on another machine until now."""
    Target.objects.filter(pk=target.pk).update(hardware={"fingerprint": {**fingerprint(), "tvm": "0.1", "cores": "96"}})


def measurements(target: Target) -> list[str]:
    return list(Job.objects.filter(task="hardware", target=target).values_list("state", flat=True))


def test_a_machine_that_is_not_as_it_was_measured_is_measured_again_and_stays_in_use(here: Target) -> None:
    assert not services.remeasure_if_changed()
    moved(here)
    assert services.remeasure_if_changed()
    assert not services.remeasure_if_changed(), "it is being measured"
    assert measurements(here) == ["queued"]
    here.refresh_from_db()
    assert here.state == "ready"
    assert Job.objects.get(task="hardware").outbox.exists()


def test_a_machine_that_could_not_be_measured_again_stays_in_use_and_says_so_until_it_was(
    here: Target, site: Any, client: Any
) -> None:
    client.force_login(site.ada)
    User.objects.filter(pk=site.ada.pk).update(is_staff=True)
    held = services.claim(services.remeasure(here, User.objects.get(pk=site.ada.pk)).pk)
    assert held is not None
    services.conclude(held, "failed", last={"kind": "failed", "reason": "too hot", "next_step": "open a window"})
    here.refresh_from_db()
    assert here.state == "ready"
    page = client.get("/targets/").content.decode()
    assert "It was not measured again: too hot" in page
    assert "Next step: open a window." in page
    again = services.remeasure(here, User.objects.get(pk=site.ada.pk))
    Job.objects.filter(pk=again.pk).update(state="done")
    assert "too hot" not in client.get("/targets/").content.decode()


def test_one_of_which_nobody_knows_how_it_was_is_left(here: Target) -> None:
    Target.objects.filter(pk=here.pk).update(hardware={"name": "cpu"})
    assert not services.remeasure_if_changed()


@pytest.mark.django_db(transaction=True)
def test_a_machine_is_compared_at_the_start_only() -> None:
    """Processes that see different machines would measure it for ever."""
    here = Site().target
    moved(here)
    started = Reconcile()
    started._look()
    assert measurements(here) == ["queued"]
    Job.objects.filter(task="hardware").update(state="failed")
    started._look()
    assert measurements(here) == ["failed"]
    Reconcile()._look()
    assert sorted(measurements(here)) == ["failed", "queued"]


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "magic"}, {"budget": Budget()}, {"budget": Budget(seconds=-1)}, {"budget": Budget(seconds=float("nan"))},
        {"budget": Budget(trials=10**9)}, {"budget": Budget(min_gain=0.0)}, {"budget": Budget(min_gain=1.0)},
        {"budget": Budget(min_gain=float("nan"))},
        {"layout": "CHWN"}, {"operators": "some"}, {"seed": -1}, {"seed": 1 << 64}, {"parts": {"engine": "v8"}},
        {"parts": {"scheduler": "oracle"}}, {"parts": {"explorer": "xgboost"}}, {"parts": {"sampler": ""}},
        {"parts": {"explorer.chains": "8"}},
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_is_refused(site: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(services.Refused):
        site.run(**changes)
    assert not Job.objects.exists()


def test_what_the_database_says_of_a_run_is_for_the_log(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(run: TuningRun) -> None:
        raise DatabaseError("relation tuning_job is odd")

    monkeypatch.setattr(runs, "find_baselines", broken)
    with pytest.raises(Refused, match=r"^squeezenet: the run cannot be kept, the database did not take it; reload"):
        site.run()
    assert "relation tuning_job is odd" in caplog.text
    assert not Job.objects.exists()


def test_a_part_that_a_run_cannot_have_is_named_with_those_it_can(site: Any) -> None:
    with pytest.raises(
        services.Refused, match="oracle: it is no scheduler that a run may have; choose one of dynatune, "
    ):
        site.run(parts={"scheduler": "oracle"})
    with pytest.raises(services.Refused, match="engine: it is no part of a method; parts are scheduler, explorer, "):
        site.run(parts={"engine": "v8"})
    asked = {"scheduler": "round_robin", "cost_model": "random_forest"}
    run = site.run(parts=asked)
    assert RunSpec.from_json(run.spec()).parts == run.parts == asked


def test_one_account_has_nothing_of_another(site: Any) -> None:
    run = site.run()
    with pytest.raises(Http404):
        owned(TuningRun.objects.all(), site.bob, pk=run.pk)
    assert owned(TuningRun.objects.all(), site.ada, pk=run.pk) == run
    for word in ("pause", "stop", "resume"):
        with pytest.raises(services.Refused, match="no such run"):
            services.request(run, site.bob, word)
    with pytest.raises(services.Refused):
        services.request_artifact(run, site.bob)
    with pytest.raises(services.Refused):
        services.create_run(site.bob, site.network, site.target, "auto", Budget(trials=1))


def test_dynamic_sizes_are_chosen_before_a_run(site: Any) -> None:
    inspection = {
        "inputs": [{"name": "x", "shape": ["n", 3]}, {"name": "y", "shape": ["n"]}],
        "dynamic": [{"input": "x", "axis": 0, "symbol": "n"}, {"input": "y", "axis": 0, "symbol": "n"}],
    }
    Network.objects.update(inspection=inspection, shapes={})
    site.network.refresh_from_db()
    with pytest.raises(services.Refused, match="is open"):
        site.run()
    for wrong in ({"x": [1, 3]}, {"x": [1, 4], "y": [1]}, {"x": [0, 3], "y": [0]}, {"x": [1, 3], "y": [2]}, {"z": [1]}):
        with pytest.raises(services.Refused):
            services.choose_shapes(site.network, site.ada, wrong)
    services.choose_shapes(site.network, site.ada, {"x": [2, 3], "y": [2]})
    assert site.run().network.shapes == {"x": [2, 3], "y": [2]}


@pytest.mark.parametrize("after", list(State))
@pytest.mark.parametrize("first", list(State))
def test_a_job_takes_legal_steps_alone(site: Any, first: State, after: State) -> None:
    job = Job.objects.create(task="inspect", network=site.network, state=first)
    assert (first in before(after)) == (after in LEGAL[first])
    assert move(job.pk, after) == (after in LEGAL[first])
    job.refresh_from_db()
    assert job.state == (after if after in LEGAL[first] else first)


def test_a_run_keeps_the_shapes_and_the_machine_it_was_started_with(site: Any) -> None:
    run = site.run()
    before = run.spec()
    Network.objects.update(shapes={"x": [9, 3, 8, 8]})
    Target.objects.update(threads=64, tvm={"kind": "cuda"}, peak_flops=1.0, bandwidth=1.0)
    assert TuningRun.objects.get(pk=run.pk).spec() == before
    assert '"threads": 2' in before


def lines(seconds: float, *names: str) -> list[dict[str, Any]]:
    return [{"name": name, "seconds": seconds} for name in names or BASELINES]


def timed(run: TuningRun, seconds: float, *names: str) -> None:
    """Its baselines were taken, all or these."""
    TuningRun.objects.filter(pk=run.pk).update(baselines=lines(seconds, *names))


@pytest.mark.parametrize(
    ("model", "change", "taken"),
    [(Target, {"peak_flops": 5.0}, True), (Target, {"threads": 3}, False), (Target, {"tvm": {"kind": "c"}}, False),
     (Target, {"name": "another machine"}, False), (Network, {"shapes": {"x": [2, 3, 8, 8]}}, False)],
)  # fmt: skip
def test_baselines_are_of_the_same_work_and_machine(site: Any, model: Any, change: Any, taken: bool) -> None:
    for seconds in (0.0, 1.0):
        timed(site.run(), seconds)
    model.objects.update(**change)
    site.network.refresh_from_db()
    site.target.refresh_from_db()
    later = site.run()
    assert later.baselines == (lines(1.0) if taken else [])
    told = later.events.filter(kind="baseline").order_by("seq").values_list("payload", flat=True)
    assert [(line["name"], line["seconds"]) for line in told] == [(name, 1.0) for name in BASELINES if taken]
    assert Job.objects.filter(run=later, task="baseline").exists() is not taken


@pytest.mark.parametrize("package", PACKAGES)
def test_baselines_of_other_versions_are_not_taken(site: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    timed(site.run(), 1.0)
    monkeypatch.setattr(runs, "version", lambda name: "0.1" if name == package else version(name))
    later = site.run()
    assert later.baselines == []
    assert Job.objects.filter(run=later, task="baseline").exists()
    timed(later, 2.0)
    assert site.run().baselines == lines(2.0)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_that_were_not_all_taken_are_left(site: Any, name: str) -> None:
    """One of the two failed, or is being measured."""
    timed(site.run(), 1.0, name)
    later = site.run()
    assert later.baselines == []
    assert Job.objects.filter(run=later, task="baseline").exists()
    timed(later, 2.0)
    timed(site.run(), 3.0, name)
    assert site.run().baselines == lines(2.0)


def baseline_of(run: TuningRun) -> Job:
    return Job.objects.get(run=run, task="baseline")


def take(held: services.Claim) -> None:
    """What a child tells that measures both."""
    told = [{"kind": "baseline", "clock": 1.0, "threads": 2, "spread": 0.0, **line} for line in lines(0.5)]
    services.write(held, [*told, {"kind": "result", "clock": 1.0, "task": "baseline"}])
    services.conclude(held, "finished")


def test_of_runs_that_wait_for_equal_baselines_one_measures_them(site: Any, queue: Any) -> None:
    first, *others = (site.run() for _ in range(3))
    services.reconcile()
    held = services.claim(baseline_of(first).pk)
    assert held is not None
    for run in others:
        assert services.claim(baseline_of(run).pk) is None
        assert baseline_of(run).state == "queued"
    take(held)
    messages = Outbox.objects.filter(sent_at=None, job__in=[baseline_of(run) for run in others])
    assert messages.count() == 2, "who waited is told at once"
    assert services.reconcile(clock.now() + MINUTE)["resent"] == 3  # the runs
    for run in others:
        assert services.claim(baseline_of(run).pk) is None
        assert (baseline_of(run).state, baseline_of(run).attempt) == ("done", 1)
        told = list(run.events.filter(kind="baseline").order_by("seq").values_list("payload", flat=True))
        run.refresh_from_db()
        assert [line["name"] for line in told] == [line["name"] for line in run.baselines] == list(BASELINES)
        assert [line["seconds"] for line in told] == [0.5, 0.5]


@pytest.mark.parametrize(("tuned", "left"), [(0.0, 10.0), (4.0, 6.0), (60.0, 0.0)])
def test_a_run_has_the_cores_for_itself_for_its_first_seconds(
    site: Any, tuned: float, left: float, tmp_path: Path
) -> None:
    run = site.run()
    TuningRun.objects.filter(pk=run.pk).update(clock=tuned)
    assert orders.order(baseline_of(run).pk, "baseline", tmp_path / "work")["head_start"] == left


def test_whose_baselines_are_of_other_work_or_failed_elsewhere_measures_its_own(site: Any) -> None:
    first, second = site.run(), site.run()
    Network.objects.update(shapes={"x": [2, 3, 8, 8]})
    site.network.refresh_from_db()
    third = site.run()
    Job.objects.filter(task="tune").update(started=clock.now())
    held = services.claim(baseline_of(first).pk)
    assert held is not None
    assert services.claim(baseline_of(third).pk) is not None
    services.conclude(held, "failed", last={"kind": "failed", "reason": "no memory", "next_step": "buy some"})
    assert services.claim(baseline_of(second).pk) is not None


def test_baselines_that_failed_are_told_of_in_the_runs_log(site: Any) -> None:
    run = site.run()
    held = services.claim(baseline_of(run).pk)
    assert held is not None
    services.conclude(held, "failed", last={"kind": "failed", "reason": "no memory", "next_step": "buy some"})
    told = run.events.get(kind="log").payload
    text = "what the run is compared with was not measured: no memory. Next step: buy some"
    assert (told["level"], told["text"], told["uncompared"]) == ("warning", text, True)


def test_an_account_has_so_many_runs_at_a_time(site: Any) -> None:
    runs = [site.run() for _ in range(MAX_ACTIVE_RUNS)]
    with pytest.raises(services.Refused, match="at most 20"):
        site.run()
    services.request(runs[0], site.ada, "stop")
    site.run()


def test_runs_that_are_started_and_stopped_leave_nothing_in_the_queues(site: Any) -> None:
    for size in range(1, 4):
        Network.objects.update(shapes={"x": [size, 3, 8, 8]})
        site.network.refresh_from_db()
        services.request(site.run(), site.ada, "stop")
    assert set(Job.objects.values_list("task", "state")) == {("tune", "done"), ("baseline", "done")}


@pytest.mark.parametrize(("word", "state"), [("stop", "done"), ("keep", "queued")])
@pytest.mark.parametrize("going", ["queued", "running"])
def test_a_run_that_is_stopped_takes_what_waits_for_it_along(site: Any, word: Any, state: str, going: str) -> None:
    run = site.claimed()[0] if going == "running" else site.run()
    other = site.run()
    library = enqueue("compile", site.ada, run=run)
    interrupted = Job.objects.filter(pk=library.pk)
    interrupted.update(state="interrupted")
    services.request(run, site.ada, word)
    assert baseline_of(run).state == state
    assert interrupted.get().state == ("done" if word == "stop" else "interrupted")
    assert baseline_of(other).state == "queued"


def test_what_a_paused_run_is_compared_with_waits_with_it(site: Any) -> None:
    run = site.run()
    Job.objects.filter(pk=run.job_id).update(started=clock.now())
    held = services.claim(baseline_of(run).pk)
    assert held is not None
    services.request(run, site.ada, "pause")
    assert services.heartbeat(held) == "stop"
    for _ in range(2):
        assert services.conclude(held, "stopped") == "queued"
        assert baseline_of(run).fruitless == 0
        assert services.claim(baseline_of(run).pk) is None, "its run is paused"
        services.request(run, site.ada, "resume")
        held = services.claim(baseline_of(run).pk)
        assert held is not None
        services.request(run, site.ada, "pause")


@pytest.mark.parametrize(
    ("kind", "word", "state"), [("expired", "", "queued"), ("crashed", "", "queued"), ("stopped", "stop", "done")]
)
def test_however_what_a_paused_run_is_compared_with_ends_it_waits_and_of_a_stopped_one_it_is_over(
    site: Any, kind: str, word: str, state: str
) -> None:
    run = site.run()
    held = services.claim(baseline_of(run).pk)
    assert held is not None
    services.request(run, site.ada, "pause")
    if word:
        services.request(run, site.ada, word)
    assert services.conclude(held, kind) == state


@pytest.mark.parametrize(("ends", "state"), [("finished", "queued"), ("keep", "queued"), ("stop", "done")])
def test_what_a_run_is_compared_with_that_ended_while_it_was_to_pause_is_taken_where_anything_of_it_is_kept(
    site: Any, ends: Any, state: str
) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    beside = services.claim(baseline_of(run).pk)
    assert beside is not None
    services.request(run, site.ada, "pause")
    if ends != "finished":
        services.request(run, site.ada, ends)
    assert services.conclude(held, "finished" if ends == "finished" else "stopped", last={"reason": "time"}) == "done"
    assert services.conclude(beside, "stopped") == state


def test_a_run_that_is_to_be_paused_is_compared_later(site: Any) -> None:
    """Its process ends within seconds, in which its baselines would be taken, and nobody would stop them."""
    run, _, _ = site.claimed()
    services.request(run, site.ada, "pause")
    assert job_of(run).state == "running"
    assert services.claim(baseline_of(run).pk) is None
    services.request(run, site.ada, "resume")
    assert Outbox.objects.filter(job=baseline_of(run)).exists()
    assert services.claim(baseline_of(run).pk) is not None


def test_an_account_has_so_many_paused_runs(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.tuning.requests.limits.MAX_OPEN_RUNS", 2)
    first, second = site.run(), site.run()
    for run in (first, second):
        services.request(run, site.ada, "pause")
    with pytest.raises(
        services.Refused, match="at most 2 runs that wait, run or are paused; stop some that are paused"
    ):
        site.run()
    services.request(first, site.ada, "resume")
    services.request(second, site.ada, "stop")
    site.run()


def test_a_library_that_does_not_come_is_told_in_the_log(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    library = enqueue("compile", site.ada, run=run)
    claimed = services.claim(library.pk)
    assert claimed is not None
    run.refresh_from_db()
    services.conclude(claimed, "failed", "it broke", last={"reason": "it broke", "next_step": "try again"})
    texts = [row.payload["text"] for row in run.events.filter(kind="log")]
    assert texts[-1] == "there is no library: it broke. Next step: try again"


def test_what_a_worker_has_of_a_stopped_run_goes_on(site: Any) -> None:
    run = site.run()
    held = services.claim(baseline_of(run).pk)
    assert held is not None
    services.request(run, site.ada, "stop")
    take(held)
    assert baseline_of(run).state == "done"
    run.refresh_from_db()
    assert len(run.baselines) == len(BASELINES)


def test_an_account_has_so_many_jobs_of_any_kind_at_a_time(site: Any, data_dir: Path) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    for _ in range(MAX_ACTIVE_JOBS - 3):  # but for the run and its baselines
        enqueue("baseline", site.ada, network=site.network)
    with pytest.raises(services.Refused, match=r"59: an account has at most 60 jobs .*; wait until some end, or stop"):
        site.run()
    create_network(site.ada, "one.onnx", [b"1"])
    for refused in (
        lambda: create_network(site.ada, "more.onnx", [b"2"]),
        lambda: services.request_artifact(run, site.ada),
    ):
        with pytest.raises(services.Refused, match="60: an account has at most 60 jobs"):
            refused()
    create_network(site.bob, "his.onnx", [b"3"])
    services.request(run, site.ada, "stop")
    create_network(site.ada, "more.onnx", [b"2"])


def test_who_has_so_many_runs_resumes_none(site: Any) -> None:
    paused, *others = [site.run() for _ in range(MAX_ACTIVE_RUNS)]
    services.request(paused, site.ada, "pause")
    failed = site.run()
    Job.objects.filter(pk=failed.job_id).update(state="failed", error="signal 11")
    last = site.run()
    for run, state in ((paused, "paused"), (failed, "failed")):
        with pytest.raises(services.Refused, match="at most 20"):
            services.request(run, site.ada, "resume")
        assert job_of(run).state == state
    services.request(last, site.ada, "stop")
    services.request(paused, site.ada, "resume")
    assert job_of(paused).state == "queued"
    with pytest.raises(services.Refused, match="at most 20"):
        services.request(failed, site.ada, "resume")
    services.request(others[0], site.ada, "resume")  # it goes on anyway


def test_a_link_in_place_of_the_log_is_not_followed(site: Any, tmp_path: Path) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    taken = services.claim(services.request_artifact(run, site.ada).pk)
    assert taken is not None
    taken.work_dir.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (taken.work_dir / "tuning_log.jsonl").symlink_to(victim)
    log = Path(taken.order()["log"])
    assert victim.read_text() == "kept"
    assert not log.is_symlink()
    assert log.stat().st_mode & 0o777 == 0o600


def test_two_presses_of_a_button_are_one_run(site: Any) -> None:
    run = site.run(within=services.TWICE)
    assert site.run(within=services.TWICE) == run
    TuningRun.objects.filter(pk=run.pk).update(created=clock.now() + 2 * services.TWICE)
    assert site.run(within=services.TWICE) != run, "it began by a clock that was ahead"
    TuningRun.objects.exclude(pk=run.pk).delete()
    TuningRun.objects.filter(pk=run.pk).update(created=clock.now())
    assert site.run(within=services.TWICE, seed=1) != run
    assert site.run(within=services.TWICE, parts={"sampler": "greedy"}) != run
    assert site.run() != run, "who asks for another by a command has one"
    TuningRun.objects.update(created=clock.now() - services.TWICE)
    assert site.run(within=services.TWICE) != run


def test_a_run_says_on_what_machine_it_was_made_when_that_is_another_by_now(site: Any) -> None:
    hardware = {"name": "Zen 4", "system": "Linux 6", "machine": "x86_64", "flags": ["avx512f"], "fingerprint": "1"}
    Target.objects.filter(pk=site.target.pk).update(name="Zen 4", hardware=hardware)
    site.target.refresh_from_db()
    run = site.run()
    Target.objects.filter(pk=site.target.pk).update(name="Zen 5", hardware={"name": "Zen 5"})
    run = TuningRun.objects.get(pk=run.pk)
    assert run.machine_name == "Zen 4"
    assert run.hardware == {"name": "Zen 4", "system": "Linux 6", "machine": "x86_64", "flags": ["avx512f"]}
    TuningRun.objects.filter(pk=run.pk).update(machine={})
    assert TuningRun.objects.get(pk=run.pk).machine_name == "Zen 5", "of a run from before that was kept"


def test_baselines_that_failed_are_taken_again_when_asked_for(site: Any) -> None:
    run = site.run()
    job = Job.objects.get(task="baseline", run=run)
    services.request_baselines(run, site.ada)
    assert Job.objects.filter(task="baseline", run=run).count() == 1, "it waits"
    Job.objects.filter(pk=job.pk).update(state="failed")
    with pytest.raises(Refused, match="no such run"):
        services.request_baselines(run, site.bob)
    services.request_baselines(run, site.ada)
    assert Job.objects.filter(task="baseline", run=run, state="queued").count() == 1


def test_an_attempt_that_slept_removes_nothing_of_a_later_one(site: Any, data_dir: Path) -> None:
    job = site.run().job_id
    early = services.claim(job, now=clock.now() - timedelta(hours=1))
    late = services.claim(job)
    assert early is not None
    assert late is not None
    late.work_dir.mkdir(parents=True)
    early.order()
    assert late.work_dir.exists()
    late.order()
    assert not early.work_dir.exists()


def test_who_stopped_a_run_starts_another(site: Any) -> None:
    run = site.run(within=services.TWICE)
    services.request(run, site.ada, "stop")
    assert site.run(within=services.TWICE) != run


def test_what_a_run_of_another_machine_is_compared_with_is_not_measured_here(site: Any) -> None:
    run = site.run()
    Job.objects.filter(task="baseline", run=run).update(state="failed")
    Target.objects.filter(pk=site.target.pk).update(name="another")
    with pytest.raises(Refused, match="the machine is another by now"):
        services.request_baselines(run, site.ada)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.parametrize(
    ("word", "measured", "became"),
    [
        ("pause", False, ("paused", "running", "stop")),
        ("stop", False, ("done", "running", "continue")),
        ("stop", True, ("done", "done", "continue")),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_who_pauses_or_stops_waits_for_who_is_taking_the_run_s_baselines(
    word: Any, measured: bool, became: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes them has their row and wants the run's numbers: the other way round each would wait for the other. Those that
    were measured for another run meanwhile nobody takes."""
    site = Site()
    first = site.run() if measured else None
    run = site.run()
    if first is not None:
        timed(first, 1.0)
    claimed, key = threading.Event(), baseline_of(run).pk

    def taken(run: TuningRun, take: Any = leases.taken_meanwhile) -> Any:
        claimed.set()
        time.sleep(0.5)
        return take(run)

    def asked() -> None:
        assert claimed.wait(15)
        services.request(run, site.ada, word)

    monkeypatch.setattr(leases, "taken_meanwhile", taken)
    acts = (asked, lambda: services.claim(key))
    found = in_threads(2, lambda number: acts[number]())
    assert [one is None for one in found].count(True) == 1 + measured
    assert (job_of(run).state, baseline_of(run).state, baseline_of(run).wanted) == became
