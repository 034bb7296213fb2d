"""Parallel loops that do little are one core's, and compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm


def rooted(count: int, rows: int, vectors: bool = True, call: str = "sqrt") -> Any:
    """y = sqrt(x) + x, or another `call`, of `rows` of so many numbers, rows in parallel."""
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
        f"                y[i] = T.{call}(x[i]) + x[i]",
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


def test_what_is_told_of_the_loop_stays() -> None:
    """How far to unroll within: of a configuration's choices."""
    function = rooted(64, 2)
    import tvm
    from tvm import tirx
    from tvm_ffi import structural_walk

    from workers.tvm_backend.serial import by_one

    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    schedule.annotate(schedule.get_loops(schedule.get_sblock("sum"))[0], "pragma_auto_unroll_max_step", 64)
    loops: list[Any] = []
    structural_walk(by_one(schedule.mod["main"], 16).body, [(tirx.For, loops.append)])
    assert any("pragma_auto_unroll_max_step" in loop.annotations for loop in loops)


def test_the_c_librarys_functions_are_counted_for_each_number() -> None:
    from workers.tvm_backend.serial import BY_NUMBER, STORED, instructions

    function = rooted(64, 3, call="sin")
    assert instructions(function.body, 16) == 3 * 4 * (STORED + 1 + 16 * BY_NUMBER)


def test_loops_of_unknown_length_stay_parallel() -> None:
    target()
    from tvm import tirx
    from tvm.tirx import ForKind

    from workers.tvm_backend.serial import instructions

    inner = tirx.Evaluate(0)
    n = tirx.Var("n", "int64")
    for kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
        loop = tirx.For(tirx.Var("i", "int64"), 0, n, kind, inner)
        assert instructions(loop, 16) == float("inf")
