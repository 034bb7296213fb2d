"""Short forms of the faults a site has to survive, on real processes."""

import shutil
import signal
from functools import partial

import psutil
import pytest

from tests.processes import eventually, kill
from tests.running import MANAGE
from tests.tries import quickest, seconds_of
from workers.messages.names import WORKERS

pytestmark = [pytest.mark.faults, pytest.mark.tvm, pytest.mark.timeout(1200)]

ENDED = ("done", "failed")
PARTS = ("queue", "web", *WORKERS, "reconcile")
STOP = 5.0
"""s from the word to the end of all that it is for; the best of four, for other tests run beside."""
TRIES = 4
ENDS, STARTS, MEASURES = 30, 90, 180
"""s until what is to end is gone, until what is started is there, and until it has measured or a short run is over."""


def lapse(site, key, left=0):
    """Instead of waiting for 30 s: what those would do to the lease. With seconds `left` the site's reconciler finds it."""
    site.ask(f"""
from datetime import timedelta
from apps.core import clock
Job.objects.filter(pk={key!r}).update(lease_until=clock.now() + timedelta(seconds={left or -1}))
{"" if left else "services.reconcile()"}
""")


def test_a_worker_killed_again_and_again_loses_and_doubles_nothing(site):
    site.server()
    site.reconciler(every=2)
    key = site.run(seconds=600)
    kept = 0
    for deaths in range(3):
        if deaths:
            lapse(site, key, left=3)
        worker = site.worker()
        before = kept
        eventually(lambda before=before: site.measured() > before, MEASURES, "another measurement")
        kept = site.measured()
        children = site.children()
        kill(worker.pid)
        worker.wait()
        eventually(lambda children=children: not set(children) & set(site.children()), ENDS, "the end of the child")
        assert site.measured() >= kept
    site.assert_nothing_lost_or_doubled()
    job = site.job(key)
    assert job["attempt"] == 3
    assert job["state"] in ("running", "queued")


def test_a_server_that_is_killed_and_wiped_costs_no_run(site):
    server = site.server()
    first = site.run(trials=8)
    kill(server.pid)
    server.wait()
    shutil.rmtree(site.data / "redis")
    second = site.run(trials=8)  # while there is no server at all
    site.server()
    site.reconciler()
    site.worker()
    # The first one's message was sent and lost: only its age tells.
    site.ask("""
from datetime import timedelta
from apps.core import clock
Outbox.objects.exclude(sent_at=None).update(sent_at=clock.now() - timedelta(seconds=30))
""")
    for key in (first, second):
        eventually(lambda key=key: site.state(key) in ENDED, MEASURES, "the run's end")
        assert site.state(key) == "done", site.logs()
    site.assert_nothing_lost_or_doubled()


def test_a_server_that_is_killed_during_a_run_does_not_disturb_it(site):
    server = site.server()
    worker = site.worker()
    key = site.run(trials=32)
    eventually(lambda: site.measured() > 0, MEASURES, "a measurement")
    kill(server.pid)
    server.wait()
    shutil.rmtree(site.data / "redis")
    site.server()
    eventually(lambda: site.state(key) in ENDED, MEASURES, "the run's end")
    assert site.job(key)["attempt"] == 1
    again = site.run(trials=8)
    eventually(lambda: site.state(again) in ENDED, MEASURES, "a run after it")
    assert worker.poll() is None


def test_the_writes_of_a_worker_that_was_frozen_are_refused(site):
    site.server()
    frozen = site.worker()
    key = site.run(seconds=600)
    eventually(lambda: site.measured() > 0, MEASURES, "a measurement")
    fence = site.job(key)["fence"]
    kill(frozen.pid, number=signal.SIGSTOP)
    children = site.children()
    lapse(site, key)
    before = site.measured()
    site.worker()
    eventually(lambda: site.measured() > before, MEASURES, "a measurement of the other worker")
    kill(frozen.pid, number=signal.SIGCONT)
    eventually(lambda: not set(children) & set(site.children()), ENDS, "the end of the stale child")
    eventually(lambda: "no longer" in site.log("measure") or "lost" in site.log("measure"), ENDS, "the refusal")
    assert site.job(key)["fence"] > fence
    site.assert_nothing_lost_or_doubled()


