"""A network whose fastest configuration is wrong gets one that is right, and is shipped."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import reference, target
from tests.tvm_backend.test_configurations import drawn_input
from tests.tvm_backend.test_soundness import normalisation
from workers.child.mending import mended

pytestmark = pytest.mark.tvm

Configurations = dict[int, Any]


class Faulty:
    """A normalisation whose programs TVM schedules wrongly now and then, unnoticed; its variance's fastest is such a one."""

    def __init__(self, folder: Path) -> None:
        from workers.tvm_backend.plain import Plain

        self.path, self.compiled = normalisation(folder)
        rng = np.random.default_rng(3)
        self.index = [workload.sums_of_sums for workload in self.compiled.workloads].index(True)
        workload, drawn = self.compiled.workloads[self.index], [self.compiled.drawn(rng) for _ in range(12)]
        plain = Plain(workload)
        right = {found[self.index][:2]: plain.computes(*found[self.index][:2]) for found in drawn}
        self.wrong, self.right = (
            next(one for one, is_right in right.items() if is_right is told) for told in (False, True)
        )
        self.best: Configurations = {**drawn[0], self.index: (*self.wrong, 1e-6)}
        self.log = folder / "tuning_log.jsonl"
        rows = [
            {
                "kind": "measurement",
                "operator": self.index,
                "sketch": sketch,
                "choices": list(choices),
                "round": 0,
                "cause": "",
                "seconds": seconds,
            }
            for (sketch, choices), seconds in ((self.wrong, 1e-6), (self.right, 2e-6))
        ]
        self.log.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def error(self, configurations: Configurations) -> float:
        x = drawn_input(self.compiled.shape)
        return float(np.abs(self.compiled.run(configurations, x) - reference(self.path, x)).max())


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faulty:
    target()  # loads TVM as it is meant to be
    from workers.tvm_backend import programs

    monkeypatch.setattr(programs, "repeats_a_sum", lambda program: False)
    monkeypatch.setattr(programs, "MOST", math.inf)
    return Faulty(tmp_path)


def test_a_wrong_configuration_gives_way_to_the_fastest_that_is_right(faulty: Faulty) -> None:
    assert faulty.error(faulty.best) > 0.1
    kept, wrong = mended(faulty.compiled.network, faulty.best, faulty.log, str, nullcontext)
    assert wrong == [faulty.compiled.extracted[faulty.index].name]
    assert kept[faulty.index] == (*faulty.right, 2e-6)
    assert faulty.error(kept) < 1e-4


def test_without_a_right_one_the_operator_stays_plain_loops(faulty: Faulty) -> None:
    faulty.log.write_text("")
    kept, _ = mended(faulty.compiled.network, faulty.best, faulty.log, str, nullcontext)
    assert faulty.index not in kept
    assert faulty.error(kept) < 1e-4


def test_others_measure_between_any_two_programs_that_are_compared(faulty: Faulty) -> None:
    """One turn for all of an operator with twenty wrong ones kept others from measuring for 28 s; each takes 4 at most."""
    named, turns = list[str](), list[int]()

    @contextmanager
    def turn() -> Iterator[None]:
        turns[-1] += 1
        yield

    def say(name: str) -> None:
        named.append(name)
        turns.append(0)

    mended(faulty.compiled.network, faulty.best, faulty.log, say, turn)
    assert named == [operator.name for operator in faulty.compiled.extracted]
    assert turns == [3 if index == faulty.index else 2 for index in faulty.best]


@pytest.mark.mutation
def test_whoever_finds_everything_right_mends_nothing(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.plain import Plain

    monkeypatch.setattr(Plain, "computes", lambda *_: True)
    kept, wrong = mended(faulty.compiled.network, faulty.best, faulty.log, str, nullcontext)
    assert not wrong
    assert faulty.error(kept) > 0.1
