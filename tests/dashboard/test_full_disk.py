"""What a page says where the disk has no room."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core import clock
from apps.core.full_disk import is_full, refusal
from apps.core.renewal import RENEWED
from apps.tuning import services
from apps.tuning.models import TuningRun
from apps.tuning.reconcile import reconcile
from apps.tuning.requests import words
from tests.apps.rows import Site

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="the limit is SQLite's")


@contextmanager
def takes(*changes: str) -> Iterator[None]:
    """The database may not grow, and each of these changes takes a megabyte."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE taken (bytes BLOB)")
        for number, change in enumerate(changes):
            taking = "BEGIN INSERT INTO taken VALUES (zeroblob(1000000)); END"
            cursor.execute(f"CREATE TRIGGER takes_{number} BEFORE {change} {taking}")
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0]}")
        yield
        cursor.execute("PRAGMA max_page_count = 1073741823")


@pytest.fixture
def full(site: Site) -> Iterator[None]:
    """There is no room to give a network away, or to keep a job."""
    with takes("UPDATE ON catalog_network", "INSERT ON tuning_job"):
        yield


@pytest.mark.usefixtures("full")
def test_a_full_disk_is_named_with_what_to_do(site: Site, ada: Client) -> None:
    ada.raise_request_exception = False
    answer = ada.post(reverse("delete-network", args=[site.network.pk]))
    page = answer.content.decode()
    assert answer.status_code == 507
    assert "The server’s disk is full" in page
    assert "Next step: delete what you no longer need" in page
    assert Network.objects.get(pk=site.network.pk).owner == site.ada


def test_on_a_full_disk_a_run_can_be_stopped(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or nothing of what it fills could be deleted."""
    run, tries = site.run(), list[str]()

    def word(_: object) -> bool:
        tries.append("room" if tries else "full")
        if tries == ["full"]:
            raise OperationalError from said(sqlite3.SQLITE_FULL)
        return True

    monkeypatch.setitem(words._WORDS, "stop", word)
    monkeypatch.setattr("apps.core.full_disk._let_go", lambda: True)
    assert ada.post(reverse("ask", args=[run.pk, "stop"]), headers={"HX-Request": "true"}).status_code == 200
    assert tries == ["full", "room"]


@pytest.mark.usefixtures("full")
def test_a_button_of_a_page_is_told_of_a_full_disk_in_a_sentence(site: Site, ada: Client) -> None:
    ada.raise_request_exception = False
    answer = ada.post(reverse("delete-network", args=[site.network.pk]), headers={"HX-Request": "true"})
    assert (answer.status_code, answer["Content-Type"]) == (507, "text/plain")
    assert answer.content.decode() == refusal().sentence


def test_who_comes_back_after_days_gets_to_where_room_is_made(ada: Client) -> None:
    session = ada.session
    session[RENEWED] = 0.0
    session.save()
    with takes("UPDATE ON django_session"):
        for _ in range(2):
            assert "Storage" in ada.get(reverse("storage")).content.decode()
    ada.get(reverse("storage"))
    assert ada.session[RENEWED] > 0.0


def test_what_is_nobodys_is_cleared_though_nothing_else_can_be_written(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what may make room."""
    run = site.run()
    Network.objects.filter(pk=run.network_id).update(owner=None)

    def full() -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr("apps.tuning.reconcile._interrupted", full)
    with pytest.raises(OperationalError):
        reconcile()
    assert not TuningRun.objects.exists()


@pytest.mark.parametrize("where", ["reconcile", "leases"])
def test_a_job_that_nobody_is_at_any_more_ends_by_the_room_that_is_kept_back(
    site: Site, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Its files are nobody's then, and may be what fills the disk."""
    held = services.claim(site.run().job_id)
    assert held is not None
    tries = list[str]()

    def settle(*_: object, **__: object) -> None:
        tries.append("room" if tries else "full")
        if tries == ["full"]:
            raise OperationalError from said(sqlite3.SQLITE_FULL)

    monkeypatch.setattr(f"apps.tuning.{where}.settle", settle)
    monkeypatch.setattr("apps.core.full_disk._let_go", lambda: True)
    if where == "leases":
        services.conclude(held, "crashed", "No space left on device")
    else:
        assert reconcile(clock.now() + timedelta(hours=1))["expired"] == 1
    assert tries == ["full", "room"]


def said(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError()
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "full"),
    [
        (sqlite3.SQLITE_FULL, True),
        (sqlite3.SQLITE_IOERR_WRITE, True),
        (sqlite3.SQLITE_IOERR_SHMSIZE, True),
        (sqlite3.SQLITE_BUSY, False),
    ],
)
def test_every_word_of_sqlite_for_no_room_is_known(code: int, full: bool) -> None:
    """A quota of the disk's is an error of writing to it."""
    error = OperationalError()
    error.__cause__ = said(code)
    assert is_full(error) == full


@pytest.mark.usefixtures("full")
def test_a_run_that_the_disk_does_not_take_is_refused_for_that(site: Site) -> None:
    with pytest.raises(services.Refused, match="it has no room; delete networks on the Storage page"):
        site.run()


@pytest.mark.usefixtures("full")
def test_an_upload_that_the_database_does_not_take_is_refused_for_that(site: Site) -> None:
    with pytest.raises(services.Refused, match="it has no room; delete networks on the Storage page"):
        create_network(site.ada, "a.onnx", [b"content"])


def test_whatever_else_breaks_is_the_sites_fault(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ada.raise_request_exception = False
    monkeypatch.setattr("apps.dashboard.views.storage.PAGE", "many")
    answer = ada.get(reverse("storage"))
    assert answer.status_code == 500
    assert "Something broke on the site’s side" in answer.content.decode()
