"""The end of what a job printed is one click away from where its failure is said, for whom it is."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network, Target
from apps.tuning import services
from apps.tuning.models import Job
from tests.apps.rows import Site

PRINTED = "Traceback <b>of</b> the linker"
SHOWN = "Traceback &lt;b&gt;of&lt;/b&gt; the linker"


def failed(job: Job) -> Job:
    held = services.claim(job.pk)
    assert held is not None
    last = {
        "kind": "failed",
        "clock": 0.0,
        "error": "OSError",
        "reason": "there is no linker",
        "next_step": "install one",
    }
    services.conclude(held, "failed", "", PRINTED, last)
    return job


def log_of(job: Job) -> str:
    return reverse("job-log", args=[job.pk])


@pytest.mark.parametrize("task", ["compile", "inspect", "convert", "tune"])
def test_a_log_is_its_owners(site: Site, ada: Client, bob: Client, task: str) -> None:
    job = failed(Job.objects.create(task=task, owner=site.ada, network=site.network))
    assert ada.get(log_of(job)).content.decode() == SHOWN
    assert bob.get(log_of(job)).status_code == 404
    assert Client().get(log_of(job))["Location"].startswith("/login/")


def test_the_log_of_the_machine_is_for_who_may_have_it_measured(site: Site, ada: Client, bob: Client) -> None:
    for owner in (None, site.bob):  # who asked for it once, and may no more
        job = failed(Job.objects.create(task="hardware", owner=owner, target=site.target))
        assert bob.get(log_of(job)).status_code == 404
    site.ada.is_staff = True
    site.ada.save()
    assert ada.get(log_of(job)).content.decode() == SHOWN


def test_why_a_library_was_not_compiled_is_beside_it(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    job = failed(services.request_artifact(run, site.ada))
    told_of = ada.get(reverse("run", args=[run.pk])).content.decode().partition("there is no linker")[2]
    assert f'hx-get="{log_of(job)}"' in told_of
    assert SHOWN in told_of


def test_that_nothing_was_printed_is_said_of_what_is_over_alone(site: Site, ada: Client) -> None:
    run, held, _ = site.claimed()
    page = reverse("run", args=[run.pk])
    assert ">Nothing was printed yet.</pre>" in ada.get(page).content.decode()
    services.conclude(held, "failed", last={"kind": "failed", "reason": "no memory", "next_step": "buy some"})
    assert ">Nothing was printed.</pre>" in ada.get(page).content.decode()


def test_why_a_network_was_not_read_is_beside_it(site: Site, ada: Client) -> None:
    Network.objects.filter(pk=site.network.pk).update(state="inspecting")
    job = failed(Job.objects.create(task="inspect", owner=site.ada, network=site.network))
    page = ada.get(reverse("network", args=[site.network.pk])).content.decode()
    assert f'hx-get="{log_of(job)}"' in page.partition("there is no linker")[2]


@pytest.mark.parametrize("state", ["new", "ready"])
def test_why_the_machine_was_not_measured_is_beside_it_for_who_may_ask(
    site: Site, ada: Client, bob: Client, state: Any
) -> None:
    Target.objects.filter(pk=site.target.pk).update(state=state, kind="local")
    site.ada.is_staff = True
    site.ada.save()
    job = failed(Job.objects.create(task="hardware", owner=site.ada, target=site.target))
    page = ada.get("/targets/").content.decode()
    assert f'hx-get="{log_of(job)}"' in page.partition("there is no linker")[2]
    assert ("It was not measured again: " in page) == (state == "ready")
    theirs = bob.get("/targets/").content.decode()
    assert "there is no linker" in theirs
    assert SHOWN not in theirs
