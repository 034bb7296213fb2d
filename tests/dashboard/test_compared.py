"""Several runs of a network on one chart."""

from __future__ import annotations

import csv
import html
import io
import re
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Target
from apps.dashboard import compared, humans, run_curves
from apps.dashboard.compared import LINES, Picture, picture
from apps.dashboard.plot import BETWEEN
from apps.dashboard.views import networks
from apps.tuning import services
from apps.tuning.live import snapshot
from apps.tuning.models import Job, Operator, TuningRun
from tests.apps.rows import Site, Told
from workers.messages.spec import Budget


def ended(site: Site, latencies: list[float], reason: str = "trials", first: float = 0.0, **asked: Any) -> TuningRun:
    """A run with a slot for each latency, the first of them after so many seconds."""
    run = site.run(**asked)
    held = services.claim(run.job_id)
    assert held is not None
    told = Told(1)
    services.write(held, told.start())
    told.clock += first
    for latency in latencies:
        services.write(held, [told.batch(latency), told.slot() | {"latency": latency}])
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": reason})
    run.refresh_from_db()
    return run


def drawn() -> Picture:
    found = picture(TuningRun.objects.all())
    assert found is not None
    return found


def test_runs_that_differ_in_their_seed_are_one_line_with_a_band(site: Site) -> None:
    for seed, best in ((0, 0.3), (1, 0.1), (2, 0.2)):
        ended(site, [1.0, best], seed=seed)
    ended(site, [0.9, 0.5], method="random")
    lines = {line.title: line for line in drawn().lines}
    assert len(lines) == 2
    several, alone = sorted(lines.values(), key=lambda line: -len(line.runs))
    assert (several.latency, {run.seed for run in several.runs}) == (0.2, {0, 1, 2})
    assert (alone.latency, [run.seed for run in alone.runs]) == (0.5, [0])
    bands = {line.line.title: bool(line.band) for line in drawn().wide.lines}
    assert bands == {several.title: True, alone.title: False}


@pytest.mark.parametrize(
    "change",
    [
        {"budget": Budget(trials=50)},
        {"budget": Budget(trials=100, min_gain=0.01)},
        {"method": "random"},
        {"layout": "NCHW"},
        {"reuse": False},
        {"operators": "compute"},
    ],
)
def test_runs_that_were_asked_for_otherwise_are_lines_of_their_own(site: Site, change: dict[str, Any]) -> None:
    ended(site, [1.0, 0.5])
    ended(site, [1.0, 0.5], **change)
    assert len(drawn().lines) == 2


def test_a_line_of_some_operators_only_says_of_which(site: Site) -> None:
    ended(site, [1.0, 0.5])
    ended(site, [1.0, 0.5], operators="compute")
    titles = sorted(line.title for line in drawn().lines)
    assert titles == ["Recommended", "Recommended, convolutions and matrix products only"]


def test_a_line_that_is_too_long_for_its_label_still_says_of_which_operators_it_is(site: Site, ada: Client) -> None:
    ended(site, [1.0, 0.5])
    ended(site, [1.0, 0.5], operators="compute")
    ended(site, [1.0, 0.5], operators="compute", parts={"scheduler": "round_robin", "sampler": "diverse"})
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    assert sorted(re.findall(r"●</tspan> \d (.*?): 500 ms<", page)) == [
        "Recommended", "Recommended with sch…products only", "Recommended, convolu…products only",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change", [{"threads": 4}, {"tvm": {"kind": "llvm", "mcpu": "znver5"}}, {"name": "AMD EPYC 9655"}]
)
def test_runs_before_and_after_their_machine_changed_are_lines_of_their_own(site: Site, change: dict[str, Any]) -> None:
    ended(site, [1.0, 0.5])
    Target.objects.filter(pk=site.target.pk).update(**change)
    site.target.refresh_from_db()
    ended(site, [1.0, 0.5])
    assert len(drawn().lines) == 2


