"""What a page says where the disk has no room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.tuning import services
from tests.apps.rows import Site

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="the limit is SQLite's")


@pytest.fixture
def full(site: Site) -> Iterator[None]:
    """The database may not grow, and takes a megabyte to give a network away, or to keep a job."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE taken (bytes BLOB)")
        for number, change in enumerate(("UPDATE ON catalog_network", "INSERT ON tuning_job")):
            taking = "BEGIN INSERT INTO taken VALUES (zeroblob(1000000)); END"
            cursor.execute(f"CREATE TRIGGER takes_{number} BEFORE {change} {taking}")
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0]}")
        yield
        cursor.execute("PRAGMA max_page_count = 1073741823")


@pytest.mark.usefixtures("full")
def test_a_full_disk_is_named_with_what_to_do(site: Site, ada: Client) -> None:
    ada.raise_request_exception = False
    answer = ada.post(reverse("delete-network", args=[site.network.pk]))
    page = answer.content.decode()
    assert answer.status_code == 507
    assert "The server’s disk is full" in page
    assert "Next step: delete what you no longer need" in page
    assert Network.objects.get(pk=site.network.pk).owner == site.ada


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
