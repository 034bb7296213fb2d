"""Landscapes recorded from a synthetic one, in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.pipeline.simulated_run import quick
from workers.engine.methods import Method
from workers.landscapes import (
    Costs,
    CurveRecording,
    SimulatedClock,
    SpaceRecording,
    SyntheticLandscape,
    synthetic_operators,
)  # fmt: skip
from workers.landscapes.calibration import every_part
from workers.landscapes.costs import UNITS, key_of
from workers.landscapes.recorder import Watch, curves_of, record_curves, record_spaces, spaces_of
from workers.landscapes.synthetic import PEAK_FLOPS

OPERATORS = synthetic_operators(1, 6)
QUICK = quick("auto")
"""Walks ten times as long make it ten seconds: for those who ask what a search is worth."""
HEADER = {
    "network": "synthetic",
    "method": "auto",
    "peak_flops": PEAK_FLOPS,
    "threads": 1,
    "hardware": {"name": "none"},
}


def watch(wanted: Callable[[], bool] = lambda: True) -> Watch:
    return Watch(lambda text: None, wanted, time.monotonic)


def curves(
    folder: Path, seeds: int = 2, trials: int = 96, wanted: Callable[[], bool] = lambda: True, by: Method = QUICK
) -> bool:
    return record_curves(_synthetic, by, seeds, trials, folder, watch(wanted))


def curve_recording(folder: Path, seeds: int = 2, trials: int = 96, by: Method = QUICK) -> CurveRecording:
    assert curves(folder, seeds, trials, by=by)
    return curves_of(folder, seeds, HEADER)


def spaces(
    folder: Path, count: int = 2, size: int = 300, wanted: Callable[[], bool] = lambda: True, by: Method = QUICK
) -> bool:
    return record_spaces(_synthetic, by, count, size, folder, watch(wanted)) is not None


def space_recording(folder: Path, count: int = 2, size: int = 300, by: Method = QUICK) -> SpaceRecording:
    assert spaces(folder, count, size, by=by)
    return spaces_of(folder, OPERATORS, count, size, HEADER)


def costs() -> Costs:
    """A thousandth of a second for everything."""
    found = {key_of(role, m): dict.fromkeys(units, 1e-5) for m in every_part() for role, units in UNITS.items()}
    return Costs(found, "none")


def _synthetic() -> SyntheticLandscape:
    return SyntheticLandscape(3, OPERATORS, SimulatedClock())
