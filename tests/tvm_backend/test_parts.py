"""Vectors of lengths that are no power of two become several that are, and compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm

ROWS = 3


def added(length: int) -> Any:
    """y = x + x * place of so many numbers at a time, which begin behind others."""
    target()
    import tvm
    from tvm.script import tirx as T

    whole = ROWS * length
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(x: T.Buffer(({whole},), 'float32'), y: T.Buffer(({whole},), 'float32')):",
        f"    for row in T.serial({ROWS}):",
        f"        for lane in T.vectorized({length}):",
        "            with T.sblock('sum'):",
        f"                i = T.axis.spatial({whole}, row * {length} + lane)",
        "                T.reads(x[i])",
        "                T.writes(y[i])",
        "                y[i] = x[i] + x[i] * T.Cast('float32', i)",
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})


def vectors(function: Any) -> list[int]:
    """How long the vectors of a program are, in their order."""
    from tvm import tirx
    from tvm.tirx import ForKind
    from tvm_ffi import structural_walk

    loops: list[Any] = []
    structural_walk(function.body, [(tirx.For, loops.append)])
    return [int(loop.extent) for loop in loops if loop.kind == ForKind.VECTORIZED]


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_parts_are_powers_of_two_side_by_side(lanes: int) -> None:
    from workers.tvm_backend.parts import parts

    for length in range(1, 300):
        found = list(parts(length, lanes))
        assert [at for at, _ in found] == [sum(part for _, part in found[:place]) for place in range(len(found))]
        assert sum(part for _, part in found) == length
        assert all(part.bit_count() == 1 and part <= lanes for _, part in found)
        assert [part for _, part in found].count(lanes) == length // lanes


@pytest.mark.parametrize(
    ("length", "kept"),
    [(24, [16, 8]), (40, [16, 16, 8]), (48, [16, 16, 16]), (7, [4, 2, 1]), (3, [3]), (8, [8]), (64, [64])],
)
def test_what_is_no_power_of_two_is_taken_apart(length: int, kept: list[int]) -> None:
    from workers.tvm_backend.parts import in_parts

    assert vectors(in_parts(added(length)["main"], 16)) == kept


@pytest.mark.parametrize("length", [5, 24, 40, 48, 100])
def test_in_parts_it_computes_the_same(length: int) -> None:
    mod = added(length)
    import tvm

    from workers.tvm_backend.lowering import PIPELINE

    built = tvm.tirx.build(mod, target=tvm.target.Target(target()), pipeline=PIPELINE)["main"]
    x = np.random.default_rng(0).standard_normal(ROWS * length).astype(np.float32)
    y = tvm.runtime.tensor(np.full_like(x, np.nan))
    built(tvm.runtime.tensor(x), y)
    np.testing.assert_allclose(y.numpy(), x + x * np.arange(len(x), dtype=np.float32), rtol=1e-6)


@pytest.mark.mutation
def test_a_part_at_another_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import parts

    right = parts.parts
    monkeypatch.setattr(parts, "parts", lambda *given: ((0, part) for _, part in right(*given)))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test_in_parts_it_computes_the_same(24)


def test_vectors_of_a_graphics_card_stay() -> None:
    mod = added(24)
    import tvm

    from workers.tvm_backend.lowering import ForProcessors

    card = tvm.target.Target({"kind": "cuda", "arch": "sm_80"}, host=tvm.target.Target(target()))
    bound = tvm.tirx.transform.BindTarget(card)(mod)
    assert vectors(ForProcessors()(bound)["main"]) == [24]
    here = tvm.tirx.transform.BindTarget(tvm.target.Target(target()))(mod)
    assert 24 not in vectors(ForProcessors()(here)["main"])
