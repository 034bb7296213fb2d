"""Lists of runs read what they show, and ask again as often as something changes."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.catalog.models import Network
from apps.core import clock
from apps.dashboard import forms
from apps.dashboard.listed import LONG
from apps.dashboard.views import home
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from apps.tuning.reconcile import PATIENCE
from tests.apps.rows import Site
from workers.messages.spec import Budget

COLUMNS = [name.partition("__")[2] or name for name in LONG]


def asked(client: Client, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in queries]


def ended(site: Site) -> None:
    """A run with a latency."""
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5), told.slot() | {"latency": 0.5}])
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": "trials"})
    run.refresh_from_db()
    assert run.latency == 0.5


def test_the_first_page_asks_often_only_while_something_goes_on(site: Site, ada: Client) -> None:
    run = site.run()
    for state, every in (
        ("queued", "4s"),
        ("running", "4s"),
        ("interrupted", "4s"),
        ("paused", "60s"),
        ("done", "60s"),
    ):
        Job.objects.filter(pk=run.job_id).update(state=state)
        assert f'hx-trigger="every {every},' in ada.get("/").content.decode(), state


def test_a_list_with_a_run_that_no_worker_takes_says_so(
    site: Site, ada: Client, bob: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.run()
    addresses, said = ("/", reverse("network", args=[site.network.pk])), "<strong>No worker answers.</strong>"
    assert not any(said in ada.get(address).content.decode() for address in addresses)
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + PATIENCE + timedelta(seconds=1))
    for address in addresses:
        part = ada.get(address).content.decode().partition('<div id="rows"')[2]  # what asks for itself again
        assert said in part, address
    assert said not in bob.get("/").content.decode()
    Job.objects.filter(task="tune").update(state="paused")
    assert said not in ada.get("/").content.decode()


def test_the_latency_of_a_list_is_the_librarys_while_nothing_since_was_better(site: Site, ada: Client) -> None:
    """End to end, and else the sum of operators."""
    ended(site)
    whole = {"clock": 2.0, "seconds": 0.75, "latency": 0.5, "spread": 0.0, "verified": True}
    assert '<td class="num">500 ms<span class="second">sum of operators</span></td>' in ada.get("/").content.decode()
    TuningRun.objects.update(end_to_end=[whole])
    assert '<td class="num">750 ms</td>' in ada.get("/").content.decode()


POLL = {"HX-Request": "true"}


def test_runs_are_found_by_a_part_of_their_network_s_name(site: Site, ada: Client) -> None:
    run = site.run()
    other = Network.objects.create(
        owner=site.ada,
        name="Bert & Co",
        sha256="b" * 64,
        size=5,
        state="ready",
        shapes={"x": [1]},
        inspection={"inputs": []},
    )
    bert = services.create_run(site.ada, other, site.target, "auto", Budget(trials=1))

    def shown(address: str, **headers: str) -> list[str]:
        return re.findall(r'id="run-([^"]+)"', ada.get(address, headers=headers).content.decode())

    assert shown("/?q=") == [str(bert.pk), str(run.pk)]
    assert shown("/?q=eeze") == [str(run.pk)]
    assert shown("/?q=%20bert%20%26") == shown("/?q=bert%00%20%26", **POLL) == [str(bert.pk)]
    page = ada.get("/?q=bert+%26").content.decode()
    assert 'id="rows" hx-get="/?q=bert+%26"' in page  # asks for the same again
    assert 'name="q" value="bert &amp;"' in page


def test_a_filter_that_finds_nothing_says_so_and_goes_on_looking(site: Site, ada: Client, bob: Client) -> None:
    site.run()
    for client, part in ((ada, "bert"), (ada, "%"), (ada, "x" * 100_000), (bob, "squeeze")):
        answer = client.get("/", {"q": part}, headers=POLL)
        assert "HX-Refresh" not in answer.headers
        page = answer.content.decode()
        assert "No run of a network with" in page
        assert '<a id="all-runs" href="/">All runs</a>' in page
        assert "Run the example" not in page
        assert 'id="rows" hx-get="/?q=' in page
    assert "Run the example" in bob.get("/").content.decode()
    assert bob.get("/", headers=POLL).headers["HX-Refresh"] == "true"


def test_the_pages_of_a_filtered_list_are_filtered(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "PAGE", 1)
    for seed in range(2):
        site.run(seed=seed)
    page = ada.get("/?q=squeeze").content.decode()
    assert '<a href="?q=squeeze&amp;page=2">Older</a>' in page
    assert '<a href="?page=2">Older</a>' in ada.get("/").content.decode()


def test_lists_of_runs_do_not_read_what_they_do_not_show(site: Site, ada: Client) -> None:
    ended(site)
    for address in ("/", reverse("compared", args=[site.network.pk])):
        (runs,) = [query for query in asked(ada, address) if '"tuning_tuningrun"."method"' in query]
        assert not [name for name in COLUMNS if f'"{name}"' in runs], address


def test_more_runs_are_no_more_queries(site: Site, ada: Client) -> None:
    """What is not read at first is not asked for run by run either."""
    addresses = ("/", reverse("network", args=[site.network.pk]), reverse("compared", args=[site.network.pk]))
    counts = []
    ada.get("/")  # the first of a day renews the session
    for _ in range(2):
        ended(site)
        counts.append([len(asked(ada, address)) for address in addresses])
    assert counts[0] == counts[1]


def test_the_list_of_networks_reads_no_inspection_whole(site: Site, ada: Client) -> None:
    site.run()
    whole = re.compile(r'"inspection", "')  # and the next column
    assert not [sql for sql in asked(ada, "/networks/") if whole.search(sql)]
    assert [sql for sql in asked(ada, reverse("network", args=[site.network.pk])) if whole.search(sql)], (
        "the pattern finds one"
    )


def test_a_new_run_is_offered_the_newest_networks_and_the_one_it_is_asked_for_each_read_once(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "OFFERED", 2)
    dynamic = [{"input": "x", "axis": 0, "symbol": "N"}]
    for name in ("older", "newer", "newest"):
        Network.objects.create(
            owner=site.ada, name=name, sha256=name, size=5, state="ready",
            inspection={"inputs": [{"name": "x", "shape": ["N"]}], "dynamic": dynamic}, shapes={"x": [8]},
        )  # fmt: skip

    def offered(address: str) -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            text = ada.get(address).content.decode()
        reading = [query["sql"] for query in queries if "open_sizes" in query["sql"].partition(" FROM ")[0]]
        assert sum("LIMIT 21" not in sql for sql in reading) == 1, "beside the one that is asked for"
        assert "The newest are offered" in text
        (options,) = re.findall(r'<select name="network".*?</select>', text, re.DOTALL)
        (sizes,) = re.findall(r'name="sizes" value="([^"]*)"', text)
        assert len(sizes.split()) == options.count(", x 8<")
        return re.findall(r">([^<,]+)(?:, x 8)?</option>", options)

    assert offered("/runs/new") == ["newest", "newer"]
    assert offered(f"/runs/new?network={site.network.pk}") == ["newest", "newer", "squeezenet"]
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "3"}
    assert ada.post("/runs/new", form).status_code == 302
