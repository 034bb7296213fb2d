"""What is asked for and not begun: that nobody takes it, or that other work comes first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network, Target
from apps.core import clock
from apps.tuning import services
from apps.tuning.models import Job
from apps.tuning.reconcile import PATIENCE
from apps.tuning.states import State
from apps.tuning.waiting import Wait, wait_of
from tests.apps.rows import Site
from workers.messages.names import QUEUE_MEASURE, QUEUE_PREPARE, QUEUE_READ, THREADS

LATER = timedelta(seconds=1)
_OTHER = {QUEUE_MEASURE: "tune", QUEUE_PREPARE: "compile", QUEUE_READ: "inspect"}
Pages = dict[str, tuple[str, list[str]]]


@pytest.fixture
def pages(site: Site) -> Pages:
    """Of what is queued: its queue, and the pages that say so."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    services.request(run, site.ada, "pause")
    services.conclude(held, "paused")
    services.request_artifact(run, site.ada)
    network = Network.objects.create(owner=site.ada, name="new", sha256="b" * 64, size=6)
    Job.objects.create(task="inspect", owner=site.ada, network=network)
    Target.objects.filter(pk=site.target.pk).update(state="new", kind="local")
    Job.objects.create(task="hardware", target=site.target)
    of_network = [reverse("network", args=[network.pk]), reverse("network-state", args=[network.pk])]
    of_library = [reverse("run", args=[run.pk])]
    return {
        "inspection": (QUEUE_READ, [*of_network, reverse("example", args=[network.pk])]),
        "compilation": (QUEUE_PREPARE, of_library),
        "measurement": (QUEUE_MEASURE, ["/targets/", reverse("example", args=[site.network.pk])]),
    }


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    now = clock.now()
    return lambda passed: monkeypatch.setattr(clock, "now", lambda: now + passed)


@pytest.mark.parametrize("what", ["inspection", "compilation", "measurement"])
def test_what_nobody_takes_says_what_to_do(
    ada: Client, pages: Pages, later: Callable[[timedelta], None], what: str
) -> None:
    for address in pages[what][1]:
        assert "No worker answers" not in ada.get(address).content.decode(), address
    later(PATIENCE + LATER)
    for address in pages[what][1]:
        page = ada.get(address).content.decode()
        assert page.count("No worker answers") == 1, address
        assert "manage.py doctor" in page, address


@pytest.mark.parametrize("what", ["inspection", "compilation", "measurement"])
def test_what_waits_for_other_work_says_so_and_not_how_little_it_takes(
    site: Site, ada: Client, pages: Pages, later: Callable[[timedelta], None], what: str
) -> None:
    queue, addresses = pages[what]
    for _ in range(THREADS[queue]):
        lease = clock.now() + timedelta(hours=1)
        Job.objects.create(task=_OTHER[queue], owner=site.bob, state=State.RUNNING, lease_until=lease)
    later(PATIENCE + LATER)
    for address in addresses:
        page = ada.get(address).content.decode()
        assert "aits for other work" in page, address
        for soon in ("about half a minute, and", "offline; about a minute", "takes a few seconds", "within a minute"):
            assert soon not in page, (address, soon)


def test_a_machine_that_was_measured_says_too_that_it_waits_for_other_work(site: Site, ada: Client) -> None:
    Target.objects.filter(pk=site.target.pk).update(kind="local", measured_at=clock.now())
    Job.objects.create(task="hardware", target=site.target)
    assert "aits for other work" not in ada.get("/targets/").content.decode()
    Job.objects.create(task="tune", owner=site.bob, state="running", lease_until=clock.now() + LATER)
    page = ada.get("/targets/").content.decode()
    assert "waits for other work</span>" in page
    assert "; again when nothing else runs</dd>" in page


def test_what_a_free_thread_takes_up_at_once_waits_for_nothing(site: Site) -> None:
    job, other = (Job.objects.create(task="inspect", owner=site.ada, network=site.network) for _ in range(2))
    assert wait_of(None) is None
    assert wait_of(job) == Wait(0, None, True)
    assert services.claim(job.pk) is not None
    assert wait_of(other, clock.now() + PATIENCE + LATER) == Wait(0, None, True)
    assert wait_of(Job.objects.get(pk=job.pk)) is None


def test_what_waits_for_its_next_attempt_waits_for_nobody(site: Site) -> None:
    job = Job.objects.create(task="compile", owner=site.ada, network=site.network)
    held = services.claim(job.pk)
    assert held is not None
    services.conclude(held, "crashed", "no space")
    job.refresh_from_db()
    assert wait_of(job) is None
    assert wait_of(job, clock.now() + timedelta(seconds=11)) == Wait(0, None, True)
