"""Recorded and synthetic measurements as backends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.simulated_run import OPERATORS, Simulation, simulated
from workers.engine.methods import method
from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.landscapes import LandscapeError, Recording, ReplayBackend, SimulatedClock, SyntheticLandscape
from workers.messages.spec import Budget
from workers.pipeline import outcome_of


def recorded(name: str = "dynatune", **fields: object) -> tuple[Simulation, Recording]:
    run = simulated(name, 150, **fields)
    return run, Recording(OPERATORS, tuple(outcome_of(m) for m in run.measurements))


def test_a_recording_survives_its_file(tmp_path: Path) -> None:
    _, recording = recorded()
    recording.write(tmp_path / "run.jsonl")
    assert Recording.read(tmp_path / "run.jsonl") == recording


@pytest.mark.parametrize("name", ["dynatune", "round_robin", "autotvm", "random"])
def test_replaying_method_and_seed_gives_the_recorded_run(name: str) -> None:
    run, recording = recorded(name)
    again = simulated(name, 150, landscape=lambda clock: ReplayBackend(recording, clock))
    assert again.lines == run.lines


def test_what_nobody_measured_is_told(tmp_path: Path) -> None:
    _, recording = recorded("random")
    with pytest.raises(LandscapeError, match="nobody measured"):
        Simulation(
            method("random"), Budget(trials=150), 99, landscape=lambda clock: ReplayBackend(recording, clock)
        ).run()


def test_the_order_of_asking_is_free_and_the_first_of_two_equal_programs_is_measured() -> None:
    places = OPERATORS[0].sketches[0].sizes
    asked = [Configuration(0, (0, 0, 0, 0, place)) for place in range(int(places[-1]))]
    candidates = [Candidate(0, configuration, "random") for configuration in asked]
    first = SyntheticLandscape(3, OPERATORS, SimulatedClock(), {}).measure(candidates, {})
    assert [o.cause for o in first] == ["", "", "", "duplicate", "duplicate"]
    replay = ReplayBackend(Recording(OPERATORS, tuple(first)), SimulatedClock())
    second = replay.measure(candidates[::-1], {})
    assert [o.cause for o in second] == ["", "duplicate", "duplicate", "", ""]
    assert second[0].seconds == first[2].seconds


@pytest.mark.parametrize(
    ("text", "line"), [("", "empty"), ('{"landscape": 9, "peak_flops": 1}\n', "line 1"), ("{}\n", "line 1"),
                       ('{"landscape": 1, "peak_flops": 1}\n{"outcome": [1, 2]}\n', "line 2"),
                       ('{"landscape": 1, "peak_flops": 1}\n{"outco', "line 2")]
)  # fmt: skip
def test_a_damaged_recording_names_its_line(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(LandscapeError, match=line):
        Recording.read(path)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_the_clock_refuses_time_that_is_none(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite time"):
        SimulatedClock().advance(seconds)


def test_equal_seeds_are_equal_landscapes_whatever_was_asked_before() -> None:
    one, two, other = (SyntheticLandscape(seed, OPERATORS, SimulatedClock(), {}) for seed in (3, 3, 4))
    rows = OPERATORS[2].sketches[0].random(np.random.default_rng(0), 20).tolist()
    candidates = [Candidate(2, Configuration(0, tuple(row)), "random") for row in rows]
    there = {o.configuration: o.seconds for o in one.measure(candidates, {}) if o.seconds}
    back = {o.configuration: o.seconds for o in two.measure(candidates[::-1], {}) if o.seconds}
    assert there == back
    assert there != {o.configuration: o.seconds for o in other.measure(candidates, {}) if o.seconds}
