"""Real workers, a real queue, a real database and real children."""

import os
import signal
from itertools import count

import pytest
import redis

from apps.operations import queue_address
from tests import zoo
from tests.kernel import needs
from tests.processes import eventually
from tests.tries import quickest, seconds_of
from workers.sandbox.lock import MeasureLock

VERDICT = 12.0
"""s from the claim to the verdict on a file that is no network; the best of four, for other tests run beside."""
STOP = 5.0
"""s in which a run pauses and a worker shuts down; the best of four, for other tests run beside."""
LOOKS, LOOKED = 24, 7.0
"""Looks of an idle worker into its queue and the one of delayed messages, which take 5 s, and 9 with Dramatiq's own timeout;
the best of four, for other tests run beside."""

TRIES = 4
STARTS, ENDS = 90, 180
"""s until a worker that is started has done the first of its work, and until a run or an archive is whole."""


def test_an_upload_is_inspected(site, tmp_path):
    site.server()
    site.worker("prepare")
    path = zoo.tiny_residual(tmp_path)
    key = site.ask(f"""
found = create_network(owner, "residual.onnx", [open({str(path)!r}, "rb").read()])
result = found.pk
""")
    state = lambda: site.ask(f"result = Network.objects.values_list('state', flat=True).get(pk={key!r})")  # noqa: E731
    eventually(lambda: state() != "inspecting", STARTS, "the inspection")
    assert state() == "ready", site.logs()
    inspection = site.ask(f"result = Network.objects.get(pk={key!r}).inspection")
    assert inspection["inputs"]
    job = lambda: site.ask("result = Job.objects.values_list('state', flat=True).get(task='inspect')")  # noqa: E731
    eventually(lambda: job() == "done", STARTS, "the end of the job")


def test_an_idle_worker_looks_into_its_queue_several_times_a_second(site):
    site.server()
    site.worker("measure")
    password = (site.data / "queue_password").read_text()
    with redis.Redis.from_url(queue_address.url_of(queue_address.socket_path(site.data), password)) as server:
        looks = lambda: server.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]  # noqa: E731
        eventually(lambda: looks() >= LOOKS, STARTS, "the first looks, which follow each other more closely")

        def some_more():
            before = looks()
            eventually(lambda: looks() >= before + LOOKS, STARTS, "some more looks")

        assert quickest(lambda: seconds_of(some_more), LOOKED, tries=TRIES) < LOOKED


def test_an_upload_is_inspected_however_many_baselines_hang(site, tmp_path):
    site.server()
    for size in (1, 2, 3):
        site.ask(f"network.shapes = {{'x': [{size}, 16, 14, 14]}}; network.save()")
        site.run(trials=1)
    site.ask(
        "from apps.core import clock; Job.objects.filter(task='tune').update(started=clock.now())"
    )  # else they wait for turns
    site.worker("prepare")
    hanging = eventually(lambda: len(found := site.children()) == 2 and found, STARTS, "the baselines")
    for pid in hanging:
        os.kill(pid, signal.SIGSTOP)
    path = zoo.tiny_residual(tmp_path)
    key = site.ask(f"result = create_network(owner, 'residual.onnx', [open({str(path)!r}, 'rb').read()]).pk")
    state = lambda: site.ask(f"result = Network.objects.values_list('state', flat=True).get(pk={key!r})")  # noqa: E731
    eventually(lambda: state() == "ready", STARTS, "the inspection")
    waiting = site.ask("result = sorted(Job.objects.filter(task='baseline').values_list('state', flat=True))")
    assert waiting == ["queued", "running", "running"]


def test_a_file_that_is_no_network_is_rejected_soon_and_the_worker_lives(site):
    site.server()
    worker = site.worker("prepare")
    site.reconciler(every=1)  # sends what waits for another attempt: one is cut off where the machine is too busy
    numbers = count()

    def rejected():
        content = f"b'\\x08\\x07rubbish{next(numbers)}' * 1000"
        key = site.ask(f"result = create_network(owner, 'rubbish.onnx', [{content}]).pk")
        row = lambda: site.ask(f"result = Network.objects.filter(pk={key!r}).values().get()")  # noqa: E731
        eventually(lambda: row()["state"] == "rejected", ENDS, "the verdict")
        assert row()["error"]
        assert row()["next_step"]
        return site.ask(f"""
job = Job.objects.get(task="inspect", network={key!r})
result = (job.ended - job.started).total_seconds()
""")

    assert quickest(rejected, VERDICT, tries=TRIES) < VERDICT
    assert worker.poll() is None


