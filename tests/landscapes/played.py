"""What gates are played on: of each kind a synthetic landscape and the smallest that is shipped; and cells of them.

A large one takes half a minute of a core an arm and seed; `benchmark methods --claims` plays them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

import workers.landscapes
from tests.landscapes.recorded import costs, curve_recording, space_recording
from workers.benchmarks.methods.arms import arm_named
from workers.benchmarks.methods.replayed import CURVE, SPACE, Source, run_cell
from workers.engine.methods import method
from workers.landscapes import Costs, CurveRecording, SpaceRecording

SHIPPED = Path(workers.landscapes.__file__).parent / "recorded"
GATED = {CURVE: "resnet18", SPACE: "squeezenet"}
Cell = dict[str, Any]
T = TypeVar("T")


class Play(Protocol):
    """Plays one cell of a landscape: an arm, a seed and so many trials."""

    def __call__(self, source: Source, arm: str, seed: int, trials: int) -> Cell: ...


def anew(source: Source, arm: str, seed: int, trials: int) -> Cell:
    """What a mutation is asked for."""
    return run_cell(source, arm_named(arm), seed, trials)


class Once:
    """A cell, played at most once for all tests: of one seed it is the same every time."""

    def __init__(self) -> None:
        self._played: dict[tuple[Path, str, int, int], Cell] = {}

    def __call__(self, source: Source, arm: str, seed: int, trials: int) -> Cell:
        key = source.path, arm, seed, trials
        if key not in self._played:
            self._played[key] = anew(source, arm, seed, trials)
        return self._played[key]


def landscapes(kind: str) -> list[Any]:
    """Of that kind, as parameters of a fixture: None is the synthetic one. Of those that are shipped one has to do."""
    found = sorted(SHIPPED.glob(f"**/{GATED[kind]}-*.{kind}.npz"))
    assert found, f"no recording of {GATED[kind]} is shipped: the gates would be played on the synthetic one alone"
    return [pytest.param(None, id="synthetic"), *(pytest.param(path, id=path.stem) for path in found)]


def curve_source(path: Path | None, folder: Path) -> Source:
    """One of `landscapes`; `folder` is for recording the synthetic one."""
    if path is None:
        recording = curve_recording(folder / "parts", 3, 192, by=method("auto"))
        return Source(Path("synthetic.curve.npz"), CURVE, recording, costs())
    return Source(path, CURVE, CurveRecording.read(path), Costs.read(path.with_name("costs.json")))


def space_source(path: Path | None, folder: Path) -> Source:
    """As `curve_source`."""
    if path is None:
        path = folder / "synthetic.space.npz"
        space_recording(folder / "parts", 2, 2000, by=method("auto")).write(path)
        costs().write(path.with_name("costs.json"))
    return Source(path, SPACE, SpaceRecording.read(path), Costs.read(path.with_name("costs.json")))


def either(source: Source, synthetic: T, recorded: T) -> T:
    """What holds for the synthetic landscape, or for a recorded one."""
    return synthetic if source.name == "synthetic" else recorded
