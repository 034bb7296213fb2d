"""Sums over other axes than the last: which are taken a vector of channels at a time, and what they come to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import Compiled, compiled, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm


def squeezed(channels: int, kind: str = "ReduceMean", axes: tuple[int, ...] = (2, 3), side: int = 14) -> ModelProto:
    """A convolution to so many channels, what they are over some axes, and an activation of that."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(kind, ["c"], ["m"], axes=axes, keepdims=1),
        helper.make_node("Sigmoid", ["m"], ["y"]),
    ]
    weights = [constant("w", drawn(channels, 3, 1, 1))]
    return model_of(nodes, {"x": [1, 3, side, side]}, {"y": None}, weights)


def by_rule(one: Compiled) -> list[int]:
    """Places of the operators that the rule schedules."""
    from workers.tvm_backend.reductions import RULE

    return [place for place, workload in enumerate(one.workloads) if RULE in workload.mod.script()]


SIZES = [(16, 13, 2), (32, 30, 6), (24, 14, 6), (64, 1, 0)]


@pytest.mark.parametrize(
    ("kind", "channels", "side", "programs"),
    [
        *(("ReduceMean", *size) for size in SIZES),
        *(("ReduceMean", *size) for size in [(58, 14, 9), (116, 7, 6)]),  # padded to 64 and 128
        *((kind, *size) for kind in ("ReduceMax", "ReduceSumSquare") for size in [(58, 14, 6), (16, 13, 2)]),
    ],
)
def test_every_program_comes_to_what_the_reference_does(
    kind: str, channels: int, side: int, programs: int, tmp_path: Path
) -> None:
    one = compiled(squeezed(channels, kind, side=side), tmp_path)
    assert len(by_rule(one)) == (programs > 0), "a picture of one point has nothing to sum"
    x = drawn_input(one.shape)
    wanted, best = reference(tmp_path / "network.onnx", x), one.drawn(np.random.default_rng(0))
    np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-5)
    for place in by_rule(one):
        (sketch,) = one.workloads[place].sketches
        assert sketch.size == programs
        for choice in range(programs):
            best[place] = (0, (choice,), 1e-6)
            np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-5)


def test_channels_run_as_vectors_and_pieces_on_all_cores(tmp_path: Path) -> None:
    one = compiled(squeezed(32, side=30), tmp_path)
    (place,) = by_rule(one)
    programs = [one.workloads[place].schedule(0, (choice,)).mod.script() for choice in range(6)]
    assert len(set(programs)) == 6
    assert all("T.vectorized(T.int64(32))" in program or "T.vectorized(T.int64(16))" in program for program in programs)
    assert "T.parallel(T.int64(1))" not in programs[0].split('T.sblock("T_divide')[0].rsplit("for ", 2)[0], (
        "the first guess leaves no core idle"
    )


@pytest.mark.parametrize(
    "model",
    [squeezed(32, axes=(1,)), squeezed(32, axes=(1, 2, 3)), squeezed(4)],
    ids=["over the channels", "over all", "four channels"],
)
def test_other_sums_keep_the_rules_of_tvm(model: ModelProto, tmp_path: Path) -> None:
    assert by_rule(compiled(model, tmp_path)) == []
