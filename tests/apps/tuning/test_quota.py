"""What an account keeps is bounded, whoever else has the same files, and can be deleted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core import clock
from apps.core.errors import Refused
from apps.tuning import live, quota, services
from apps.tuning.journal import archives
from apps.tuning.models import Artifact, Event, Job, Measurement, TuningRun
from tests.apps.rows import Site
from tests.apps.threads import in_threads

START = 5  # bytes of the network that every site has


def library(run: TuningRun, size: int, **changes: Any) -> Artifact:
    job = Job.objects.create(task="compile", owner=run.owner, run=run, network=run.network, state="done")
    fields = {"sha256": f"{size:064x}", "size": size, "state": "ready", "ratio": 1.0, **changes}
    return Artifact.objects.create(run=run, job=job, **fields)


def test_networks_and_libraries_count_and_rejected_ones_do_not(site: Site) -> None:
    run = site.run()
    library(run, 100)
    Network.objects.create(owner=site.ada, name="n", sha256="b" * 64, size=7, state="rejected")
    Network.objects.create(owner=site.ada, name="m", sha256="c" * 64, size=20, state="inspecting")
    assert quota.used(site.ada) == quota.Used(START + 20, 100)
    assert quota.used(site.bob).whole == 0


def test_a_file_that_two_have_counts_for_both(site: Site, settings: Any) -> None:
    settings.QUOTA = START + 4
    create_network(site.bob, "b.onnx", [b"same"])
    create_network(site.ada, "a.onnx", [b"same"])
    assert (quota.used(site.ada).whole, quota.used(site.bob).whole) == (START + 4, 4)
    assert (quota.used(site.ada).room, quota.used(site.bob).room) == (0, START)
    # Whoever has it already may send it again.
    create_network(site.ada, "again.onnx", [b"same"])


def test_an_upload_too_many_is_refused_with_what_to_do(site: Site, settings: Any) -> None:
    settings.QUOTA = 2_000
    create_network(site.ada, "a.onnx", [b"x" * 1_000])
    with pytest.raises(Refused) as refusal:
        create_network(site.ada, "b.onnx", [b"y" * 1_000])
    told = refusal.value
    assert (told.value, told.reason) == ("b.onnx", "it has 1.00 kB, and 1.00 kB of your 2.00 kB are in use")
    assert "Storage page" in told.next_step
    assert not Network.objects.filter(file_name="b.onnx").exists()
    assert not Job.objects.filter(network__file_name="b.onnx").exists()


def test_a_rejected_network_that_comes_again_needs_room(site: Site, settings: Any) -> None:
    network = create_network(site.ada, "a.onnx", [b"x" * 100])
    Network.objects.filter(pk=network.pk).update(state="rejected")
    settings.QUOTA = 50
    with pytest.raises(Refused, match="in use"):
        create_network(site.ada, "a.onnx", [b"x" * 100])
    network.refresh_from_db()
    assert network.state == "rejected"


def at_once(site: Site, uploads: int, size: int) -> list[BaseException | Network]:
    """Uploads that are all written before the first of them is kept."""
    barrier = threading.Barrier(uploads)

    def content(number: int) -> Iterator[bytes]:
        yield bytes([number]) * size
        barrier.wait(30)

    def upload(number: int) -> BaseException | Network:
        try:
            return create_network(site.ada, f"{number}.onnx", content(number))
        except Refused as error:
            return error

    return in_threads(uploads, upload)


@pytest.mark.django_db(transaction=True)
def test_of_uploads_that_come_at_once_no_more_are_kept_than_there_is_room_for(settings: Any) -> None:
    settings.QUOTA = START + 250
    site = Site()
    ended = at_once(site, uploads=5, size=100)
    assert sorted(type(one) is Network for one in ended) == [False, False, False, True, True]
    assert quota.used(site.ada).whole == START + 200


@pytest.mark.mutation
@pytest.mark.django_db(transaction=True)
def test_a_quota_that_is_looked_at_before_the_upload_alone_is_noticed(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "check_kept", lambda *_: None)
    settings.QUOTA = START + 250
    site = Site()
    at_once(site, uploads=5, size=100)
    assert quota.used(site.ada).whole > settings.QUOTA


def test_without_room_nothing_is_compiled_and_the_run_says_so(site: Site, settings: Any) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5)])
    settings.QUOTA = START
    with pytest.raises(Refused, match="5 B of your 5 B are in use"):
        services.request_artifact(run, site.ada)
    services.write(held, [told.event("finished", reason="trials", report={})])
    assert services.conclude(held, "finished") == "done"
    assert not Job.objects.filter(run=run, task="compile").exists()
    (line,) = [line for line in live.snapshot(run)["log"] if line["kind"] == "log"]
    assert line["level"] == "warning"
    assert (
        "the best was not compiled: 5 B of your 5 B are in use. Next step: delete on the Storage page" in line["text"]
    )
    settings.QUOTA = START + 1
    assert services.request_artifact(run, site.ada).task == "compile"


def measured(site: Site) -> TuningRun:
    """A run with something to compile."""
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5)])
    run.refresh_from_db()
    return run


def compiling(run: TuningRun) -> services.Claim:
    held = services.claim(services.request_artifact(run, run.owner).pk)
    assert held is not None
    held.order()
    return held


def compiled(held: services.Claim, content: bytes, **changes: Any) -> str | None:
    """What the child says that compiled this; the job's state then."""
    archive = held.work_dir / "artifact.zip"
    archive.write_bytes(content)
    end = {"kind": "end_to_end", "clock": 4.0, "seconds": 1.2, "spread": 0.1, "runs": 9, "latency": 1.1, "verified": True,
           "error": ""}  # fmt: skip
    result = {"kind": "result", "clock": 5.0, "task": "compile", "passed": True, "verdict": {}, "latency": {"median": 1.0},
              "onnxruntime": {}, "ratio": 0.5, "archive": str(archive), **changes}  # fmt: skip
    services.write(held, [end, result])
    return services.conclude(held, "finished")


