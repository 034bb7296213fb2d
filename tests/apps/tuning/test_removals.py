"""What users delete: theirs no more at once, and gone in steps, whatever happens to it meanwhile."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.tuning import dispatch, remains, services
from apps.tuning.models import Event, Job, Measurement, TuningRun
from tests.apps.rows import Site
from tests.apps.threads import in_threads


@pytest.fixture
def run(site: Site, data_dir: Any) -> TuningRun:
    """A run that is over, with ten measurements, of a network that nothing works on."""
    found, held, told = site.claimed(1)
    services.write(held, [told.batch(*[0.5] * 10), told.slot()])
    services.conclude(held, "stopped")
    Job.objects.update(state="done")
    return found


def rows() -> int:
    return sum(model.objects.count() for model in (Network, TuningRun, Job, Measurement, Event))


def test_what_was_deleted_is_nobodys_before_it_is_gone(site: Site, run: TuningRun, client: Client) -> None:
    client.force_login(site.ada)
    addresses = [reverse("network", args=[site.network.pk]), reverse("compared", args=[site.network.pk])]
    addresses += [reverse(name, args=[run.pk]) for name in ("run", "snapshot", "downloads")]
    addresses += [reverse("run-file", args=[run.pk, "log.jsonl"]), reverse("job-log", args=[run.job_id])]
    assert {client.get(address, follow=True).status_code for address in addresses} == {200}
    there = rows()
    services.remove_network(site.network, site.ada)
    assert rows() == there
    assert {client.get(address).status_code for address in addresses} == {404}
    for address in ("/", "/networks/", "/storage/", "/runs/new"):
        page = re.sub('<select id="example".*?</select>', "", client.get(address).content.decode())
        assert "squeezenet" not in page, address


def test_nothing_can_be_asked_of_what_was_deleted(site: Site, run: TuningRun) -> None:
    """By who still has it on a page."""
    Job.objects.filter(pk=run.job_id).update(state="paused")
    services.remove_network(site.network, site.ada)
    asked: list[Callable[[], Any]] = [
        lambda: services.request(run, site.ada, "resume"),
        lambda: services.request_artifact(run, site.ada),
        lambda: services.remove_network(site.network, site.ada),
        site.run,
    ]
    for ask in asked:
        with pytest.raises(services.Refused, match="there is no such"):
            ask()
    assert not Job.objects.filter(state="queued").exists()


@pytest.mark.parametrize("state", ["done", "failed", "paused"])
def test_what_waits_beside_runs_that_do_not_go_on_keeps_no_network(site: Site, run: TuningRun, state: str) -> None:
    Job.objects.filter(pk=run.job_id).update(state=state)
    baseline = Job.objects.filter(task="baseline", run=run)
    baseline.update(state="queued")
    library = services.request_artifact(run, site.ada)
    held = services.claim(library.pk)
    assert held is not None
    with pytest.raises(services.Refused, match="something waits or works on it"):
        services.remove_network(site.network, site.ada)
    assert baseline.get().state == "queued"
    Job.objects.filter(pk=library.pk).update(state="queued")
    services.remove_network(site.network, site.ada)
    assert set(Job.objects.filter(run=run).values_list("state", flat=True)) == {"done"}
    assert not Network.objects.filter(owner=site.ada).exists()


def test_a_network_that_was_deleted_can_be_uploaded_again_at_once(site: Site, data_dir: Any) -> None:
    first = create_network(site.ada, "a.onnx", [b"same"])
    Job.objects.update(state="done")
    for _ in range(2):  # twice: two of one content may be on their way out
        services.remove_network(first, site.ada)
        again = create_network(site.ada, "a.onnx", [b"same"])
        assert again.pk != first.pk
        Job.objects.update(state="done")
        first = again
    services.reconcile()
    assert set(Network.objects.all()) == {site.network, first}
    assert first.path.exists()


def test_what_was_deleted_goes_in_small_steps_and_on_after_a_kill(
    site: Site, run: TuningRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "STEP", 4)
    services.remove_network(site.network, site.ada)
    for left in (6, 2, 0):
        assert remains.clear(0.0) == 1
        assert Measurement.objects.count() == left
    assert services.reconcile()["cleared"] > 1
    assert rows() == 0
    assert services.reconcile()["cleared"] == 0


def test_no_more_is_deleted_of_others(site: Site, run: TuningRun) -> None:
    other = Network.objects.create(owner=site.ada, name="other", sha256="b" * 64, size=5, state="ready",
                                   inspection=site.network.inspection, shapes=site.network.shapes)  # fmt: skip
    mine, site.network = site.network, other
    kept, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5)])
    services.remove_network(mine, site.ada)
    services.reconcile()
    assert list(TuningRun.objects.all()) == [kept]
    assert list(Network.objects.all()) == [other]
    assert Measurement.objects.filter(run=kept).count() == Measurement.objects.count() == 1
    services.write(held, [told.batch(0.4)])


def test_where_nothing_was_deleted_one_query_says_so(site: Site, run: TuningRun) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert remains.clear() == 0
    assert len(queries) == 1


@pytest.mark.django_db(transaction=True)
def test_a_network_whose_run_is_started_while_it_is_deleted_stays(data_dir: Any) -> None:
    """Who deletes waits for the transaction that starts the run, however it comes out."""
    site = Site()
    refused = list[services.Refused]()

    def remove() -> None:
        try:
            services.remove_network(site.network, site.ada)
        except services.Refused as error:
            refused.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=remove)
    with transaction.atomic():
        site.run()
        other.start()
        other.join(0.3)
        assert other.is_alive(), "it waits"
    other.join()
    assert [error.reason for error in refused] == ["something waits or works on it"]
    assert TuningRun.objects.get().network.owner == site.ada


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_who_deletes_a_network_waits_for_one_who_sends_a_message_of_its_jobs_and_not_he_too(data_dir: Any) -> None:
    """A worker that takes a run has its row, and at the end wants that of another job to stay."""
    site = Site()
    run = site.run()
    services.request(run, site.ada, "stop")
    remove = threading.Thread(target=in_threads, args=(1, lambda _: services.remove_network(site.network, site.ada)))
    with transaction.atomic():
        Job.objects.filter(pk=run.job_id).update(attempt=1)
        dispatch.queue(Job.objects.get(run=run, task="baseline"))
        remove.start()
        remove.join(0.3)
        assert remove.is_alive(), "it waits"
    remove.join()
    assert not Network.objects.filter(owner=site.ada).exists()
