"""What an account keeps is bounded, whoever else has the same files, and can be deleted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core.errors import Refused
from apps.tuning import live, quota, services
from apps.tuning.checks import quota_is_an_amount
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
    (line,) = live.snapshot(run)["log"]
    assert line["level"] == "warning"
    assert (
        "the best was not compiled: 5 B of your 5 B are in use. Next step: delete on the Storage page" in line["text"]
    )
    settings.QUOTA = START + 1
    assert services.request_artifact(run, site.ada).task == "compile"


def test_a_library_that_was_begun_in_time_is_kept(site: Site, settings: Any, data_dir: Path) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5)])
    settings.QUOTA = START + 1
    job = services.request_artifact(run, site.ada)
    settings.QUOTA = START
    assert services.request_artifact(run, site.ada) == job


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
    for rows in (Network, TuningRun, Job, Measurement, Event, Artifact):
        assert not rows.objects.exists(), rows


def test_a_deleted_library_makes_room_and_its_run_stays(site: Site) -> None:
    run = site.run()
    made = library(run, 100)
    with pytest.raises(Refused, match="no such library"):
        services.remove_library(made, site.bob)
    services.remove_library(made, site.ada)
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


@pytest.mark.parametrize(("written", "bytes_", "wrong"), [("20GB", 20_000_000_000, False), ("many", 0, True)])
def test_a_quota_that_is_no_amount_is_said_at_the_start(settings: Any, written: str, bytes_: int, wrong: bool) -> None:
    settings.QUOTA, settings.QUOTA_WRITTEN = bytes_, written
    found = quota_is_an_amount(None)
    assert [error.id for error in found] == (["tuning.E003"] if wrong else [])
    assert all(f"QUOTA={written}" in error.msg for error in found)