def test_runs_asked_for_in_another_order_are_one_line(site: Site) -> None:
    for tvm in ({"kind": "llvm", "num-cores": 2}, {"num-cores": 2, "kind": "llvm"}):
        Target.objects.filter(pk=site.target.pk).update(tvm=tvm)
        site.target.refresh_from_db()
        ended(site, [1.0, 0.5])
    assert len(drawn().lines) == 1


@pytest.mark.parametrize(("reason", "whole"), [("trials", True), ("stopped", False), ("", False)])
def test_a_line_ends_where_what_a_run_would_have_found_is_unknown(site: Site, reason: str, whole: bool) -> None:
    ended(site, [1.0, 0.5, 0.25, 0.125], seed=0, reason="trials")
    ended(site, [1.0, 0.8], seed=1, reason=reason)
    (line,) = drawn().wide.lines
    ends = [float(point.split(",")[0]) for point in line.points.split()]
    assert (max(ends) > drawn().wide.plot.right - 1) is whole
    assert line.end == pytest.approx((max(ends), line.label), abs=0.1), "from there a leader goes to its words"
    assert len(line.points.split()) > 1


def test_a_line_that_is_cut_says_what_its_runs_had_come_to_there(site: Site, ada: Client) -> None:
    """Not what one of them came to later, which nobody knows of the other."""
    ended(site, [1.0, 0.5, 0.25, 0.125], seed=0)
    address = reverse("compared", args=[site.network.pk])
    ends = "A line, and its figures, end where the first of its runs was stopped"
    assert ends not in ada.get(address).content.decode()
    short = ended(site, [1.0, 0.75], seed=1, reason="stopped")
    (line,) = drawn().lines
    assert (line.clock, line.latency) == (line.points[-1].clock, line.points[-1].latency) == (short.clock, 0.625)
    assert not line.again
    page = ada.get(address).content.decode()
    assert ends in page
    assert re.search(
        rf"sum of operators </span>625 ms</td>.*after </span>{humans.duration(short.clock)}</td></tr></tbody>", page
    )
    assert ": 625 ms<" in page


def test_a_run_that_was_stopped_before_the_others_had_a_latency_leaves_a_line(site: Site) -> None:
    ended(site, [1.0], seed=0, reason="stopped")
    ended(site, [1.0, 0.5], seed=1, reason="trials", first=10.0)
    (line,) = drawn().lines
    assert line.points


def test_a_line_falls_in_steps_and_lower_is_faster(site: Site) -> None:
    ended(site, [1.0, 0.5, 0.25])
    (line,) = drawn().wide.lines
    points = [tuple(map(float, point.split(","))) for point in line.points.split()]
    assert all(x >= before and (x == before or y == above) for (before, above), (x, y) in pairwise(points))
    assert points[0][1] < points[-1][1]


def test_labels_do_not_cover_each_other(site: Site) -> None:
    for number in range(LINES + 1):
        ended(site, [1.0, 0.5], budget=Budget(trials=50 + number))
    found = drawn()
    assert (len(found.lines), found.settings) == (LINES, LINES + 1)
    for chart in (found.wide, found.narrow):
        places = sorted(line.label for line in chart.lines)
        assert all(below - above >= BETWEEN - 1e-9 for above, below in pairwise(places))
        assert 0 < places[0] <= places[-1] < chart.plot.height


def test_a_line_is_what_the_page_of_its_run_draws(site: Site) -> None:
    """With the warm-up, with no slot at all, and to the end."""
    run, held, told = site.claimed(2)
    services.write(held, [told.batch(4.0), told.batch(3.0, operator=1)])
    warm = told.clock
    services.write(held, [told.batch(2.0), told.event("log", text="a line")])
    (line,) = drawn().lines
    assert [(point.clock, point.latency) for point in line.points] == [
        (warm, 10.0),
        (warm + 0.25, 8.0),
        (told.clock, 8.0),
    ]
    assert [list(point[:2]) for point in line.points] == snapshot(run)["curve"]