def files(data: Path) -> int:
    return len(list((data / "artifacts").glob("*")))


def test_a_library_there_is_no_room_for_is_refused_and_can_be_compiled_again(
    site: Site, settings: Any, data_dir: Path
) -> None:
    run = measured(site)
    trials = run.trials
    settings.QUOTA = START + 99
    held = compiling(run)
    assert compiled(held, b"x" * 100) == "failed"
    job = Job.objects.get(pk=held.job_id)
    assert job.error == "there is no room for it: it has more than the 99 B that are left to you"
    assert job.next_step.startswith("delete on the Storage page")
    assert files(data_dir) == 0
    assert quota.used(site.ada).libraries == 0
    Job.objects.filter(task="baseline").delete()  # else that is what a message finds
    assert services.claim(job.pk) is None
    run.refresh_from_db()
    assert (run.trials, run.end_to_end) == (trials, []), "what nobody can take has no place on a chart"
    asked, told = run.events.filter(kind="artifact").values_list("payload", flat=True)
    assert asked["state"] == "queued"
    assert (told["state"], told["error"], told["next_step"]) == ("failed", job.error, job.next_step)
    settings.QUOTA = START + 100
    assert compiled(compiling(run), b"x" * 100) == "done"
    assert quota.used(site.ada).libraries == 100


@pytest.mark.parametrize("kind", ["crashed", "expired"])
def test_a_library_without_room_is_not_tried_again_however_its_child_or_worker_ends(
    site: Site, settings: Any, kind: str
) -> None:
    held = compiling(measured(site))
    settings.QUOTA = START + 1
    archive = held.work_dir / "artifact.zip"
    archive.write_bytes(b"xx")
    services.write(held, [{"kind": "result", "clock": 5.0, "task": "compile", "passed": True, "archive": str(archive)}])
    if kind == "expired":
        services.reconcile(clock.now() + timedelta(minutes=1))
    else:
        services.conclude(held, kind)
    job = Job.objects.get(pk=held.job_id)
    assert (job.state, "no room" in job.error) == ("failed", True)


def together(site: Site, sizes: list[int]) -> list[str | None]:
    """Libraries of as many runs, all compiled and copied before the first of them is kept."""
    held = [compiling(measured(site)) for _ in sizes]
    barrier = threading.Barrier(len(sizes))
    copied = archives.keep_archive

    def copying(*asked: Any) -> Any:
        stored = copied(*asked)
        barrier.wait(30)
        return stored

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "keep_archive", copying)
        return in_threads(len(sizes), lambda number: compiled(held[number], bytes([number]) * sizes[number]))


@pytest.mark.django_db(transaction=True)
def test_of_libraries_that_come_at_once_no_more_are_kept_than_there_is_room_for(settings: Any) -> None:
    settings.QUOTA = START + 250
    site = Site()
    assert sorted(map(str, together(site, [100, 100, 100]))) == ["done", "done", "failed"]
    assert quota.used(site.ada).libraries == 200
    refused = Job.objects.get(task="compile", state="failed")
    assert refused.error == "there is no room for it: it has 100 B, and 205 B of your 255 B are in use"


@pytest.mark.mutation
@pytest.mark.django_db(transaction=True)
def test_a_quota_that_is_looked_at_before_the_copy_alone_is_noticed(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "check_kept", lambda *_: None)
    settings.QUOTA = START + 250
    site = Site()
    together(site, [100, 100, 100])
    assert quota.used(site.ada).whole > settings.QUOTA


def test_what_a_new_library_pushes_out_makes_room_for_it(site: Site, settings: Any) -> None:
    run = measured(site)
    for number in range(Artifact.KEPT):
        assert compiled(compiling(run), bytes([number]) * 100) == "done"
    settings.QUOTA = START + 100 * Artifact.KEPT
    assert compiled(compiling(run), b"y" * 100) == "done"
    assert quota.used(site.ada).whole == settings.QUOTA