@pytest.mark.tvm
def test_a_run_whose_message_comes_a_hundred_times_goes_once_from_the_queue_to_a_verified_artifact(site):
    site.server()
    key = site.run(trials=24)
    site.send(key, 100)
    site.worker("measure")
    site.worker("prepare")
    eventually(lambda: site.state(key) in ("done", "failed"), ENDS, "the run's end")
    assert site.state(key) == "done", site.logs()
    eventually(lambda: site.log("measure").count("nothing to claim") >= 100, STARTS, "a hundred refusals")
    assert site.job(key)["attempt"] == 1
    site.assert_nothing_lost_or_doubled()
    assert site.measured() >= 24
    compiled = lambda: site.ask("result = list(Job.objects.filter(task='compile').values('state', 'error', 'log'))")  # noqa: E731
    eventually(lambda: compiled() and compiled()[0]["state"] in ("done", "failed"), ENDS, "the artifact")
    assert compiled()[0]["state"] == "done", compiled()
    facts = site.ask("""
from apps.tuning.models import Artifact
result = list(Artifact.objects.values("state", "ratio", "sha256"))
""")
    assert facts[0]["state"] == "ready"
    assert (site.data / "artifacts" / f"{facts[0]['sha256']}.zip").is_file()


@pytest.mark.tvm
def test_a_paused_run_and_one_whose_worker_is_shut_down_go_on_where_they_were(site):
    site.server()
    worker = site.worker("measure")
    key = site.run(seconds=600)
    eventually(lambda: site.measured() > 0, ENDS, "a measurement")

    def goes_on():
        before = site.measured()
        if site.state(key) == "paused":
            site.request(key, "resume")
        eventually(lambda: site.measured() > before, ENDS, "another measurement")

    def pause():
        site.request(key, "pause")
        eventually(lambda: site.state(key) == "paused", STARTS, "the pause")

    def paused():
        if site.state(key) == "paused":
            goes_on()
        took = seconds_of(pause)
        assert not site.children()
        return took

    def shut_down():
        nonlocal worker
        if worker.poll() is not None:
            site.ask("services.reconcile()")
            worker = site.worker("measure")
        goes_on()

        def end():
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(STARTS) == 0

        took = seconds_of(end)
        assert site.state(key) == "interrupted", site.logs()
        assert not site.children()
        return took

    assert quickest(paused, STOP, tries=TRIES) < STOP
    assert quickest(shut_down, STOP, tries=TRIES) < STOP
    site.ask("services.reconcile()")
    site.worker("measure")
    goes_on()
    site.assert_nothing_lost_or_doubled()


@pytest.mark.tvm
@needs("scopes")
def test_a_torch_export_file_is_converted_and_then_inspected_and_who_measures_waits_for_neither(site, tmp_path):
    import torch

    path = tmp_path / "small.pt2"
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(network, (torch.zeros(1, 3, 8, 8),)), path)
    site.environment["ALLOW_TORCH_EXPORT"] = "1"
    site.server()
    site.worker("prepare")
    key = site.ask(f"""
from django.conf import settings
settings.ALLOW_TORCH_EXPORT = True
result = create_network(owner, "small.pt2", [open({str(path)!r}, "rb").read()]).pk
""")
    row = lambda: site.ask(f"result = Network.objects.filter(pk={key!r}).values().get()")  # noqa: E731
    waits = list[float]()

    def decided():
        with MeasureLock(site.environment["TUNINGSITE_MEASURE_LOCK"]).exclusive() as waited:
            waits.append(waited)
        return row()["state"] != "inspecting"

    eventually(decided, ENDS, "the verdict")
    *others, longest = sorted(waits)
    assert 0.3 < longest < max(3.0, sum(others)), "a slice of it, on a busy machine too"
    found = row()
    assert found["state"] == "ready", (found["error"], site.logs())
    assert found["shapes"] == {"input": [1, 3, 8, 8]}
    assert found["sha256"] != found["source"]
    assert found["file_name"] == "small.pt2"