def test_of_a_long_run_the_first_latency_is_drawn_all_the_same(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_curves, "POINTS", 4)
    run, held, told = site.claimed(2)
    services.write(held, [told.batch(4.0) for _ in range(10)])
    services.write(held, [told.batch(3.0, operator=1)])
    warm = told.clock
    services.write(held, [told.batch(2.0 / n) for n in range(1, 20)])
    points = drawn().lines[0].points
    assert len(points) <= 5
    assert (points[0].clock, points[0].latency) == (warm, 10.0)
    assert points[-1].latency == TuningRun.objects.get(pk=run.pk).latency


def test_of_a_run_of_many_slots_some_stand_for_all_batches_in_them(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm-up and last turn are drawn as of any other."""
    monkeypatch.setattr(run_curves, "POINTS", 5)
    run, held, told = site.claimed(2)
    services.write(held, [told.batch(4.0), told.batch(3.0, operator=1)])
    clocks = [told.clock]
    for seconds in range(10, 1, -1):
        services.write(held, [told.batch(0.1 * seconds), told.slot() | {"latency": 0.1 * seconds + 6.0}])
        clocks.append(told.clock)
    services.write(held, [told.batch(0.15), told.batch(0.1)])
    points = drawn().lines[0].points
    ends = clocks[1::2]
    assert [point.clock for point in points] == [clocks[0], ends[0] - 0.25, *ends, told.clock - 0.25, told.clock]
    assert [point.latency for point in points] == pytest.approx([10.0, 7.0, 7.0, 6.8, 6.6, 6.4, 6.2, 6.15, 6.1])
    assert points[-1].latency == TuningRun.objects.get(pk=run.pk).latency


def test_what_was_measured_again_raises_no_line_and_is_marked(site: Site, ada: Client) -> None:
    _, held, told = site.claimed(1)
    again = [told.measurement(0, seconds, choices=[7], round=n) for n, seconds in enumerate((0.5, 0.75))]
    services.write(held, [told.batch() | {"measurements": [told.measurement(0, 1.0), again[0]]}])
    (line,) = drawn().wide.lines
    assert line.mark is None
    services.write(held, [told.batch() | {"measurements": again[1:]}])
    (line,) = drawn().wide.lines
    assert {point.latency for point in line.line.points} == {0.5}
    assert line.line.latency == 0.75
    height = float(line.points.split()[-1].split(",")[1])
    assert line.mark is not None
    assert line.mark[1] == line.label < height  # slower is higher
    assert line.end == line.mark
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    assert "measured again 750 ms</title>" in page
    assert "A circle is what bests came to that were measured again." in page


def test_runs_that_knew_more_at_the_start_are_a_line_of_their_own_that_says_so(site: Site) -> None:
    for known, alike in ((0, 0), (0, 0), (9, 0), (0, 3)):
        run = ended(site, [1.0, 0.5])
        Operator.objects.filter(run=run).update(known=known, alike=alike)
    ended(site, [1.0, 0.5], reuse=False)
    assert {line.title: len(line.runs) for line in drawn().lines} == {
        "Recommended, nothing known": 2, "Recommended, 1 known": 1, "Recommended, 1 alike": 1,
        "Recommended, from nothing": 1,
    }  # fmt: skip


def test_lines_of_one_method_say_what_else_differs(site: Site) -> None:
    for asked in (
        {},
        {"budget": Budget(seconds=60)},
        {"budget": Budget(seconds=60), "layout": "NCHW"},
        {"method": "random"},
    ):
        ended(site, [1.0, 0.5], **asked)
    assert sorted(line.title for line in drawn().lines) == [
        "Random search", "Recommended, 1 min, layout NCHW", "Recommended, 1 min, layout auto",
        "Recommended, 100 configurations, layout auto",
    ]  # fmt: skip


def test_runs_of_one_seed_are_told_apart_by_when_they_were_asked_for(site: Site, ada: Client) -> None:
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in (0, 0, 1)]
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    assert all(f"seed {run.seed}, {humans.moment(run.created)}</a>" in page for run in runs)
    assert "only in their seed" not in page


def test_the_points_are_a_table_and_can_be_taken_as_csv(site: Site, ada: Client, bob: Client) -> None:
    address = reverse("compared-table", args=[site.network.pk])
    assert ada.get(address).content.decode().count("\n") == 1
    ended(site, [1.0, 1.0, 0.5], seed=3)
    ended(site, [1.0, 1.0, 0.25], seed=4)
    answer = ada.get(address)
    assert answer["Content-Disposition"] == 'attachment; filename="squeezenet-runs.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    (line,) = drawn().lines
    assert [float(row["latency_s"]) for row in rows] == [point.latency for point in line.points]
    last = {name: rows[-1][name] for name in ("line", "limit", "seeds", "latency_s", "lowest_s", "highest_s")}
    assert last == {"line": "Recommended", "limit": "100 configurations", "seeds": "4 3", "latency_s": "0.375",
                    "lowest_s": "0.25", "highest_s": "0.5"}  # fmt: skip
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    table = page[page.index("Points as table") :].partition("</table>")[0]
    assert table.count("<tr>") - 1 == len(line.changes) < len(line.points)
    assert f'href="{address}"' in page
    assert bob.get(address).status_code == 404


def test_the_page_says_what_to_do_when_there_is_nothing_to_compare(site: Site, ada: Client) -> None:
    site.run()
    assert b"No run of this network has a latency yet" in ada.get(reverse("compared", args=[site.network.pk])).content


def test_the_page_links_every_run(site: Site, ada: Client) -> None:
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in (0, 1)]
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    assert all(reverse("run", args=[run.pk]) in page for run in runs)


@pytest.mark.parametrize(
    ("state", "every"), [("running", ["10"]), ("paused", ["60"]), ("failed", ["60"]), ("done", [])]
)
def test_runs_that_may_be_resumed_are_asked_for_again(site: Site, ada: Client, state: str, every: list[str]) -> None:
    run = ended(site, [1.0, 0.5])
    Job.objects.filter(pk=run.job_id).update(state=state)
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    assert re.findall(r'<div id="compared" hx-get="[^"]+" hx-trigger="every (\d+)s,', page) == every


def test_what_the_chart_leaves_out_is_said(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    address = reverse("compared", args=[site.network.pk])
    for number in range(3):
        ended(site, [1.0, 0.5], budget=Budget(trials=50 + number))
    assert "latest" not in ada.get(address).content.decode()
    monkeypatch.setattr(compared, "LINES", 2)
    assert "The latest 2 of 3 settings.</p>" in ada.get(address).content.decode()
    monkeypatch.setattr(networks, "COMPARED", 2)
    assert "Of the latest 2 of 3 runs.</p>" in ada.get(address).content.decode()


def test_a_network_says_how_many_runs_it_does_not_list(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = reverse("network", args=[site.network.pk])
    for _ in range(3):
        site.run()
    assert "the latest" not in ada.get(address).content.decode()
    monkeypatch.setattr(networks, "RUNS", 2)
    assert "the latest 2 of 3" in ada.get(address).content.decode()


def test_runs_are_chosen_for_the_chart_and_its_table(site: Site, ada: Client) -> None:
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in range(3)]
    kept, other = [str(runs[n].pk) for n in (2, 0)], str(runs[1].pk)
    address = reverse("compared", args=[site.network.pk])
    page = ada.get(address, {"run": kept}).content.decode()
    assert [reverse("run", args=[run.pk]) in page for run in runs] == [True, False, True]
    boxes = re.findall(r'name="run" value="([^"]+)"( checked)?> ([^:]+:\d\d UTC): 500 ms</label>', page)
    assert {key: bool(ticked) for key, ticked, _ in boxes} == {kept[0]: True, other: False, kept[1]: True}
    assert boxes[0][2].startswith("Recommended, 100 configurations, a machine, seed 2, ")
    (table,) = re.findall(rf'href="({reverse("compared-table", args=[site.network.pk])}[^"]*)"', page)
    rows = csv.DictReader(io.StringIO(ada.get(html.unescape(table)).content.decode()))
    assert {row["seeds"] for row in rows} == {"2 0"}
    assert "checked" not in ada.get(address).content.decode()


def test_what_is_chosen_and_is_no_run_of_the_network_is_said(site: Site, ada: Client) -> None:
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in range(2)]
    bobs = site.bobs(Budget(trials=100))
    address, said = reverse("compared", args=[site.network.pk]), "there is no such run of this network.</strong>"
    page = ada.get(address, {"run": ["<b>", str(bobs.pk), str(runs[0].pk)]}).content.decode()
    assert f"<strong>&lt;b&gt;, {bobs.pk}: {said}" in page
    assert [reverse("run", args=[run.pk]) in page for run in runs] == [True, False]
    page = ada.get(address, {"run": [str(bobs.pk)]}).content.decode()  # nothing is left of it: the latest are shown
    assert said in page
    assert [reverse("run", args=[run.pk]) in page for run in runs] == [True, True]
    assert said not in ada.get(address, {"run": [str(runs[0].pk)]}).content.decode()


def test_older_runs_are_chosen_beside_the_latest(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "COMPARED", 2)
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in range(5)]
    address = reverse("compared", args=[site.network.pk])
    page = ada.get(address, {"page": 2}).content.decode()
    assert [reverse("run", args=[run.pk]) in page for run in runs] == [False, True, True, False, False]
    assert "Of runs 3 to 4 of 5, the latest first.</p>" in page
    page = ada.get(address, {"run": [str(runs[0].pk)], "page": 2}).content.decode()
    assert re.findall(r'name="run" value="([^"]+)"( checked)?>', page) == [
        (str(runs[0].pk), " checked"), (str(runs[2].pk), ""), (str(runs[1].pk), ""),
    ]  # fmt: skip
    assert f'href="?run={runs[0].pk}&amp;page=3">Older</a>' in page
    assert "the latest first" not in page


def test_the_page_asks_again_while_a_run_on_it_goes_on(site: Site, ada: Client) -> None:
    address, asks = (
        reverse("compared", args=[site.network.pk]),
        f'hx-get="{reverse("compared", args=[site.network.pk])}',
    )
    over = ended(site, [1.0, 0.5])
    assert asks not in ada.get(address).content.decode()
    _, held, told = site.claimed()
    assert f'{asks}"' in ada.get(address).content.decode(), "its line comes with its first latency"
    assert asks not in ada.get(address, {"run": str(over.pk)}).content.decode()
    services.write(held, [told.batch()])
    services.conclude(held, "finished", last={"kind": "finished", "clock": told.clock, "reason": "trials"})
    assert asks not in ada.get(address).content.decode()


def test_beside_the_sum_stands_what_the_libraries_take_and_how_much_faster_they_are(site: Site, ada: Client) -> None:
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in range(3)]
    address = reverse("compared", args=[site.network.pk])
    assert "than ONNX Runtime" not in ada.get(address).content.decode()
    (line,) = drawn().lines

    def compared(clock: float, *baselines: float, later: float = 0.0) -> list[float | None]:
        for run, seconds, baseline in zip(runs, (0.75, 0.25), baselines, strict=False):
            whole = {"clock": clock, "seconds": seconds, "latency": 0.5, "spread": 0.0, "verified": True}
            again = [{**whole, "clock": clock + later, "seconds": 0.1}] if later else []
            told = [{"name": "ONNX Runtime", "seconds": baseline}] if baseline else []
            TuningRun.objects.filter(pk=run.pk).update(end_to_end=[whole, *again], baselines=told)
        (line,) = drawn().lines
        return [line.latency, line.whole, line.over_onnxruntime]

    assert compared(line.clock, 1.5, 1.0) == [0.5, 0.5, 3.0]
    assert '500 ms<span class="second">3.00 x faster than ONNX Runtime</span></td>' in ada.get(address).content.decode()
    assert compared(line.clock, 1.5, 0.0) == [0.5, 0.5, None], "the ratio would be of another latency"
    assert compared(line.clock + 1, 1.5, 1.0) == [0.5, None, None], "nobody had it where the line ends"
    assert compared(line.clock, 1.5, 1.0, later=1.0) == [0.5, 0.5, 3.0], "what came after that is none of it"