def answered(site, key, word, *states):
    """Seconds until a run that is asked for something is in one of these states and no child is left."""

    def answer():
        site.request(key, word)
        eventually(lambda: site.state(key) in states, STARTS, word)
        eventually(lambda: not site.children(), STARTS, "the end of the child")

    return seconds_of(answer)


def stopped(site, key):
    """Seconds that a run takes to stop."""
    took = answered(site, key, "stop", *ENDED)
    assert site.state(key) == "done"
    assert site.job(key)["wanted"] == "continue"
    return took


def test_a_queued_run_is_stopped_within_five_seconds(site):
    site.server()
    assert quickest(lambda: stopped(site, site.run(seconds=600)), STOP, tries=TRIES) < STOP


def test_a_run_is_stopped_within_five_seconds_in_every_state_that_it_has_with_a_worker(site):
    site.server()
    worker = site.worker()

    def attempt(moment):
        before = site.measured()
        key = site.run(seconds=600)
        if moment == "starting":
            eventually(site.children, STARTS, "a child")
        else:
            eventually(lambda: site.measured() > before, MEASURES, "a measurement")
        paused = answered(site, key, "pause", "paused") if moment == "paused" else 0.0
        return max(paused, stopped(site, key))

    for moment in ("starting", "tuning", "paused"):
        assert quickest(partial(attempt, moment), STOP, tries=TRIES) < STOP, moment
    assert worker.poll() is None


def _up(site, *arguments):
    log = lambda: site.log("up") if (site.folder / "logs" / "up.log").exists() else ""  # noqa: E731
    before = log().count("Open http")
    launcher = site.start("up", *MANAGE, "up", *arguments)
    eventually(lambda: log().count("Open http") > before or launcher.poll() is not None, STARTS, "the start")
    assert launcher.poll() is None, site.logs()
    eventually(lambda: site.of("-m workers.actors measure"), STARTS, "the worker")
    return launcher


def test_a_launcher_that_is_killed_leaves_nothing_and_the_next_start_goes_on(site):
    key = site.run(seconds=600)

    def ended(number):
        """Seconds from the signal, while the run is at work, until nothing is left."""
        before = site.measured()
        if before:
            lapse(site, key)  # of the worker that was killed with the launcher before
        launcher = _up(site)
        eventually(lambda: site.measured() > before, MEASURES, "another measurement")
        assert len(site.processes()) >= 7

        def end():
            launcher.send_signal(number)
            if launcher.wait(STARTS) == -signal.SIGKILL:  # the others notice by themselves
                eventually(lambda: not site.processes(), STARTS, f"the end of {site.processes()}")

        took = seconds_of(end)
        assert not site.processes()
        assert launcher.returncode == (-number if number == signal.SIGKILL else 0)
        return took

    for number in (signal.SIGKILL, signal.SIGINT):
        assert quickest(partial(ended, number), STOP, tries=TRIES) < STOP, number
    assert site.state(key) in ("interrupted", "queued", "running")
    site.assert_nothing_lost_or_doubled()


def test_a_launcher_starts_again_what_was_killed(site):
    launcher = _up(site)
    started = psutil.Process(launcher.pid).children
    eventually(lambda: len(started()) == len(PARTS), STARTS, "all parts")
    kill(*(part.pid for part in started()))
    shutil.rmtree(site.data / "redis", ignore_errors=True)
    eventually(lambda: all(f"{name} was killed" in site.log("up") for name in PARTS), STARTS, f"the news of {PARTS}")
    key = site.run(trials=8)
    eventually(lambda: site.state(key) in ENDED, MEASURES, "the run's end")
    assert site.state(key) == "done", site.logs()
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(ENDS) == 0
    assert not site.processes()
