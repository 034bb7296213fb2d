"""The shared machine is measured again by who runs the site, and not too often."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.catalog.models import Target
from apps.core import clock, protection, signin
from apps.core.pace import Pace
from apps.core.protection import SCOPED, Protection
from apps.dashboard import paces
from apps.operations import doctor
from apps.tuning import services
from apps.tuning.models import Job
from tests.apps.rows import Site
from workers.sandbox import landlock

ADDRESS = "/targets/"
WHY = "Only who runs this site can have it measured again"


@pytest.fixture(autouse=True)
def fresh_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts of other tests had these accounts' numbers."""
    monkeypatch.setattr(paces, "MEASUREMENTS", Pace(6, 3600.0))


def asked(client: Client, site: Site) -> str:
    """The page that follows."""
    return client.post(reverse("remeasure", args=[site.target.pk]), follow=True).content.decode()


def measurements(site: Site) -> int:
    return Job.objects.filter(task="hardware", target=site.target).count()


def test_who_runs_the_site_has_a_machine_measured_again(site: Site, ada: Client) -> None:
    site.ada.is_staff = True
    site.ada.save()
    page = ada.get(ADDRESS).content.decode()
    assert f'action="{reverse("remeasure", args=[site.target.pk])}"' in page
    assert WHY not in page
    asked(ada, site)
    assert measurements(site) == 1


def test_one_account_of_several_cannot_and_is_told_why(site: Site, ada: Client) -> None:
    page = ada.get(ADDRESS).content.decode()
    assert "<form" not in page.partition("<main")[2]
    assert WHY in page
    assert "a machine: only who runs this site can have it measured again. Next step: ask them to." in asked(ada, site)
    Target.objects.filter(pk=site.target.pk).update(state="failed", error="odd", next_step="look")
    asked(ada, site)
    assert measurements(site) == 0
    assert Target.objects.get(pk=site.target.pk).state == "failed"


def test_the_only_account_can(site: Site, ada: Client) -> None:
    """Whatever it is: others that were closed do not count."""
    site.bob.is_active = False
    site.bob.save()
    asked(ada, site)
    assert measurements(site) == 1


@pytest.mark.django_db
def test_the_account_that_the_first_start_makes_can(data_dir: Any, django_user_model: Any) -> None:
    owner = signin.single_user()
    assert services.may_remeasure(owner)
    django_user_model.objects.create_user("ada", password="a long password")
    assert services.may_remeasure(owner)


