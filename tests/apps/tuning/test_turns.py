"""Who has the machine for long gives it up while another account waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core import clock
from apps.tuning import services, turns
from apps.tuning.models import Job, Outbox, TuningRun
from apps.tuning.reconcile import _late, reconcile
from apps.tuning.requests.queue import enqueue
from apps.tuning.turns import LATE, MEASURING, TURN, next_of
from apps.tuning.waiting import wait_of
from tests.apps.rows import Site, plan_of
from workers.messages.names import THREADS
from workers.messages.spec import Budget

SECOND = timedelta(seconds=1)
LONG, SHORT = Budget(seconds=86400), Budget(seconds=60)


class Held:
    """A run of ada's that a worker has since `began`."""

    def __init__(self, site: Site, budget: Budget = LONG, measured: bool = True) -> None:
        self.run, self.began = site.run(budget=budget), clock.now()
        held = services.claim(self.run.job_id, now=self.began)
        assert held is not None
        self.held = held
        self.measured(measured)

    def measured(self, whether: bool) -> None:
        Job.objects.filter(pk=self.run.job_id).update(fruitless=0 if whether else 1)

    def asked(self, after: timedelta) -> str:
        """What it hears so long after it had the machine."""
        return services.heartbeat(self.held, now=self.began + after)


def test_a_turn_ends_when_another_account_waits(site: Site) -> None:
    held, _ = Held(site), site.bobs(SHORT)
    assert held.asked(TURN - SECOND) == "continue"
    assert held.asked(TURN + 10 * SECOND) == "turn"


def test_nobody_else_waits(site: Site) -> None:
    held = Held(site)
    site.run()  # the account's own comes behind
    assert held.asked(TURN + SECOND) == "continue"
    other = site.bobs(SHORT)
    Job.objects.filter(pk=other.job_id).update(state="paused")
    assert held.asked(TURN + 10 * SECOND) == "continue"


@pytest.mark.parametrize(("owner", "task", "word"), [(None, "hardware", "turn"), ("bob", "inspect", "continue")])
def test_what_waits_for_the_machine_counts(site: Site, owner: str | None, task: str, word: str) -> None:
    held = Held(site)
    Job.objects.create(task=task, owner=owner and getattr(site, owner), target=site.target, network=site.network)
    assert held.asked(TURN + SECOND) == word


def test_who_waits_for_the_next_attempt_does_not_count_yet(site: Site) -> None:
    held, other = Held(site), site.bobs(SHORT)
    until = held.began + TURN + 30 * SECOND
    Job.objects.filter(pk=other.job_id).update(lease_until=until)
    assert held.asked(TURN + SECOND) == "continue"
    assert held.asked(TURN + 40 * SECOND) == "turn"


def test_a_run_that_measured_nothing_yet_keeps_the_machine(site: Site) -> None:
    """Its next attempt would begin where this one did."""
    held, _ = Held(site, measured=False), site.bobs(SHORT)
    assert held.asked(2 * TURN) == "continue"
    held.measured(True)
    assert held.asked(2 * TURN + 10 * SECOND) == "turn"


@pytest.mark.parametrize(("measured", "clock_"), [(False, 0.0), (True, 86400.0 - 1.0)], ids=["nothing", "nearly over"])
def test_whatever_a_child_tells_nobody_waits_longer_for_it_than_so(site: Site, measured: bool, clock_: float) -> None:
    held = Held(site, measured=measured)
    TuningRun.objects.filter(pk=held.run.pk).update(clock=clock_)
    other = site.bobs(SHORT)
    Job.objects.filter(pk=other.job_id).update(queued=held.began - LATE)  # it may have waited for others
    assert held.asked(LATE - SECOND) == "continue"
    assert held.asked(LATE + 10 * SECOND) == "turn"
    Job.objects.filter(pk=other.job_id).update(queued=held.began + LATE)
    assert held.asked(LATE + 20 * SECOND) == "continue", "who came late has not waited"


