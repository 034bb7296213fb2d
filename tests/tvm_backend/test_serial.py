"""Parallel loops that do little are one core's, and compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm


def rooted(count: int, rows: int, vectors: bool = True) -> Any:
    """y = sqrt(x) + x of `rows` of so many numbers, rows in parallel."""
    target()
    import tvm
    from tvm.script import tirx as T

    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(x: T.Buffer(({rows * count},), 'float32'), y: T.Buffer(({rows * count},), 'float32')):",
        f"    for row in T.parallel({rows}):",
        f"        for lane in T.{'vectorized' if vectors else 'serial'}({count}):",
        "            with T.sblock('sum'):",
        f"                i = T.axis.spatial({rows * count}, row * {count} + lane)",
        "                T.reads(x[i])",
        "                T.writes(y[i])",
        "                y[i] = T.sqrt(x[i]) + x[i]",
    ]
    return tvm.script.from_source("\n".join(lines), {"T": T})


def parallel(function: Any) -> int:
    """How many loops of a program run in parallel."""
    from tvm import tirx
    from tvm.tirx import ForKind
    from tvm_ffi import structural_walk

    loops: list[Any] = []
    structural_walk(function.body, [(tirx.For, loops.append)])
    return sum(loop.kind == ForKind.PARALLEL for loop in loops)


def test_instructions_are_those_of_vectors_where_there_are_some() -> None:
    from workers.tvm_backend.serial import CALLED, STORED, instructions

    each = STORED + CALLED + 1
    assert instructions(rooted(64, 3).body, 16) == 3 * 4 * each
    assert instructions(rooted(40, 3).body, 16) == 3 * 3 * each
    assert instructions(rooted(64, 3, vectors=False).body, 16) == 3 * 64 * each


@pytest.mark.parametrize(
    ("count", "rows", "vectors", "left"), [(64, 2, True, 0), (64, 4096, True, 1), (512, 2, True, 0), (512, 2, False, 1)]
)
def test_little_is_done_by_one_core_and_the_same_comes_out(count: int, rows: int, vectors: bool, left: int) -> None:
    function = rooted(count, rows, vectors)
    import tvm

    from workers.tvm_backend.programs import compile_programs
    from workers.tvm_backend.serial import by_one

    assert parallel(function) == 1
    assert parallel(by_one(function, 16)) == left
    (program,) = compile_programs([tvm.s_tir.Schedule(tvm.IRModule({"main": function}))], tvm.target.Target(target()))
    values = np.random.default_rng(0).random(count * rows).astype(np.float32)
    x, y = tvm.runtime.tensor(values), tvm.runtime.tensor(np.zeros_like(values))
    program(x, y)
    np.testing.assert_allclose(y.numpy(), np.sqrt(values) + values, rtol=1e-6)
