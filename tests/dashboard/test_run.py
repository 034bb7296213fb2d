"""A run's page as the server makes it: what it leads to, what it waits for, what it says without a script."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network
from apps.core import clock
from apps.dashboard import humans
from apps.dashboard.views import runs
from apps.tuning import services
from apps.tuning.models import Artifact, Job, TuningRun
from apps.tuning.reconcile import PATIENCE
from tests.apps.rows import Site, Told
from workers.messages.names import WORKERS
from workers.messages.orders import FUTILE
from workers.messages.spec import Budget

SCRIPT = {"HX-Request": "true"}


def ended(site: Site) -> tuple[TuningRun, Told]:
    """A run with a latency of 10 ms."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": "trials"})
    Job.objects.filter(run=run).delete()  # the compilation that is asked for at the end
    run.refresh_from_db()
    return run, told


def compiled(site: Site, run: TuningRun, seconds: float = 0.012) -> Artifact:
    """A library of what it found so far."""
    job = Job.objects.create(task="compile", owner=site.ada, run=run, network=site.network, state="done")
    whole = {"clock": run.clock, "seconds": seconds, "spread": 0.0, "latency": run.latency, "verified": True}
    TuningRun.objects.filter(pk=run.pk).update(end_to_end=[*run.end_to_end, whole])
    return Artifact.objects.create(
        run=run, job=job, sha256="b" * 64, size=11_700_000, state="ready", ratio=0.5, latency={"median": seconds}
    )


def page_of(client: Client, run: TuningRun) -> str:
    return client.get(reverse("run", args=[run.pk])).content.decode()


