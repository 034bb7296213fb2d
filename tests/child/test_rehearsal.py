"""Which configurations are timed again in the network, and which of them are taken."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workers.child import rehearsal
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.rehearsal import RIVALS, Rehearsal, affordable, choice, rehearsed, rivals, variants
from workers.messages.events import Event

BEST = {0: (0, (1, 2), 1.0), 1: (1, (3,), 2.0), 2: (0, (4,), 3.0)}


def row(operator: int, sketch: int, choices: Sequence[int], seconds: float | None, round: int = 0) -> dict[str, Any]:
    return {
        "kind": "measurement", "operator": operator, "sketch": sketch, "choices": list(choices), "seconds": seconds,
        "round": round, "cause": "" if seconds else "crash",
    }  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [
        row(0, 0, (1, 2), 1.0),
        row(0, 0, (5, 2), 1.09),
        row(0, 1, (1, 2), 1.05),
        row(0, 0, (7, 7), 1.01),
        row(0, 0, (8, 8), 1.2),
        row(0, 0, (9, 9), None),
        row(1, 1, (3,), 2.0),
        row(1, 1, (4,), 2.1),
        row(1, 1, (4,), 2.5, round=1),
        row(1, 1, (5,), 2.05),
        row(1, 1, (5,), None, round=1),
        row(2, 0, (4,), 3.0),
        {"kind": "slot", "text": "a measurement"},
    ]
    path = tmp_path / "tuning_log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in rows))
    return path


def test_rivals_are_the_fastest_others_within_a_tenth(log: Path) -> None:
    """Operator 1's rival was measured again and is slow; operator 2 has none."""
    assert rivals(log, BEST, 2) == {0: [BEST[0], (0, (7, 7), 1.01), (1, (1, 2), 1.05)]}


def test_an_operator_without_a_best_has_no_rivals(log: Path) -> None:
    assert rivals(log, {1: BEST[1]}, 2) == {}


def test_a_rehearsal_takes_a_tenth_of_the_tuning_time_and_a_gigabyte_of_weights() -> None:
    assert affordable(tuned=120.0, build=7.0, turns=0.1, weights=10**7) <= 0
    assert affordable(tuned=300.0, build=7.0, turns=0.1, weights=10**7) == 1
    assert affordable(tuned=1200.0, build=7.0, turns=0.1, weights=10**7) == RIVALS
    assert affordable(tuned=1200.0, build=7.0, turns=0.1, weights=250 * 10**6) == 3
    assert affordable(tuned=1200.0, build=7.0, turns=0.1, weights=600 * 10**6) == 0


@pytest.mark.parametrize(("inference", "count"), [(0.01, RIVALS), (0.3, 2), (2.0, 0), (10.0, 0), (math.inf, 0)])
def test_a_slow_network_is_timed_no_longer_than_the_tenth(inference: float, count: int) -> None:
    turns = 40 * inference
    assert max(0, affordable(tuned=1200.0, build=7.0, turns=turns, weights=10**7)) == count
    assert count == 0 or (count + 1) * 14.0 + (count + 3) * turns <= 120.0


def test_a_network_is_built_for_each_row_of_rivals() -> None:
    ranked = {0: [BEST[0], (0, (7, 7), 1.01), (0, (8, 8), 1.02)], 2: [BEST[2], (0, (6,), 3.1)]}
    assert variants(BEST, ranked) == [
        {0: (0, (7, 7), 1.01), 1: BEST[1], 2: (0, (6,), 3.1)},
        {0: (0, (8, 8), 1.02), 1: BEST[1], 2: (0, (6,), 3.1)},
    ]
    assert variants(BEST, {}) == []


def heard(times: Sequence[float], noise: float, seed: int, drift: bool = True) -> list[list[dict[int, float]]]:
    """By variant and round the seconds of operator 0; from round to round the machine's speed changes by half."""
    random = np.random.default_rng(seed)
    speed = np.where(np.arange(8) % 2, 1.5, 1.0) if drift else np.ones(8)
    return [[{0: t * s * random.normal(1, noise)} for s in speed] for t in times]


RANKED = {0: [BEST[0], (0, (7, 7), 1.01), (1, (1, 2), 1.05)]}


def test_what_is_faster_in_the_network_is_chosen_however_the_machine_changes() -> None:
    for seed in range(50):
        assert choice(RANKED, heard((1.0, 0.8, 0.9), 0.02, seed)) == {0: RANKED[0][1]}


def test_noise_chooses_nothing() -> None:
    assert all(not choice(RANKED, heard((1.0, 1.0, 1.0), 0.01, seed)) for seed in range(50))


@pytest.mark.mutation
def test_without_a_threshold_noise_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "GAIN", 0.0)
    assert any(choice(RANKED, heard((1.0, 1.0, 1.0), 0.01, seed)) for seed in range(50))


def test_an_operator_that_was_not_heard_keeps_its_best() -> None:
    assert choice({1: [BEST[1], (1, (4,), 2.1)]}, heard((1.0, 0.5), 0.0, 0)) == {}


@pytest.mark.tvm
def test_a_rival_that_does_not_compile_costs_the_rehearsal_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Alone it ran; in the network its weights are packed for the first time."""
    built: list[Any] = []

    class Network:
        def compiled(self, best: Any) -> Any:
            built.append(best)
            if len(built) > 1:
                raise RuntimeError("Traceback\nCheck failed: no such packing")
            return "the best"

    events: list[Event] = []
    light = SimpleNamespace(parameter_bytes=1)
    pulse = Pulse(events.append, RunClock(0.0))
    monkeypatch.setattr(rehearsal, "rivals", lambda log, best, count: RANKED)
    try:
        found = rehearsed(Network(), BEST, tmp_path / "log", 3600.0, 1e-3, light, [], pulse)  # type: ignore[arg-type]
    finally:
        pulse.close()
    assert found == (BEST, "the best", None)
    *_, said = [
        event["text"] for event in events if event["kind"] == "log"
    ]  # behind "still starting" on a busy machine
    assert "Check failed: no such packing" in said
    assert len(built) == 2


def test_a_sentence_for_the_user() -> None:
    assert "3 of 9" in Rehearsal(9, 3, 2e-3, 1.9e-3).sentence
    assert "1.900 ms" in Rehearsal(9, 3, 2e-3, 1.9e-3).sentence
    assert "9 operators" in Rehearsal(9, 0).sentence
