"""The papers' pictures, of cells that are there."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from tests.benchmarks.methods.finished import FAST, SLOW
from workers.benchmarks.methods.figures import LARGEST, draw_all


def cells(seeds: int, operators: int = 1, kind: str = "live") -> list[dict[str, Any]]:
    """Of a network whose last operator is the largest."""
    found = []
    for arm, one in (("sequential", SLOW), ("dynatune", FAST)):
        rows = [{**one["operators"][0], "name": f"conv_{i}", "weight": 1.0 + i} for i in range(operators)]
        for seed in range(seeds):
            key = {**one["key"], "layout": kind, "arm": arm, "seed": seed}
            found.append({**one, "key": key, "name": "net", "operators": rows})
    return found


def test_medians_have_their_interval_once_there_are_seeds_enough(tmp_path: Path) -> None:
    for seeds, bands in ((4, 0), (5, 2)):
        draw_all(cells(seeds), tmp_path / str(seeds))
        root = ElementTree.parse(tmp_path / str(seeds) / "latency-live-net.svg").getroot()
        assert sum(mark.tag.endswith("polygon") for mark in root.iter()) == bands


def test_the_largest_operators_of_a_live_run_have_their_pictures(tmp_path: Path) -> None:
    """Beside the fastest that any run found: FAST's 4.9 s, where SLOW ends with 5."""
    operators = LARGEST + 2
    drawn = draw_all(cells(2, operators), tmp_path)
    pictures = {name for name in drawn if name.startswith("measurements-net-")}
    assert pictures == {f"measurements-net-{index}.svg" for index in range(2, operators)}
    root = ElementTree.parse(tmp_path / "measurements-net-2.svg").getroot()
    heights = [
        min(float(corner.split(",")[1]) for corner in str(mark.get("points")).split())
        for mark in root.iter()
        if mark.tag.endswith("polyline")
    ]
    slow, fast = heights
    assert fast < slow, "higher up"
