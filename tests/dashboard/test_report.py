"""A run as one file: whole, offline, safe, and no larger for a long run."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network
from apps.dashboard import report
from apps.dashboard.report import page, tables
from apps.dashboard.report.page import style
from apps.dashboard.report.story import COLOURS, OTHERS, coloured, story
from apps.dashboard.templatetags.human import bar
from apps.tuning import live, services
from apps.tuning.live import snapshot
from apps.tuning.models import Artifact, Job, Operator, TuningRun
from tests.apps.rows import Site, Told
from tests.dashboard.large import large
from workers.messages.orders import REPEATED

HOSTILE = "</style></title><script>alert(1)</script>"
OUTSIDE = re.compile(
    r"\b(?:src|href|action|srcset|poster)\s*=|url\(|@import|<script|<link|<iframe|\sstyle=|\son\w+=", re.I
)


def file_of(run: TuningRun) -> str:
    return b"".join(report.pieces(TuningRun.objects.select_related("job", "network", "target").get(pk=run.pk))).decode()


def tuned(site: Site, operators: int = 2) -> tuple[TuningRun, services.Claim, Told]:
    """A run with a latency, slots, a baseline and a verified network."""
    run, held, told = site.claimed(operators)
    for index in range(operators):
        services.write(held, [told.batch(9e-3 + index, operator=index)])
    for index in range(operators):
        slot = told.slot(index) | {"before": 9e-3 + index, "after": 8e-3, "slot": 1 + index}
        services.write(held, [told.batch(8e-3, None, operator=index), slot])
    line = {"seconds": 0.048, "spread": 1e-3, "runs": 9, "threads": 2}
    services.write(held, [told.event("baseline", name="ONNX Runtime", **line)])
    whole = {"seconds": 0.024, "spread": 1e-4, "runs": 9, "latency": 0.024, "verified": True, "error": ""}
    services.write(held, [told.event("end_to_end", **whole)])
    run.refresh_from_db()
    return run, held, told


def ended(run: TuningRun, held: services.Claim, told: Told, reason: str = "trials") -> TuningRun:
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": reason})
    run.refresh_from_db()
    return run


def check_offline(text: str) -> None:
    assert not OUTSIDE.findall(text)
    assert "http" not in text.replace('http-equiv="Content-Security-Policy"', "")


def test_a_report_tells_the_run(site: Site) -> None:
    run, held, told = tuned(site)
    ended(run, held, told)
    text = file_of(run)
    for words in (
        "squeezenet", "a machine", "done: limit of configurations reached", "24.0 ms", "2.00 x faster", "than ONNX Runtime",
        "2 took too long", "#0 conv_0", "#1 conv_1", "measuring", "100 configurations", "tvm 0.27", "Seed", "Threads", "NHWC",
        "llvm", "x, 1 x 3 x 8 x 8", str(run.pk),
    ):  # fmt: skip
        assert words in text, words
    # 8 + 2 x 8 ms; the compiled network is as fast, ONNX Runtime half as fast.
    assert text.count("24.0 ms") >= 3


def test_what_many_operators_come_to_together_leaves_the_named_ones_their_bars() -> None:
    told = [{"index": n, "name": "x", "weight": 1, "seconds": 1.0, "gain": 0.0} for n in range(300)]
    shares = tables.shares(told, {})
    assert tables.scale(shares) == pytest.approx(1 / 300)
    *named, rest = (bar(one.time, tables.scale(shares)) for one in shares)
    assert {'width="100.00%"' in one and "cut" not in one for one in named} == {True}
    assert 'width="100.00%"' in rest
    assert 'class="cut"' in rest


def test_a_report_needs_nothing_but_itself(site: Site) -> None:
    run, held, told = tuned(site)
    text = file_of(ended(run, held, told))
    check_offline(text)
    assert "default-src 'none'" in text
    assert text.count('<svg class="chart"') == 1
    assert text.startswith("<!doctype html>")


@pytest.mark.mutation
@pytest.mark.parametrize(
    "word",
    ['<img src="x">', "<a href='/runs/'>", "@import 'x'", "url(x)", "<script>1</script>", "https://example.org"],
)
def test_a_report_that_needs_more_would_be_noticed(site: Site, word: str) -> None:
    run, _, _ = site.claimed()
    with pytest.raises(AssertionError):
        check_offline(file_of(run) + word)


def test_a_report_has_the_colours_of_the_site_light_and_dark_and_light_on_paper() -> None:
    assert "--page: var(--light, #fafaf8) var(--dark, #121417)" in style()
    # Without a script nobody asks for a theme: the reader's system says which one it is, and paper is light.
    assert re.search(r"@media screen and \(prefers-color-scheme: dark\) \{\s*:root:not\(\[data-theme\]\)", style())
    assert "@media print" in style()


def test_a_report_says_whether_the_outputs_were_checked(site: Site) -> None:
    run, _, _ = tuned(site)
    assert "computed what ONNX Runtime computes" in file_of(run)
    whole = run.end_to_end
    TuningRun.objects.filter(pk=run.pk).update(end_to_end=[])
    assert "was not compiled" in file_of(run)
    TuningRun.objects.filter(pk=run.pk).update(end_to_end=whole)
    job = services.request_artifact(run, site.ada)
    verdict = {"passed": True, "sentence": "y: at most 0.1 % of its largest value off", "reason": ""}
    made = Artifact.objects.create(run=run, job=job, sha256="b" * 64, size=3, state="ready", ratio=1.0, verdict=verdict)
    assert "at most 0.1 % of its largest value off" in file_of(run)
    assert "b" * 64 in file_of(run)
    Artifact.objects.filter(pk=made.pk).update(state="rejected", verdict={"passed": False, "reason": "y: 3 is not 2"})
    text = file_of(run)
    assert "y: 3 is not 2" in text
    assert "not offered" in text


def test_the_headline_is_the_library_while_nothing_better_was_found(site: Site) -> None:
    run, held, told = tuned(site)
    text = file_of(run)
    assert re.search(r'class="big">24.0 ms ± 0.1 <small class="soft">end to end, verified<', text)
    assert "sum of operators; end to end is 1.00 x that</dt><dd>24.0 ms" in text
    assert "than ONNX Runtime</dt><dd>2.00 x faster" in text
    services.write(held, [told.batch(2e-3, operator=1)])  # 8 + 2 x 2 ms
    text = file_of(run)
    assert re.search(r'class="big">12.0 ms <small class="soft">best latency, as the sum of operators<', text)
    assert re.search(r"library of [\d.]+ s, end to end</dt><dd>24.0 ms", text)
    assert "than ONNX Runtime, the library</dt><dd>2.00 x faster" in text
    assert "operators alone" not in text


def test_a_table_of_the_curve_that_is_cut_says_so(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held, told = site.claimed(1)
    for number in range(4):
        services.write(held, [told.batch(9e-3 - 1e-3 * number)])
    assert "<summary>Show the curve as table</summary>" in file_of(run)
    monkeypatch.setattr(page, "STEPS", 3)
    assert "<summary>Show the curve as table (3 of 4)</summary>" in file_of(run)


def test_what_a_first_slot_won_is_no_rate(site: Site) -> None:
    run, held, told = tuned(site)
    rates = [row.won for row in tables.rows(run, snapshot(run)["operators"], {})]
    assert rates == [None, None]
    services.write(held, [told.slot(0) | {"before": 8e-3, "after": 7e-3, "slot": 3}])
    rates = {row.operator["index"]: row.won for row in tables.rows(run, snapshot(run)["operators"], {})}
    assert rates == {0: pytest.approx(60 * 2e-3 / 0.5), 1: None}


def test_onnx_runtime_is_compared_with_first_and_a_line_taken_again_keeps_its_place(site: Site) -> None:
    run, held, told = site.claimed()
    line = {"spread": 0.0, "runs": 9, "threads": 2}
    for number, name in enumerate(("TVM untuned", "mine", "ONNX Runtime", "TVM untuned")):
        services.write(held, [told.event("baseline", name=name, seconds=1.0 + number, **line)])
    run.refresh_from_db()
    ordered = [("ONNX Runtime", 3.0), ("TVM untuned", 4.0), ("mine", 2.0)]
    assert [(kept["name"], kept["seconds"]) for kept in run.baselines] == ordered
    # Of a run that is older than the order too.
    TuningRun.objects.filter(pk=run.pk).update(baselines=run.baselines[::-1])
    run.refresh_from_db()
    assert snapshot(run)["baselines"][0]["name"] == tables.compared(run)[0].name == "ONNX Runtime"


def test_a_network_that_computes_something_else_is_not_called_faster(site: Site) -> None:
    run, held, told = tuned(site)
    TuningRun.objects.filter(pk=run.pk).update(end_to_end=[])
    whole = {"seconds": 0.001, "spread": 1e-4, "runs": 9, "latency": 0.024, "verified": False, "error": "y differs"}
    services.write(held, [told.event("end_to_end", **whole)])
    text = file_of(run)
    assert "end to end, verified" not in text
    assert "best latency, as the sum of operators" in text
    assert "2.00 x" in text
    drawn = snapshot(run)
    found = story(drawn, coloured(drawn["operators"]))
    assert found is not None
    assert (found.wholes, [line.kind for line in found.lines]) == ([], ["dashed", "strong"])
    assert found.plot.low > 0.001


def test_a_baseline_far_over_all_else_leaves_the_curve_its_room(site: Site) -> None:
    run, _, _ = tuned(site)
    drawn = snapshot(run)
    highest = max(seconds for _, seconds in drawn["curve"])
    drawn["baselines"] = [
        {"name": "near", "seconds": 2 * highest, "spread": 0.0, "threads": 2},
        {"name": "TVM untuned", "seconds": 100 * highest, "spread": 0.0, "threads": 2},
    ]
    found = story(drawn, coloured(drawn["operators"]))
    assert found is not None
    kinds = {line.name: line.kind for line in found.lines}
    assert (kinds["near"], kinds["TVM untuned"]) == ("dashed", "far")
    assert 2 * highest < found.plot.high < 3 * highest
    assert next(line.y for line in found.lines if line.kind == "far") == found.plot.top


def test_names_and_words_of_a_child_cannot_break_out(site: Site) -> None:
    run, held, told = tuned(site)
    Network.objects.filter(pk=run.network_id).update(name=HOSTILE)
    Operator.objects.filter(run=run).update(name=HOSTILE)
    facts = run.started_facts | {"notes": [HOSTILE], "versions": {HOSTILE: HOSTILE}, "layout": HOSTILE}
    line = {"name": HOSTILE, "seconds": 0.1, "spread": 0.0, "threads": 2}
    TuningRun.objects.filter(pk=run.pk).update(
        started_facts=facts, baselines=[line], spent={HOSTILE: 1.0}, shapes={HOSTILE: [1]}, method=HOSTILE[:60]
    )
    services.write(held, [told.batch() | {"measurements": [told.measurement(0, None, cause="</style><b>")]}])
    TuningRun.objects.filter(pk=run.pk).update(spent={HOSTILE: 1.0})
    Job.objects.filter(pk=run.job_id).update(error=HOSTILE, next_step=HOSTILE)
    text = file_of(run)
    assert "<script" not in text
    assert text.count("</style>") == text.count("</title>") == 1
    assert text.count("&lt;script&gt;alert(1)") > 8


def test_a_run_that_has_not_begun_has_a_report(site: Site, ada: Client) -> None:
    run = site.run()
    text = file_of(run)
    assert "never listed" in text
    assert "Nothing was measured" in text
    assert "No slot was given" in text
    check_offline(text)


def test_a_run_of_failures_only_has_a_report(site: Site) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(None, None), told.batch(None, operator=1), told.slot(0)])
    text = file_of(ended(run, held, told))
    assert "not every operator has a configuration that ran" in text
    assert "3 took too long" in text
    assert '<svg class="chart"' not in text


def test_each_dear_operator_has_a_lane_and_the_others_share_one(site: Site) -> None:
    run, _, _ = tuned(site, operators=COLOURS + 3)
    drawn = snapshot(run)
    colours = coloured(drawn["operators"])
    found = story(drawn, colours)
    assert found is not None
    assert [lane.colour for lane in found.lanes] == [*range(COLOURS), OTHERS]
    assert found.lanes[-1].name == "3 others"
    assert [lane.slots.count("M") for lane in found.lanes] == [*[1] * COLOURS, 3]
    # The last operator is the dearest, by its weight and by its first latency.
    assert found.lanes[0].name == f"#{COLOURS + 2} conv_{COLOURS + 2}"
    assert all(found.plot.bottom < lane.y < found.plot.foot for lane in found.lanes)


def test_before_every_operator_was_measured_none_has_a_colour(site: Site) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(1e-3), told.slot(0)])
    assert coloured(snapshot(run)["operators"]) == {}


def test_of_operators_that_nothing_ran_of_the_others_have_their_colours_first(site: Site) -> None:
    run, held, told = site.claimed(3)
    services.write(held, [told.batch(0.001, operator=1), told.batch(0.002, operator=2)])
    services.write(held, [told.batch(None)])
    assert coloured(snapshot(run)["operators"]) == {}
    again = told.batch(*[None] * (REPEATED - 1))
    for measurement in again["measurements"]:
        measurement["cause"] = "duplicate"  # as what had failed
    services.write(held, [again])
    assert coloured(snapshot(run)["operators"]) == {2: 0, 1: 1, 0: 2}


def test_the_downloads_offer_the_report_to_its_owner_alone(site: Site, ada: Client, bob: Client) -> None:
    run, held, told = tuned(site)
    ended(run, held, told, "stopped")
    address = reverse("run-file", args=[run.pk, "report.html"])
    assert address in ada.get(reverse("run", args=[run.pk])).content.decode()
    answer = ada.get(address)
    assert answer["Content-Disposition"] == 'attachment; filename="squeezenet-report.html"'
    assert answer["Content-Type"].startswith("text/html")
    assert b"Recommended (auto); stopped." in b"".join(answer)
    assert bob.get(address).status_code == 404


def test_a_report_says_of_how_many_slots_it_draws_a_choice(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held, told = tuned(site)
    services.write(held, [told.slot(0) | {"slot": number} for number in range(3, 21)])
    assert "are drawn" not in file_of(run)
    monkeypatch.setattr(live, "SLOTS", 10)
    drawn = len(snapshot(run)["slots"])
    assert 5 < drawn <= 10
    assert f"which operator got each slot of time ({drawn} of 20 are drawn, all of the latest)." in file_of(run)


def test_a_report_of_100_000_measurements_is_small_and_made_in_little_memory(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    run = large(site)
    file_of(site.run())  # what is read once a process is not this run's
    tracemalloc.start()
    try:
        text = file_of(run)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    with capsys.disabled():
        print(f"\nreport of 100,000 measurements: {len(text) / 1e6:.2f} MB, {peak / 2**20:.0f} MiB at most")  # noqa: T201
    assert len(text) < 1_000_000
    assert peak < 40 * 2**20
    assert text.count("<tr") < 500
