"""Features of programs in place of knobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import zoo
from tests.tvm_backend.test_configurations import Compiled
from tests.tvm_backend.test_evolutionary import answered, largest
from workers.engine.errors import IllegalMethod
from workers.engine.methods import method
from workers.engine.space import Configuration

pytestmark = pytest.mark.tvm

SEEING = {"explorer": "evolutionary", "explorer.population": "8", "explorer.generations": "2", "search.first": "4"}


@pytest.fixture(scope="module")
def compiled(zoo_cache: Path) -> Compiled:
    return Compiled(zoo.tiny(zoo_cache))


@pytest.fixture(scope="module")
def operator(compiled: Compiled) -> Any:
    from workers.engine.machine import Machine
    from workers.tvm_backend.operators import operators

    return largest(operators(compiled.extracted, compiled.workloads, 1e11, 1e10, Machine(cores=2)))


def lowered(compiled: Compiled, operator: Any) -> Any:
    from workers.tvm_backend.lowered import LoweredSketch

    sketch = operator.sketches[0]
    return LoweredSketch(sketch.knobs, None, sketch.structures, compiled.workloads[operator.index], 0)


def test_programs_that_differ_have_other_features_and_equal_ones_the_same(compiled: Compiled, operator: Any) -> None:
    sketch = lowered(compiled, operator)
    rows = sketch.random(np.random.default_rng(0), 6)
    found = sketch.features(np.concatenate([rows, rows]))
    assert found.shape == (12, sketch.width)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert np.array_equal(found[:6], found[6:])
    assert len(np.unique(found[:6], axis=0)) > 3
    assert np.array_equal(found[:6], lowered(compiled, operator).features(rows))
    assert sketch.features(rows[:0]).shape == (0, sketch.width)


def test_what_is_forgotten_was_looked_up_first(
    compiled: Compiled, operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sketch, few = lowered(compiled, operator), lowered(compiled, operator)
    rows = np.unique(sketch.random(np.random.default_rng(0), 8), axis=0)
    assert len(rows) > 4
    whole = sketch.features(rows)
    monkeypatch.setattr("workers.tvm_backend.lowered.KEPT", 3)
    assert np.array_equal(few.features(rows), whole)
    assert list(few.known) == [tuple(row) for row in rows[-3:].tolist()]
    assert np.array_equal(few.features(rows[::-1]), whole[::-1])  # those that are known make room for the others
    assert len(few.known) == 3


def test_a_search_learns_from_them(compiled: Compiled, operator: Any) -> None:
    from workers.tvm_backend.lowered import Lowering

    chosen = Lowering.over(method("round_robin", {**SEEING, "search.features": "lowered"}), compiled.workloads)
    proposer = chosen.make_proposer(operator, 0)
    for _ in range(2):
        plan = proposer.propose(8)
        assert all(operator.holds(Configuration(c.configuration.sketch, c.configuration.choices)) for c in plan)
        proposer.observe([answered(candidate, n) for n, candidate in enumerate(plan)])
    assert proposer.propose(8)
    assert proposer.counters["fits"] > 0
    sketch: Any = proposer.operator.sketches[0]
    assert len(sketch.known) >= 16


def test_knobs_are_the_default_and_leave_a_method_as_it_is(compiled: Compiled) -> None:
    from workers.tvm_backend.lowered import Lowering

    chosen = method("auto")
    assert Lowering.over(chosen, compiled.workloads) is chosen
    with pytest.raises(IllegalMethod, match="'seen' must be one of knobs, lowered"):
        method("auto", {"search.features": "seen"})