def test_a_start_that_takes_longer_has_longer_each_time_and_not_for_ever(site: Site) -> None:
    """An import of 40 minutes would begin again and again, half an hour of the others' time each."""
    held, other = Held(site, measured=False), site.bobs(SHORT)
    Job.objects.filter(pk=other.job_id).update(queued=held.began - LATE)
    Job.objects.filter(pk=held.run.job_id).update(fruitless=2)
    assert held.asked(LATE + 10 * SECOND) == "continue"
    assert held.asked(2 * LATE + 10 * SECOND) == "turn"
    assert services.conclude(held.held, "turn") == "queued"
    assert Job.objects.get(pk=held.run.job_id).fruitless == 2


def test_who_was_paused_meanwhile_has_not_waited(site: Site) -> None:
    other = site.bobs(SHORT)
    services.request(other, site.bob, "pause")
    Job.objects.filter(pk=other.job_id).update(created=clock.now() - 10 * LATE, queued=clock.now() - 10 * LATE)
    services.request(other, site.bob, "resume")
    assert clock.now() - Job.objects.get(pk=other.job_id).queued < LATE


@pytest.mark.parametrize(("clock_", "word"), [(86400.0 - 100.0, "continue"), (86400.0 - 200.0, "turn")])
def test_a_run_that_is_nearly_over_comes_to_its_end(site: Site, clock_: float, word: str) -> None:
    held, _ = Held(site), site.bobs(SHORT)
    TuningRun.objects.filter(pk=held.run.pk).update(clock=clock_)
    assert held.asked(TURN + SECOND) == word


@pytest.mark.parametrize(("asked", "word"), [("pause", "pause"), ("stop", "stop"), ("keep", "stop")])
def test_what_the_user_wants_comes_first(site: Site, asked: str, word: str) -> None:
    held, _ = Held(site), site.bobs(SHORT)
    Job.objects.filter(pk=held.run.job_id).update(wanted=asked)
    assert held.asked(TURN + SECOND) == word


def test_a_clock_that_went_back_ends_a_turn_early(site: Site) -> None:
    held, _ = Held(site), site.bobs(SHORT)
    assert held.asked(-10 * SECOND) == "turn"


def test_messages_that_come_twice_give_nobody_a_second_turn(site: Site) -> None:
    """Who waits for long is sent again: a message is only a hint."""
    held, other = Held(site), site.bobs(SHORT)
    services.conclude(held.held, "turn")
    taken = services.claim(held.run.job_id)
    assert taken is not None
    assert taken.job_id == other.job_id
    services.conclude(taken, "finished")
    again = services.claim(other.job_id)
    assert again is not None
    assert again.job_id == held.run.job_id


def test_an_account_of_many_runs_has_no_more_turns_than_another(site: Site) -> None:
    mine = [site.run(budget=LONG) for _ in range(4)]
    bobs = [site.bobs(LONG) for _ in range(2)]
    asked = [run.job_id for run in (*mine, *bobs)] * 2
    order, now = list[str](), clock.now()
    for key in asked[:8]:
        now += TURN
        held = services.claim(key, now=now)
        assert held is not None
        order.append("ada" if held.job_id in {run.job_id for run in mine} else "bob")
        services.conclude(held, "turn")
    assert order == ["ada", "bob"] * 4


def test_libraries_and_baselines_of_one_account_keep_another_waiting_for_one_of_them_at_most(site: Site) -> None:
    mine = [site.run() for _ in range(3)]
    bobs = site.bobs(SHORT)
    Job.objects.filter(run__in=mine).update(task="compile")
    Job.objects.filter(task="tune").update(started=clock.now())
    asked = [Job.objects.get(run=run).pk for run in (*mine, bobs)]
    claims = [services.claim(key) for key in asked]
    assert [held and held.job_id for held in claims] == [asked[0], asked[3], None, None]
    assert claims[0] is not None
    services.conclude(claims[0], "failed", "it broke")
    last = services.claim(asked[2])
    assert last is not None
    assert last.job_id == asked[2]


