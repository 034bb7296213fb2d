from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from workers.benchmarks import curve as curves
from workers.benchmarks.chart import Line, lines
from workers.benchmarks.curve import Curve, settle

WORDS = ("seconds of tuning", "ms")


@pytest.fixture
def curve() -> Curve:
    return Curve.of([(1.0, None), (2.0, 5e-3), (3.0, 5e-3), (4.0, 4e-3), (9.0, 4e-3)])


def test_what_was_corrected_later_was_never_reached() -> None:
    told = [(1.0, 9.0), (2.0, 6.0), (3.0, 4.0), (4.0, 5.5), (5.0, 5.0), (6.0, 9.5), (7.0, 8.0)]
    for count, points in (
        (3, ((1.0, 9.0), (2.0, 6.0), (3.0, 4.0))),
        (4, ((1.0, 9.0), (2.0, 6.0), (3.0, 5.5))),
        (5, ((1.0, 9.0), (2.0, 6.0), (3.0, 5.5), (5.0, 5.0))),
        (7, ((1.0, 9.5), (7.0, 8.0))),
    ):
        assert Curve.of(told[:count]).points == points


def luck(told: list[tuple[float, float]]) -> bool:
    """Whether a figure that did not last makes a run look sooner at its end."""
    return Curve.of(told).time_to(told[-1][1]) != told[-1][0]


LUCKY = [(1.0, 9.0), (2.0, 4.0), (3.0, 7.0), (50.0, 5.0)]


def test_luck_that_did_not_last_wins_no_time() -> None:
    assert not luck(LUCKY)


@pytest.mark.mutation
def test_a_curve_that_keeps_its_best_figures_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def best_so_far(rows: list[list[float]], row: tuple[float, float]) -> None:
        if not rows or row[-1] < rows[-1][-1]:
            settle(rows, row)

    monkeypatch.setattr(curves, "settle", best_so_far)
    assert luck(LUCKY)


def test_a_curve_begins_when_complete_and_keeps_improvements_only(curve: Curve) -> None:
    assert curve.points == ((2.0, 5e-3), (4.0, 4e-3))
    assert (curve.complete, curve.final) == (2.0, 4e-3)


@pytest.mark.parametrize(("seconds", "latency"), [(1.0, None), (2.0, 5e-3), (3.9, 5e-3), (100.0, 4e-3)])
def test_the_latency_at_a_moment_is_the_best_so_far(curve: Curve, seconds: float, latency: float | None) -> None:
    assert curve.at(seconds) == latency


@pytest.mark.parametrize(("latency", "seconds"), [(5e-3, 2.0), (4.5e-3, 4.0), (3.9e-3, None)])
def test_the_time_to_a_latency_is_the_first_moment_at_or_below_it(
    curve: Curve, latency: float, seconds: float | None
) -> None:
    assert curve.time_to(latency) == seconds


def test_a_run_that_never_was_complete_has_neither(tmp_path: Path) -> None:
    empty = Curve.of([(1.0, None)])
    assert empty.final is empty.complete is empty.time_to(1.0) is None
    lines([Line("stock", empty.points, 5.0)], "nothing", WORDS, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_a_picture_has_one_line_a_run_one_colour_an_arm_and_names_safe_for_xml(curve: Curve, tmp_path: Path) -> None:
    runs = [Line("stock", curve.points, 20.0), Line("auto", curve.points, 20.0), Line("auto", [(2.0, 1e-3)], 30.0)]
    lines(runs, "a < b & c", WORDS, tmp_path / "speed.svg")
    root = ElementTree.parse(tmp_path / "speed.svg").getroot()
    drawn = root.findall("{*}polyline")
    assert len(drawn) == 3
    assert len({line.get("stroke") for line in drawn}) == 2
    places = [corner for line in drawn for corner in _corners(line)]
    assert all(0 < x < 900 and 0 < y < 480 for x, y in places)
    ends = [max(x for x, _ in _corners(line)) for line in drawn]
    assert ends[0] == ends[1] < ends[2]  # level to the end of its tuning
    assert len(root.findall("{*}circle")) == 3  # where it began


def _corners(line: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