def test_what_is_refused_pushes_nothing_out(site: Site, settings: Any) -> None:
    run = measured(site)
    for number in range(Artifact.KEPT):
        compiled(compiling(run), bytes([number]) * 100)
    settings.QUOTA = START + 100 * Artifact.KEPT + 1
    assert compiled(compiling(run), b"z" * 102) == "failed"
    assert run.artifacts.count() == Artifact.KEPT


def test_what_an_account_has_twice_counts_once(site: Site, settings: Any) -> None:
    first, second = measured(site), measured(site)
    settings.QUOTA = START + 150
    assert compiled(compiling(first), b"x" * 100) == "done"
    held = compiling(second)
    settings.QUOTA = START + 200  # as much as is looked at before the copy
    assert compiled(held, b"x" * 100) == "done"
    assert quota.used(site.ada) == quota.Used(START, 100)
    services.remove_library(first.artifacts.get(), site.ada)
    assert quota.used(site.ada) == quota.Used(START, 100)


def test_a_library_that_is_begun_is_waited_for_in_a_full_account(site: Site, settings: Any) -> None:
    run = measured(site)
    settings.QUOTA = START + 1
    job = services.request_artifact(run, site.ada)
    settings.QUOTA = START
    assert services.request_artifact(run, site.ada) == job


def test_a_network_that_grows_when_it_is_converted_needs_room(site: Site, settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    settings.QUOTA = START + 10
    network = create_network(site.ada, "small.pt2", [b"x" * 10])
    held = services.claim(Job.objects.get(task="convert").pk)
    assert held is not None
    made = Path(held.order()["work_dir"]) / "network.onnx"
    made.write_bytes(b"x" * 11)
    services.write(held, [{"kind": "result", "clock": 1.0, "task": "convert", "onnx": str(made)}])
    assert services.conclude(held, "finished") == "failed"
    network.refresh_from_db()
    assert (network.state, network.error) == (
        "rejected",
        "there is no room for it: it has more than the 10 B that are left to you",
    )
    assert "Storage page" in network.next_step
    assert not Job.objects.filter(task="inspect").exists()


def test_a_deleted_network_takes_its_runs_with_it_and_makes_room(site: Site) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5), told.slot()])
    library(run, 100)
    with pytest.raises(Refused, match="something waits or works on it"):
        services.remove_network(site.network, site.ada)
    assert services.conclude(held, "stopped") == "done"
    Job.objects.filter(network=site.network).update(state="done")
    with pytest.raises(Refused, match="no such network"):
        services.remove_network(site.network, site.bob)
    services.remove_network(site.network, site.ada)
    assert quota.used(site.ada).whole == 0
    services.reconcile()
    for rows in (Network, TuningRun, Job, Measurement, Event, Artifact):
        assert not rows.objects.exists(), rows


@pytest.mark.parametrize(("letters", "state"), [(100, "ready"), (1 << 18, "rejected")])
def test_a_network_whose_words_fill_pages_is_refused(site: Site, letters: int, state: str) -> None:
    Network.objects.update(state="inspecting")
    held = services.claim(Job.objects.create(task="inspect", owner=site.ada, network=site.network).pk)
    assert held is not None
    found = {"inputs": [{"name": "x" * letters, "dtype": "float32", "shape": [1]}], "dynamic": []}
    services.write(held, [{"kind": "result", "clock": 0.0, "task": "inspect", "inspection": found}])
    services.conclude(held, "finished")
    site.network.refresh_from_db()
    assert site.network.state == state
    assert ("shorter names" in site.network.next_step) == (state == "rejected")


def test_a_deleted_library_makes_room_and_its_run_stays(site: Site) -> None:
    run = site.run()
    made = library(run, 100)
    with pytest.raises(Refused, match="no such library"):
        services.remove_library(made, site.bob)
    assert not run.events.filter(kind="artifact").exists()
    services.remove_library(made, site.ada)
    assert run.events.get(kind="artifact").payload["state"] == "deleted", "its page offers it no more"
    assert quota.used(site.ada) == quota.Used(START, 0)
    assert TuningRun.objects.filter(pk=run.pk).exists()


def test_a_network_of_two_owners_stays_for_the_other(site: Site, data_dir: Path) -> None:
    mine, theirs = (create_network(owner, "a.onnx", [b"same"]) for owner in (site.ada, site.bob))
    Job.objects.update(state="done")
    os.utime(theirs.path, (0, 0))  # as if it lay there for long
    services.remove_network(mine, site.ada)
    services.sweep()
    assert theirs.path.read_bytes() == b"same"
    assert quota.used(site.bob).whole == 4
    services.remove_network(theirs, site.bob)
    services.sweep()
    assert not theirs.path.exists()
