from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from workers.benchmarks.curve import Curve
from workers.benchmarks.picture import Line, draw


@pytest.fixture
def curve() -> Curve:
    return Curve.of([(1.0, None), (2.0, 5e-3), (3.0, 6e-3), (4.0, 4e-3), (9.0, 4e-3)])


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
    draw([Line("stock", empty, 5.0)], "nothing", tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_a_picture_has_one_line_a_run_one_colour_an_arm_and_names_safe_for_xml(curve: Curve, tmp_path: Path) -> None:
    lines = [Line("stock", curve, 20.0), Line("auto", curve, 20.0), Line("auto", Curve.of([(2.0, 1e-3)]), 30.0)]
    draw(lines, "a < b & c", tmp_path / "speed.svg")
    root = ElementTree.parse(tmp_path / "speed.svg").getroot()
    drawn = root.findall("{*}polyline")
    assert len(drawn) == 3
    assert len({line.get("stroke") for line in drawn}) == 2
    places = [tuple(map(float, point.split(","))) for line in drawn for point in line.get("points", "").split()]
    assert all(0 < x < 840 and 0 < y < 480 for x, y in places)