def test_a_run_that_is_over_leads_to_its_result_and_on(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    assert "Download library" not in page_of(ada, run)
    library = compiled(site, run)
    address = reverse("artifact", args=[library.pk])
    page = page_of(ada, run)
    assert f'<a class="button primary" id="take" href="{address}">Download library, 11.7 MB</a>' in page
    assert f'href="{reverse("new-run")}?network={run.network_id}&amp;target={run.target_id}&amp;method=auto' in page
    assert 'id="compare"' not in page  # with nothing
    ended(site)
    assert f'id="compare" href="{reverse("compared", args=[run.network_id])}"' in page_of(ada, run)


def test_the_top_of_a_page_is_not_older_than_what_is_drawn(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, snapshot = site.run(), runs.snapshot

    def paused_meanwhile(found: TuningRun) -> Any:
        services.request(run, site.ada, "pause")
        return snapshot(found)

    monkeypatch.setattr(runs, "snapshot", paused_meanwhile)
    page = page_of(ada, run)
    assert 'data-part="state" data-state="paused"' in page
    assert 'data-part="pause" hidden' in page
    assert 'data-part="resume" hidden' not in page


def further(ada: Client, run: TuningRun) -> str:
    """The address behind "Tune further"."""
    link = re.search(r'id="further" href="([^"]+)"', page_of(ada, run))
    assert link
    return html.unescape(link[1])


def test_tuning_further_keeps_the_parts(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    TuningRun.objects.filter(pk=run.pk).update(parts={"scheduler": "round_robin"})
    page = ada.get(further(ada, run)).content.decode()
    assert '<option value="round_robin" selected>' in page
    assert '<details class="field" open><summary>Parts</summary>' in page
    assert '<details class="field"><summary>Seed, layout and operators</summary>' in page


def test_what_a_link_asks_for_and_is_not_offered_any_more_is_said(site: Site, ada: Client) -> None:
    """A browser shows another in its place, which would be tuned without a word."""
    run, _ = ended(site)
    said, address = "look which other one is chosen here", further(ada, run)
    assert said not in ada.get(address).content.decode()
    Network.objects.create(
        owner=site.ada, name="other", sha256="f" * 64, size=1, state="ready", shapes={"x": [1]}, inspection={}
    )
    Network.objects.filter(pk=run.network_id).update(state="rejected")
    page = ada.get(address).content.decode()
    assert f"The network that was asked for is deleted, or cannot be tuned: {said}" in page
    assert page.count(said) == 1
    gone = address.replace(str(run.target_id), "-" * 36)
    assert f"The target that was asked for cannot be tuned for now: {said}" in ada.get(gone).content.decode()


def test_tuning_further_keeps_layout_and_operators(site: Site, ada: Client) -> None:
    """In another layout other operators are tuned: what the run found would be of no use to them."""
    run, _ = ended(site)
    TuningRun.objects.filter(pk=run.pk).update(layout="NCHW", operators_asked="compute")
    page = ada.get(further(ada, run)).content.decode()
    assert '<option value="NCHW" selected>' in page
    assert '<option value="compute" selected>convolutions and matrix products only</option>' in page
    assert '<details class="field" open><summary>Seed, layout and operators</summary>' in page
    for began, preset in (({"layout": "NCHW"}, "NCHW"), ({"layout": "none"}, "measured"), ({}, "measured")):
        TuningRun.objects.filter(pk=run.pk).update(layout="measured", started_facts=began)
        assert f"layout={preset}" in further(ada, run)
    page = ada.get(f"{reverse('new-run')}?layout=XYZ&operators=some").content.decode()
    assert '<details class="field"><summary>Seed, layout and operators</summary>' in page


def test_tuning_further_keeps_the_budget_but_for_what_was_reached(site: Site, ada: Client) -> None:
    """With what the form begins with where nothing is left of it."""
    names = ("minutes", "trials", "latency", "gain")

    def preset(page: str) -> list[str]:
        fields = (re.search(rf'<input[^>]* name="{name}"[^>]*>', page) for name in names)
        values = (field and re.search(r'value="([^"]*)"', field[0]) for field in fields)
        return [value[1] if value else "" for value in values]

    run, _ = ended(site)
    assert preset(ada.get(further(ada, run)).content.decode()) == ["", "100", "", ""]
    limits = {"budget_seconds": 90.0, "budget_trials": None, "budget_latency": 0.00278, "budget_gain": 0.01}
    lefts = {"seconds": ["1.5", "", "2.78", "1"], "target": ["1.5", "", "", "1"], "gain": ["1.5", "", "2.78", ""]}
    for reason, left in lefts.items():
        TuningRun.objects.update(finished_reason=reason, **limits)
        assert preset(ada.get(further(ada, run)).content.decode()) == left
    TuningRun.objects.update(finished_reason="target", budget_seconds=None, budget_gain=None)
    assert preset(ada.get(further(ada, run)).content.decode()) == ["10", "", "", ""]
    page = ada.get(f"{reverse('new-run')}?minutes=nan&trials=%22x&latency=-1&gain=100").content.decode()
    assert preset(page) == ["10", "", "", ""]


def test_a_run_of_other_sizes_than_its_network_has_now_is_not_tuned_further(site: Site, ada: Client) -> None:
    """What it found is of no use to a run of those."""
    run, _ = ended(site)
    Network.objects.update(shapes={"x": [2, 3, 8, 8]})
    page = page_of(ada, run)
    assert 'id="further"' not in page
    assert f'id="resize" href="{reverse("network", args=[run.network_id])}"' in page


def test_files_of_a_run_are_named_alike_by_its_page_and_by_the_server(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    Network.objects.update(name="Bert v1.2/\u00e9")
    assert 'data-file="Bert-v1.2"' in page_of(ada, run)
    sent = ada.get(reverse("run-file", args=[run.pk, "log.jsonl"]))["Content-Disposition"]
    assert sent == 'attachment; filename="Bert-v1.2-log.jsonl"'


REPORT = {
    "parts": {"scheduler": "dynatune", "explorer": "ppo", "sampler": "adaptive"},
    "slots": 41, "decided_by_belief": 6, "differs_from_round_robin": 40,
    "search": {"reached": 610, "enumerated": 0, "evaluations": 5000, "explorer": 640, "not_greedy": 0, "left_out": 0},
    "timings": {"runs": 5760, "stopped": {"complete": 640}},
}  # fmt: skip


def test_a_run_that_stands_still_says_what_each_part_changed(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    part = '<section class="section" id="effects" aria-labelledby="effects-title"'
    assert f"{part} hidden>" in page_of(ada, run)
    last = {"kind": "finished", "clock": told.clock, "reason": "trials", "report": REPORT}
    services.write(held, [last])
    assert f"{part} hidden>" in page_of(ada, run)  # a run that goes on has the report of its last attempt
    services.conclude(held, "finished", last=last)
    fetched = ada.get(reverse("standing", args=[run.pk]), headers=SCRIPT).content.decode()
    assert f'{part} hx-swap-oob="true">' in fetched
    report = ada.get(reverse("run-file", args=[run.pk, "report.html"])).getvalue().decode()
    for page in (page_of(ada, run), fetched, report):
        assert "<p>Slots: 41, 6 decided by the belief, 40 unlike round-robin.</p>" in page
        assert "<p>Explorer: 610 of 640 candidates reached by walking.</p>" in page
        assert "<p>Sampler: 0 of 640 candidates chosen against greedy. " in page
        assert '<span class="warn">The sampler changed nothing: it chose as greedy would have.</span>' in page
        assert "<p>Evaluator: 5\u202f760 runs in 640 timings, 640 to their end.</p>" in page


def test_what_the_parts_of_an_attempt_changed_is_not_told_of_the_next(site: Site, ada: Client) -> None:
    """One that ends without a word has no report, and the slots of the one before are not all."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    services.request(run, site.ada, "pause")
    last = {"kind": "finished", "clock": told.clock, "reason": "paused", "report": REPORT}
    services.write(held, [last])
    services.conclude(held, "paused", last=last)
    shown = '<section class="section" id="effects" aria-labelledby="effects-title">'
    assert shown in page_of(ada, run)
    services.request(run, site.ada, "resume")
    held = services.claim(run.job_id)
    assert held is not None
    services.write(held, [*told.start(), told.slot()])
    services.conclude(held, "failed", last={"kind": "failed", "clock": told.clock, "reason": "the device stays away"})
    assert shown not in page_of(ada, run)


def test_a_library_that_was_deleted_can_be_compiled_again_beside_an_older_one(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    first = compiled(site, run)
    run.refresh_from_db()
    second = compiled(site, run, 0.011)
    again = "Compile the best again</button>"
    assert again not in page_of(ada, run)
    ada.post(reverse("delete-library", args=[second.pk]))
    page = page_of(ada, run)
    assert f'href="{reverse("artifact", args=[first.pk])}"' in page
    assert again in page


@pytest.mark.parametrize(
    "report",
    [{}, [], {"slots": "many"}, {"slots": 3, "search": []}, {"slots": 3, "parts": 7}, {"slots": {}}],
)
def test_a_report_that_is_none_changes_no_page(site: Site, ada: Client, report: object) -> None:
    run, _ = ended(site)
    TuningRun.objects.filter(pk=run.pk).update(report=report)
    assert 'aria-labelledby="effects-title" hidden>' in page_of(ada, run)


def test_the_top_of_the_page_follows_its_downloads(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    compiled(site, run)
    part = ada.get(reverse("downloads", args=[run.pk]), headers=SCRIPT).content.decode()
    assert re.search(r'id="result" hx-swap-oob="true">\s*<a class="button primary" id="take"', part)
    assert "hx-swap-oob" not in page_of(ada, run)


def test_while_it_goes_on_a_run_is_not_tuned_further(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    run.refresh_from_db()
    compiled(site, run)
    page = page_of(ada, run)
    assert '<a class="button" id="take"' in page
    assert 'id="further"' not in page


def test_a_library_is_named_by_its_date_and_compiled_again_for_something_better_only(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    run.refresh_from_db()
    assert "Compile the best so far</button>" in page_of(ada, run)
    library = compiled(site, run)
    page = page_of(ada, run)
    assert f">Library of {humans.moment(library.created)}</a>" in page
    assert '<button id="compile"' not in page
    services.write(held, [told.batch(0.002, operator=1)])
    assert "Compile the best so far again</button>" in page_of(ada, run)


def test_what_is_compiled_of_a_run_that_is_over_can_be_stopped(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])
    services.request_artifact(run, site.ada)
    assert 'id="withdraw"' not in page_of(ada, run), "it would stop the run"
    services.conclude(held, "finished")
    assert "Stop compiling</button>" in page_of(ada, run)
    assert ada.post(f"/runs/{run.pk}/ask/stop", follow=True).status_code == 200
    page = page_of(ada, run)
    assert 'id="withdraw"' not in page
    assert "Compile the best</button>" in page


def test_a_best_that_was_not_compiled_may_be_compiled_again_beside_an_older_library(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    compiled(site, run)
    assert "Compile the best again</button>" not in page_of(ada, run)
    Job.objects.create(task="compile", owner=site.ada, run=run, network=site.network, state="failed", error="no room")
    assert "Compile the best again</button>" in page_of(ada, run)


def test_a_new_run_is_preset_with_the_network_and_the_method_of_another(site: Site, ada: Client) -> None:
    page = ada.get(f"{reverse('new-run')}?network={site.network.pk}&method=chameleon").content.decode()
    assert re.search(r'value="chameleon" checked', page)
    assert re.search(rf'<option value="{site.network.pk}" selected', page)
    page = ada.get(f"{reverse('new-run')}?method=%3Cb%3E").content.decode()
    assert re.search(r'value="auto" checked', page)


def test_the_buttons_that_end_a_run_say_so_and_the_one_that_keeps_comes_first(site: Site, ada: Client) -> None:
    run, _, _ = site.claimed()
    page = page_of(ada, run)
    assert list(runs.WORDS.values())[-2:] == ["Stop and compile best", "Stop without compiling"]
    for label, tag in (("Stop and compile best", "button"), ("Stop without compiling", "summary")):
        assert f'title="A stopped run cannot go on; Pause can">{label}</{tag}>' in page


def test_who_would_stop_and_leave_nothing_is_asked_first(site: Site, ada: Client) -> None:
    run, _, _ = site.claimed()
    (asked,) = re.findall(r'<details[^>]* data-part="stop">.*?</details>', page_of(ada, run), re.DOTALL)
    question, _, form = asked.partition("</summary>")
    assert "<form" not in question
    assert f'hx-post="{reverse("ask", args=[run.pk, "stop"])}"' in form
    assert "It cannot go on then, and nothing is compiled" in form


def test_an_operator_that_nothing_works_for_keeps_nobody_from_what_there_is(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(*[None] * (FUTILE - 1), operator=1)])
    assert 'id="compile"' not in page_of(ada, run)
    services.write(held, [told.batch(None, operator=1)])
    assert "Compile the best so far</button>" in page_of(ada, run)
    assert "Operators of which nothing ran stay plain loops." in page_of(ada, run)
    assert 'id="further"' not in page_of(ada, run)
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": "trials"})
    Job.objects.filter(run=run).delete()  # the compilation that is asked for at the end
    run.refresh_from_db()
    assert run.latency is None
    assert f"network={run.network_id}" in further(ada, run)
    compiled(site, run)
    page = page_of(ada, run)
    # Nobody can tell by a sum of operators whether something better was found.
    assert "Compile the best again</button>" in page
    assert "Something better was found" not in page


def test_who_waits_is_told_who_comes_first_and_not_by_name(site: Site, ada: Client, bob: Client) -> None:
    site.run(budget=Budget(seconds=390))
    TuningRun.objects.update(owner=site.bob)
    run = site.run()
    part = ada.get(reverse("standing", args=[run.pk]), headers=SCRIPT).content.decode()
    assert "1 run before this one, about 7 min" in part
    assert 'hx-trigger="standing from:body delay:500ms, every 10s, visibilitychange from:document"' in part
    assert part.count("hx-swap-oob") == 2
    assert "1 run before this one, about 7 min" in page_of(ada, run)
    assert bob.get(reverse("standing", args=[run.pk])).status_code == 404


def test_who_waits_for_a_machine_that_is_measured_is_told_so(site: Site, ada: Client) -> None:
    job = Job.objects.create(task="hardware", target=site.target)
    run = site.run()
    assert services.claim(job.pk)
    assert "a machine is being measured first</p>" in page_of(ada, run)
    assert "waiting, a machine is being measured</span>" in ada.get("/").content.decode()


def test_a_change_of_turns_is_no_failure_without_a_script_either(site: Site, ada: Client) -> None:
    run, held, _ = site.claimed()
    services.conclude(held, "turn")
    report = b"".join(ada.get(reverse("run-file", args=[run.pk, "report.html"]))).decode()
    assert '<div class="notice plain" data-part="trouble"><div role="status"' in page_of(ada, run)
    assert '<div class="notice plain"><strong>its turn is over' in report


def test_a_run_that_nobody_takes_says_what_to_do(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run, now = site.run(), clock.now()
    assert "No worker answers" not in page_of(ada, run)
    monkeypatch.setattr(clock, "now", lambda: now + PATIENCE + timedelta(seconds=1))
    page = page_of(ada, run)
    assert "No worker answers" in page
    assert "manage.py doctor" in page
    assert all(f"<code>manage.py worker {name}</code>" in page for name in WORKERS)


def test_with_what_a_run_is_made_is_said_as_soon_as_it_is_known(site: Site, ada: Client) -> None:
    run = site.run()
    assert re.search(r"Asked for \d+ \w+ \d{4}, [\d:]+ UTC; 2 threads, layout auto, seed 0", page_of(ada, run))
    held = services.claim(run.job_id)
    assert held is not None
    services.write(held, Told().start())
    assert "Limit: 100 configurations; with what earlier runs found.</p>" in page_of(ada, run)
    TuningRun.objects.update(known_from=[["made up", 3], ["too", 4]])
    part = ada.get(reverse("standing", args=[run.pk]), headers=SCRIPT).content.decode()
    assert "Limit: 100 configurations; looked at 2 earlier runs.</p>" in part
    TuningRun.objects.update(known_from=[])
    assert "; there was no earlier run.</p>" in page_of(ada, run)
    TuningRun.objects.update(reuse=False)
    assert "; from nothing.</p>" in page_of(ada, run)
    assert re.search(r"Asked for [^;]+ UTC, started [^;]+ UTC; 2 threads, layout NHWC, seed 0, tvm 0.27", part)


def test_without_a_script_the_page_names_its_figure_and_leads_to_the_report(site: Site, ada: Client) -> None:
    run, _ = ended(site)
    page = page_of(ada, run)
    assert "<output" not in page  # it would be read aloud with every figure
    (hint,) = re.findall(r"<noscript>.*?</noscript>", page, re.DOTALL)
    assert reverse("run-file", args=[run.pk, "report.html"]) in hint
    assert re.search(r'data-part="latency">10.0 ms</span>.*data-part="of">sum of operators<', page)
    compiled(site, run)
    assert re.search(r'data-part="latency">12.0 ms</span>.*data-part="of">end to end, verified<', page_of(ada, run))
