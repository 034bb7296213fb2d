from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from workers.benchmarks.chart import BOTTOM, COLOURS, HEIGHT, TOP, Line, Scale, bars, dots, lines
from workers.benchmarks.interval import Interval


@pytest.mark.parametrize(("seeds", "intervals"), [(4, 0), (5, 1)])
def test_a_bar_of_a_few_seeds_has_no_interval(tmp_path: Path, seeds: int, intervals: int) -> None:
    found = Interval.of([1.0 + seed for seed in range(seeds)])
    bars({"net": {"dynatune": found}}, "Times faster", "times", tmp_path / "bars.svg")
    root = ElementTree.parse(tmp_path / "bars.svg").getroot()
    lines = [line for line in root.iter() if line.tag.endswith("line") and line.get("stroke") == "black"]
    assert sum("stroke-dasharray" not in line.attrib for line in lines) == intervals
    titles = [title.text for title in root.iter() if title.tag.endswith("title")]
    assert titles == [str(found)]


@pytest.mark.parametrize("kind", ["bars", "lines", "dots"])
def test_more_names_than_colours_are_told_apart(tmp_path: Path, kind: str) -> None:
    """On the picture and in its legend."""
    names = [f"arm {number}" for number in range(2 * len(COLOURS))]
    if kind == "bars":
        bars({"net": {name: Interval.of([1.0, 2.0]) for name in names}}, "t", "w", tmp_path / "a.svg")
    elif kind == "dots":
        dots([Line(name, [(1.0, 2.0)]) for name in names], "t", ("x", "y"), tmp_path / "a.svg")
    else:
        lines([Line(name, [(1.0, 2.0), (2.0, 1.0)]) for name in names], "t", ("x", "y"), tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    looks: dict[str, list[tuple[str | None, ...]]] = {"drawn": [], "legend": []}
    for mark in root.iter():
        colour = next((c for c in (mark.get("fill"), mark.get("stroke")) if c in COLOURS), None)
        if colour is not None and (kind == "dots" or not mark.tag.endswith("circle")):
            x = float(mark.get("x") or mark.get("x1") or 0.0)
            where = "legend" if x > 650 else "drawn"
            looks[where].append((colour, mark.get("fill-opacity"), mark.get("stroke-dasharray")))
    for found in looks.values():
        assert len(found) == len(set(found)) == len(names)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [((1.0, 900.0), 9), ((2.36, 4.79), 3), ((0.86, 0.98), 3), ((9.1, 10.9), 3), ((5.0, 5.0), 3), ((1.0, 1.0), 3)],
)
def test_a_logarithmic_axis_has_figures_on_it_however_short_it_is(values: tuple[float, float], ticks: int) -> None:
    found = Scale.of(values, 0.0, 400.0, log=True).ticks()
    assert len(found) >= ticks
    assert found == sorted(set(found))
    assert len({f"{tick:g}" for tick in found}) == len(found) <= 15


@pytest.mark.parametrize("stepped", [True, False])
def test_a_line_with_bounds_has_a_band_within_the_picture(tmp_path: Path, stepped: bool) -> None:
    known = Line("known", [(1.0, 4.0), (2.0, 2.0)], bounds=[(3.0, 40.0), (0.1, 3.0)])
    lines([known, Line("alone", [(1.0, 4.0), (2.0, 2.0)])], "t", ("x", "y"), tmp_path / "a.svg", stepped=stepped)
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    (band,) = (mark for mark in root.iter() if mark.tag.endswith("polygon"))
    assert band.get("fill") == COLOURS[0]
    corners = [tuple(map(float, corner.split(","))) for corner in str(band.get("points")).split()]
    assert len(corners) == (6 if stepped else 4)
    ups = [y for _, y in corners]
    assert TOP < min(ups) < max(ups) < HEIGHT - BOTTOM
