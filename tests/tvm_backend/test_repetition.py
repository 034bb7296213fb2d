"""A sum that is computed anew for each of many numbers is no candidate."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.tvm_backend.test_configurations import Compiled, compiled
from tests.zoo import model_of

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def centred(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """x - mean(x) over all of it: one row, of which TVM's own rules make programs."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1, 2, 3], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["y"]),
    ]
    return compiled(model_of(nodes, {"x": [1, 16, 24, 24]}, {"y": None}, []), tmp_path_factory.mktemp("mean"))


def refused(one: Compiled) -> tuple[int, int]:
    """How many of its configurations, of how many."""
    from workers.tvm_backend.programs import Invalid

    (workload,) = one.workloads
    rng, count = np.random.default_rng(0), 0
    drawn = workload.sketches[0].random(rng, 60)
    for choices in drawn.tolist():
        try:
            workload.schedule(0, tuple(choices))
        except Invalid as error:
            count += "computed over" in str(error)
    return count, len(drawn)


def test_what_computes_a_mean_for_each_number_is_refused(centred: Compiled) -> None:
    count, drawn = refused(centred)
    assert 0 < count < drawn


@pytest.mark.mutation
def test_without_a_bound_they_would_be_timed(centred: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tvm_backend.programs.MOST", 1e9)
    with pytest.raises(AssertionError):
        test_what_computes_a_mean_for_each_number_is_refused(centred)


def test_what_is_computed_once_is_counted_once(centred: Compiled) -> None:
    """A number of a sum a step, and one for each that is written."""
    (workload,) = centred.workloads
    assert 2 * 16 * 24 * 24 <= workload.steps <= 2 * 16 * 24 * 24 + 2
