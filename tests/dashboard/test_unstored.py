"""Nothing that is an account's is kept by its browser or on the way there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.tuning.models import TuningRun
from tests.apps.rows import Site

PAGES = ("/", "/networks/", "/storage/", "/targets/", "/methods/", "/runs/new", "/nothing/")
KEPT = "Cache-Control"


def addresses(run: TuningRun) -> list[str]:
    of_run = [reverse(name, args=[run.pk]) for name in ("run", "snapshot")]
    of_run.append(reverse("job-log", args=[run.job_id]))
    files = [reverse("run-file", args=[run.pk, name]) for name in ("log.jsonl", "measurements.csv", "report.html")]
    of_network = [reverse(name, args=[run.network_id]) for name in ("network", "compared", "example")]
    return [*PAGES, *of_run, reverse("operator", args=[run.pk, 0]), *files, *of_network]


def test_pages_and_downloads_are_kept_nowhere(site: Site, ada: Client) -> None:
    run, _, _ = site.claimed()
    for address in addresses(run):
        answer = ada.get(address)
        assert answer[KEPT] == "private, no-store", address
        assert answer.status_code == (404 if address == "/nothing/" else 200)
    for address in ("/login/", "/login/used-up/", "/"):  # and what leads there
        assert Client().get(address)[KEPT] == "private, no-store", address


@pytest.mark.django_db
def test_what_is_everybodys_may_be_kept(client: Client) -> None:
    answer = client.get("/static/css/tokens.css")
    answer.close()
    assert answer.status_code == 200
    assert "no-store" not in answer.get(KEPT, "")


@pytest.mark.mutation
def test_pages_that_are_kept_are_noticed(site: Site, ada: Client, settings: Any) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.endswith("Unstored")]
    assert KEPT not in ada.get("/")
