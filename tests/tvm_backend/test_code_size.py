"""The code of a program, before anything of it is lowered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm

LANES = 8


def product(unroll: int = 0) -> Any:
    """c[i, j] += a[i, k] * b[k, j] in 4 x 64 x 8, scheduled by the test."""
    target()
    from tvm import te
    from tvm.s_tir import Schedule

    a, b = te.placeholder((4, 8), name="a"), te.placeholder((8, 64), name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((4, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    schedule = Schedule(te.create_prim_func([a, b, c]))
    if unroll:
        schedule.annotate(schedule.get_loops(schedule.get_sblock("c"))[0], "pragma_auto_unroll_max_step", unroll)
    return schedule


def size(schedule: Any) -> float:
    from workers.tvm_backend.code_size import code_size

    return code_size(schedule.mod["main"], LANES)


def test_loops_are_one_store_and_its_first_value() -> None:
    assert size(product()) == 2


def test_a_vector_is_as_many_stores_as_registers() -> None:
    schedule = product()
    i, j, k = schedule.get_loops(schedule.get_sblock("c"))
    schedule.reorder(i, k, j)
    schedule.decompose_reduction(schedule.get_sblock("c"), k)
    schedule.vectorize(schedule.get_loops(schedule.get_sblock("c_init"))[-1])
    assert size(schedule) == 64 / LANES + 1


def test_unrolled_loops_multiply() -> None:
    schedule = product()
    i, _, k = schedule.get_loops(schedule.get_sblock("c"))
    schedule.unroll(i)
    schedule.unroll(k)
    assert size(schedule) == 2 * 4 * 8


def test_loops_unroll_by_themselves_up_to_a_number_of_statements() -> None:
    assert size(product(unroll=15)) == 2  # the innermost loop would be 16
    assert size(product(unroll=16)) == 2 * 8
    assert size(product(unroll=2 * 8 * 64)) == 2 * 8 * 64
    assert size(product(unroll=2 * 8 * 64 * 4)) == 2 * 8 * 64 * 4