def test_it_is_measured_so_often_and_no_more(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    site.ada.is_staff = True
    site.ada.save()
    monkeypatch.setattr(paces, "MEASUREMENTS", Pace(2, 3600.0))
    for times in (1, 2):
        asked(ada, site)
        assert measurements(site) == times
        Job.objects.update(state="done")
    assert (
        "a machine: an account has at most 2 measurements of a machine in 1 h. Next step: wait, then try again."
        in asked(ada, site)
    )
    assert measurements(site) == 2


def test_who_runs_the_site_adds_a_device_whose_key_no_page_shows(site: Site, ada: Client) -> None:
    site.ada.is_staff = True
    site.ada.save()
    key = "0123456789abcdef0123456789abcdef"
    page = ada.post(reverse("add-device"), {"address": "10.0.0.7:9200", "key": key}, follow=True).content.decode()
    assert "10.0.0.7:9200" in page
    assert key not in page
    device = Target.objects.get(kind="device")
    Job.objects.filter(target=device).update(state="failed")
    for _ in range(2):  # as a double click does
        page = ada.post(reverse("remove-device", args=[device.pk]), follow=True).content.decode()
        assert "10.0.0.7:9200" not in page
        assert "<h1>Targets</h1>" in page
        assert not Target.objects.filter(kind="device").exists()


def test_others_are_offered_no_device_form_and_get_nowhere_with_one(site: Site, ada: Client) -> None:
    page = ada.post(reverse("add-device"), {"address": "10.0.0.7", "key": "k" * 32}, follow=True).content.decode()
    assert "only who runs this site can add devices" in page
    assert "Add a device" not in page
    device = Target.objects.create(kind="device", name="a board", host="10.0.0.7", port=9190, key="k" * 32)
    page = ada.post(reverse("remove-device", args=[device.pk]), follow=True).content.decode()
    assert "only who runs this site can remove devices" in page
    assert Target.objects.filter(pk=device.pk).exists()
    assert ada.get(reverse("add-device")).status_code == 405


def test_a_mistyped_address_is_said(site: Site, ada: Client) -> None:
    site.ada.is_staff = True
    site.ada.save()
    page = ada.post(reverse("add-device"), {"address": "board:x", "key": "k" * 32}, follow=True).content.decode()
    assert "&#x27;x&#x27; is no port. Next step: write a number from 1 to 65535 behind the colon." in page


def test_a_device_that_waits_to_be_called_can_be_removed(site: Site, ada: Client) -> None:
    site.ada.is_staff = True
    site.ada.save()
    target = services.add_device(services.device_at("10.0.0.9", "k" * 32), site.ada)
    remove = f'action="{reverse("remove-device", args=[target.pk])}"'
    assert remove in ada.get(ADDRESS).content.decode()
    assert services.claim(Job.objects.get(target=target).pk) is not None
    assert remove not in ada.get(ADDRESS).content.decode()


def test_a_device_that_runs_were_tuned_for_is_not_offered_for_removal(site: Site, ada: Client) -> None:
    site.ada.is_staff = True
    site.ada.save()
    Target.objects.update(kind="device", host="10.0.0.9", port=9190, key="k" * 32)
    remove, why = (
        f'action="{reverse("remove-device", args=[site.target.pk])}"',
        "2 runs tuned for it: it can be removed once",
    )
    page = ada.get(ADDRESS).content.decode()
    assert (remove in page, why in page) == (True, False)
    for seed in range(2):
        site.run(seed=seed)
    page = ada.get(ADDRESS).content.decode()
    assert (remove in page, why in page) == (False, True)
    other = Target.objects.create(kind="device", name="a board", host="10.0.0.8", port=9190, key="k" * 32)
    page = ada.get(ADDRESS).content.decode()
    assert (page.count(why), f'action="{reverse("remove-device", args=[other.pk])}"' in page) == (1, True)


def test_how_many_runs_a_machine_has_is_asked_in_one_query_that_joins_none(site: Site, ada: Client) -> None:
    """The rows of a target are wide."""
    ada.get(ADDRESS)  # the first of a day renews the session
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as asked_for:
            ada.get(ADDRESS)
        counts.append(len(asked_for))
        assert not [query["sql"] for query in asked_for if 'JOIN "tuning_tuningrun"' in query["sql"]]
        for seed in range(3):
            site.run(seed=seed)
    assert counts[0] == counts[1]


def test_what_was_typed_of_a_device_that_is_refused_stays_but_for_its_key(site: Site, ada: Client) -> None:
    site.ada.is_staff = True
    site.ada.save()
    page = ada.post(reverse("add-device"), {"address": 'board:"x', "key": "k" * 32}).content.decode()
    form = page[page.index(f'action="{reverse("add-device")}"') :]
    assert "is no port. Next step: write a number" in form
    assert 'value="board:&quot;x"' in form
    assert "k" * 32 not in page
    assert "autofocus" not in ada.get(ADDRESS).content.decode()


@pytest.mark.parametrize(("level", "signals"), [(0, True), (SCOPED - 1, True), (SCOPED, False)])
def test_that_uploaded_files_can_end_processes_is_said_with_what_keeps_them_from_it(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch, level: int, signals: bool
) -> None:
    Target.objects.update(measured_at=clock.now())
    monkeypatch.setattr(protection, "offered", lambda: Protection(level, True))
    page = ada.get(ADDRESS).content.decode()
    assert ("can end other processes of this user: Linux 6.12 or newer keeps them from that" in page) is signals
    assert page.count("let only people you trust upload") == signals
    files, _ = doctor.confinement()
    assert files.level == ("warn" if signals else "ok")
    assert ("Linux 6.12 or newer" in files.step) is signals
    assert ("processes of this user" in files.text) is signals


def test_the_web_side_and_the_workers_mean_the_same_version() -> None:
    assert SCOPED == landlock.SCOPED


def test_a_graphics_card_is_told_as_one(site: Site, ada: Client) -> None:
    tvm = {"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm", "mcpu": "znver4"}}
    hardware = {**site.target.hardware, "name": "NVIDIA H200", "target": tvm}
    Target.objects.filter(pk=site.target.pk).update(tvm=tvm, hardware=hardware, threads=132, measured_at=clock.now())
    page = ada.get(ADDRESS).content.decode()
    assert "<dt>multiprocessors in use</dt><dd>132</dd>" in page
    assert "<dt>Graphics card</dt><dd>NVIDIA H200</dd>" in page
    assert "kind=cuda arch=sm_90 host.kind=llvm host.mcpu=znver4" in page