def test_whose_message_comes_while_what_is_next_has_to_wait_is_not_held_up_by_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Baselines of equal work are taken once."""
    monkeypatch.setitem(THREADS, "prepare", 3)
    first, twin = (Job.objects.get(run=site.bobs(SHORT)) for _ in range(2))
    held, mine = (Job.objects.get(run=site.run()) for _ in range(2))
    Job.objects.filter(pk=held.pk).update(task="compile")
    Job.objects.filter(task="tune").update(started=clock.now())
    began = clock.now()
    for number, job in enumerate((first, held)):
        assert services.claim(job.pk, now=began + number * SECOND) is not None
    taken = services.claim(mine.pk, now=began + 2 * SECOND)
    assert taken is not None
    assert taken.job_id == mine.pk
    twin.refresh_from_db()
    assert twin.state == "queued"


def test_it_waits_behind_the_others_and_goes_on(site: Site, django_capture_on_commit_callbacks: Any) -> None:
    held, other = Held(site), site.bobs(SHORT)
    with django_capture_on_commit_callbacks(execute=True):
        assert services.conclude(held.held, "turn") == "queued"
    job = Job.objects.get(pk=held.run.job_id)
    assert (job.state, job.wanted, job.fruitless, job.lease_until) == ("queued", "continue", 0, None)
    assert "others wait for the machine" in job.error
    assert services.claim(other.job_id) is not None
    again = services.claim(job.pk)
    assert again is not None
    assert again.since > held.held.since
    job.refresh_from_db()
    assert (job.state, job.error) == ("running", "")


def test_an_account_that_had_the_machine_by_a_clock_that_was_ahead_has_its_turn_again(site: Site) -> None:
    now = clock.now()
    had, hers, his = site.run(budget=SHORT), site.run(budget=SHORT, seed=1), site.bobs(SHORT)
    Job.objects.filter(pk=had.job_id).update(state="done", claimed=now + timedelta(days=365))
    Job.objects.filter(pk=his.job_id).update(claimed=now - SECOND)
    waiting = Job.objects.filter(pk__in=[hers.job_id, his.job_id])
    assert next_of(waiting, MEASURING)[0] == his.job_id
    reconcile(now)
    Job.objects.filter(pk=his.job_id).update(claimed=now + SECOND)
    assert next_of(waiting, MEASURING)[0] == hers.job_id


def test_one_account_leaves_a_place_beside_the_machine_to_others_that_are_active(site: Site) -> None:
    """Libraries of slow networks take hours, and there are two places."""
    first, second = site.run(), site.run()
    libraries = [enqueue("compile", site.ada, run=run, network=run.network) for run in (first, second)]
    Job.objects.filter(run__in=(first, second), task="baseline").update(state="done")
    held = services.claim(libraries[0].pk)
    assert held is not None
    other = site.bobs(Budget(seconds=60))
    assert not _late(clock.now()).filter(pk=libraries[1].pk).exists(), "it is told when its account's other one is done"
    taken = services.claim(libraries[1].pk)
    assert taken is None or taken.job_id not in {library.pk for library in libraries}
    wait = wait_of(Job.objects.get(pk=libraries[1].pk))
    assert wait is not None
    assert wait.before >= 1, "its page does not say that it is compiled"
    services.request(other, site.bob, "pause")
    assert services.claim(libraries[1].pk) is not None, "nobody else is active"


def test_who_left_a_place_to_others_is_told_when_one_of_its_own_is_free(site: Site) -> None:
    first, second = site.run(), site.run()
    libraries = [enqueue("compile", site.ada, run=run, network=run.network) for run in (first, second)]
    held = services.claim(libraries[0].pk)
    assert held is not None
    Outbox.objects.all().delete()
    services.conclude(held, "failed", "it broke")
    assert Outbox.objects.filter(job=libraries[1].pk).exists()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="how SQLite tells its plans")
def test_whose_turn_it_is_is_told_by_an_index_alone(site: Site) -> None:
    """Accounts have thousands of jobs, and each row may hold a log."""
    with CaptureQueriesContext(connection) as asked:
        turns.had({site.ada.pk, site.bob.pk}, MEASURING)
        site.target.jobs.filter(task=Job.Task.HARDWARE).first()
    of_turns, newest = (plan_of(query["sql"]) for query in asked)
    assert "COVERING INDEX job_by_turn" in of_turns
    assert "INDEX job_of_a_target (target_id=? AND task=?)" in newest
