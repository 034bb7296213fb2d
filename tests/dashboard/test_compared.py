"""Several runs of a network on one chart."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Target
from apps.dashboard import compared
from apps.dashboard.compared import LINES, Picture, picture
from apps.dashboard.plot import BETWEEN
from apps.dashboard.views import networks
from apps.tuning import services
from apps.tuning.models import TuningRun
from tests.apps.rows import Site, Told
from workers.messages import Budget


def ended(site: Site, latencies: list[float], reason: str = "trials", first: float = 0.0, **asked: Any) -> TuningRun:
    """A run with a slot for each latency, the first of them after so many seconds."""
    run = site.run(**asked)
    held = services.claim(run.job_id, "worker")
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
    assert several.band
    assert (alone.latency, [run.seed for run in alone.runs], alone.band) == (0.5, [0], "")


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
    assert sorted(re.findall(r"●</tspan> (.*?) 500 ms<", page)) == [
        "Recommended", "Recommended with sch…products only", "Recommended, convolu…products only",
    ]  # fmt: skip


@pytest.mark.parametrize("change", [{"threads": 4}, {"tvm": {"kind": "llvm", "mcpu": "znver5"}}])
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
    (line,) = drawn().lines
    ends = [float(point.split(",")[0]) for point in line.points.split()]
    assert (max(ends) > drawn().plot.right - 1) is whole
    assert len(line.points.split()) > 1


def test_a_run_that_was_stopped_before_the_others_had_a_latency_leaves_a_line(site: Site) -> None:
    ended(site, [1.0], seed=0, reason="stopped")
    ended(site, [1.0, 0.5], seed=1, reason="trials", first=10.0)
    (line,) = drawn().lines
    assert line.points


def test_a_line_falls_in_steps_and_lower_is_faster(site: Site) -> None:
    ended(site, [1.0, 0.5, 0.25])
    (line,) = drawn().lines
    points = [tuple(map(float, point.split(","))) for point in line.points.split()]
    assert all(x >= before and (x == before or y == above) for (before, above), (x, y) in pairwise(points))
    assert points[0][1] < points[-1][1]


def test_labels_do_not_cover_each_other(site: Site) -> None:
    for number in range(LINES + 1):
        ended(site, [1.0, 0.5], budget=Budget(trials=50 + number))
    found = drawn()
    lines = found.lines
    assert (len(lines), found.settings) == (LINES, LINES + 1)
    places = sorted(line.label for line in lines)
    assert all(below - above >= BETWEEN - 1e-9 for above, below in pairwise(places))
    assert 0 < places[0] <= places[-1] < found.plot.height


def test_the_page_says_what_to_do_when_there_is_nothing_to_compare(site: Site, ada: Client) -> None:
    site.run()
    assert b"No run of this network has a latency yet" in ada.get(reverse("compared", args=[site.network.pk])).content


def test_the_page_links_every_run(site: Site, ada: Client) -> None:
    runs = [ended(site, [1.0, 0.5], seed=seed) for seed in (0, 1)]
    page = ada.get(reverse("compared", args=[site.network.pk])).content.decode()
    assert all(reverse("run", args=[run.pk]) in page for run in runs)


def test_what_the_chart_leaves_out_is_said(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    address = reverse("compared", args=[site.network.pk])
    for number in range(3):
        ended(site, [1.0, 0.5], budget=Budget(trials=50 + number))
    assert "latest" not in ada.get(address).content.decode()
    monkeypatch.setattr(compared, "LINES", 2)
    assert "The latest 2 of 3 settings.</p>" in ada.get(address).content.decode()
    monkeypatch.setattr(networks, "COMPARED", 2)
    assert "range shaded. Of the latest 2 of 3 runs.</p>" in ada.get(address).content.decode()


def test_a_network_says_how_many_runs_it_does_not_list(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = reverse("network", args=[site.network.pk])
    for _ in range(3):
        site.run()
    assert "the latest" not in ada.get(address).content.decode()
    monkeypatch.setattr(networks, "RUNS", 2)
    assert "the latest 2 of 3" in ada.get(address).content.decode()
