"""What a run leaves and what is said beside it: a library timed on a busy machine, one that is being compiled, a best that was
measured again."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from apps.core import clock
from apps.dashboard.report.story import coloured, story
from apps.tuning import services
from apps.tuning.live import snapshot
from apps.tuning.models import Artifact, Job, TuningRun
from apps.tuning.reconcile import PATIENCE
from tests.apps.rows import Site

SCRIPT = {"HX-Request": "true"}
BUSY = "The machine was busy when this was timed."
PERHAPS = "The machine may have been busy when this was timed."


def compiled(site: Site, seconds: float, spread: float) -> TuningRun:
    """A run with a sum of operators of 10 ms, and a library of it."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": "trials"})
    Job.objects.filter(run=run).delete()  # the compilation that is asked for at the end
    whole = {"clock": told.clock, "seconds": seconds, "spread": spread, "latency": 0.010, "verified": True}
    TuningRun.objects.filter(pk=run.pk).update(end_to_end=[whole])
    job = Job.objects.create(task="compile", owner=site.ada, run=run, network=site.network, state="done")
    Artifact.objects.create(
        run=run, job=job, sha256="b" * 64, size=11_700_000, state="ready", ratio=0.5, latency={"median": seconds}
    )
    return run


def page_of(ada: Client, run: TuningRun) -> str:
    return ada.get(reverse("run", args=[run.pk])).content.decode()


def report_of(ada: Client, run: TuningRun) -> str:
    return ada.get(reverse("run-file", args=[run.pk, "report.html"])).getvalue().decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("seconds", "spread", "said"), [(0.012, 0.0013, BUSY), (0.021, 0.0, PERHAPS), (0.030, 0.009, BUSY), (0.019, 0.0018, "")]
)  # fmt: skip
def test_a_library_that_was_timed_on_a_busy_machine_is_told_as_that_and_compiled_again(
    site: Site, ada: Client, seconds: float, spread: float, said: str
) -> None:
    run = compiled(site, seconds, spread)
    page = page_of(ada, run)
    beside = re.search(r'<div class="busy" id="busy">(.*?)</div>', page, re.DOTALL)
    assert beside
    assert re.sub(r"<[^>]+>", "", beside[1].partition("<form")[0]) == said
    again = "Compile the best again</button>"
    assert (beside[1].count(again), page.count(again)) == ((1, 2) if said else (0, 0))
    assert (BUSY in report_of(ada, run), PERHAPS in report_of(ada, run)) == (said == BUSY, said == PERHAPS)
    for lists in (
        reverse("home"),
        reverse("network", args=[run.network_id]),
        reverse("compared", args=[run.network_id]),
    ):
        assert ada.get(lists).content.decode().count(">on a busy machine<") == (said == BUSY)


def test_another_library_is_not_asked_for_twice(site: Site, ada: Client) -> None:
    run = compiled(site, 0.030, 0.009)
    before = page_of(ada, run)
    part = ada.post(reverse("compile", args=[run.pk]), headers=SCRIPT).content.decode()
    assert re.search(
        rf'id="busy" hx-swap-oob="true"><span class="warn" id="compile-again" tabindex="-1">{re.escape(BUSY)}</span></div>',
        part,
    )
    assert re.search('id="compiling" tabindex="-1">.*Compiling the best, about a minute', part)
    assert '<button id="compile-again">' in before
    assert "Download library" in part  # the one that there is
    assert Job.objects.filter(run=run, task="compile").count() == 2


def wrong(site: Site, run: TuningRun) -> None:
    """A later library of it, that computes something else."""
    job = Job.objects.create(task="compile", owner=site.ada, run=run, network=site.network, state="done")
    Artifact.objects.create(run=run, job=job, state="rejected", verdict={"passed": False, "reason": "y: 3 is not 2"})


def test_a_library_that_computes_something_else_is_said_where_it_is_waited_for(site: Site, ada: Client) -> None:
    """Though an older one is there to take."""
    run = compiled(site, 0.019, 0.0)
    said = re.compile(r'role="status" id="compiled">([^<]*)<')
    assert said.findall(page_of(ada, run)) == ["The library is ready"]
    wrong(site, run)
    page = page_of(ada, run)
    assert said.findall(page) == ["Not offered: the last library computes something else than ONNX Runtime"]
    head = page.partition('<div class="result"')[2].partition("</div>")[0]
    assert "The last library computes something else" in head
    assert "Download library" in head
    text = report_of(ada, run)
    assert "the last one, differ from ONNX Runtime’s: y: 3 is not 2; it is not offered" in text
    assert "b" * 64 in text, "of the one that is offered"


def test_a_compilation_that_failed_is_said_where_it_is_waited_for(site: Site, ada: Client) -> None:
    run = compiled(site, 0.019, 0.0)
    Job.objects.create(task="compile", owner=site.ada, run=run, network=site.network, state="failed", error="no room")
    head = page_of(ada, run).partition('<div class="result"')[2].partition("</div>")[0]
    assert "The best was not compiled" in head


def test_every_page_of_a_run_is_told_that_it_is_being_compiled(site: Site) -> None:
    run = compiled(site, 0.030, 0.009)
    services.request_artifact(run, site.ada)
    told = run.events.filter(kind="artifact").last()
    assert told is not None
    assert told.payload["state"] == "queued"


def test_what_leads_to_a_library_that_nobody_compiles_keeps_the_focus(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, now = compiled(site, 0.030, 0.009), clock.now()
    services.request_artifact(run, site.ada)
    monkeypatch.setattr(clock, "now", lambda: now + PATIENCE + timedelta(seconds=1))
    assert '<a class="compiling" id="compiling"' in page_of(ada, run)


def test_a_sum_of_operators_is_no_promise_on_the_list_of_runs(site: Site, ada: Client) -> None:
    run = compiled(site, 0.012, 0.0)
    TuningRun.objects.filter(pk=run.pk).update(
        end_to_end=[], baselines=[{"name": "ONNX Runtime", "seconds": 0.02, "spread": 0.0, "threads": 2}]
    )
    page = ada.get("/").content.decode()
    assert '10.0 ms<span class="second">sum of operators</span>' in page
    assert '<td class="num side soft"><span class="brief">2.00 x</span>' in page
    assert '</span><span class="second">operators alone</span></td>' in page


def test_the_report_marks_what_was_measured_again_and_keeps_its_line_from_rising(site: Site, ada: Client) -> None:
    run, held, told = site.claimed(1)
    first = told.measurement(0, 0.010)
    batches = [{**told.batch(), "measurements": [one]} for one in (first, {**first, "seconds": 0.011, "round": 1})]
    services.write(held, batches)
    drawn = snapshot(run)
    found = story(drawn, coloured(drawn["operators"]))
    assert found is not None
    heights = [float(pair.split(",")[1]) for pair in found.points.split()]
    assert heights == sorted(heights)
    assert [(line.name, line.seconds) for line in found.lines] == [("measured again", 0.011)]
    assert len(found.again) == 1
    text = report_of(ada, run)
    assert text.count('<circle class="whole"') == 1
    assert "circles what a best came to that was measured again" in text


def test_a_library_far_over_the_curve_leaves_it_its_room_in_the_report(site: Site) -> None:
    run = compiled(site, 0.050, 0.0)
    run.refresh_from_db()
    drawn = snapshot(run)
    found = story(drawn, coloured(drawn["operators"]))
    assert found is not None
    assert found.plot.high < 0.011
    assert {line.name: line.kind for line in found.lines} == {"end to end": "far", "best so far": "strong"}
    assert [y for _, y in found.wholes] == [found.plot.top]
