"""Concatenations: what they come to, whatever is joined, and that they are copied by vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import code, reference, target
from tests.tvm_backend.test_configurations import compiled, compiled_right, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm


def inception(axis: int, channels: tuple[int, ...], twice: bool = False) -> ModelProto:
    """1 x 1 convolutions side by side, by channels or others, read by one more; `twice`: the whole beside the first."""
    nodes = [
        *(helper.make_node("Conv", ["x", f"w{place}"], [f"c{place}"]) for place in range(len(channels))),
        helper.make_node("Concat", [f"c{place}" for place in range(len(channels))], ["c"], axis=axis),
        *([helper.make_node("Concat", ["c0", "c", "c0"], ["cc"], axis=axis)] if twice else []),
        helper.make_node("Relu", ["cc" if twice else "c"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["y"]),
    ]
    whole = sum(channels) + 2 * twice * channels[0] if axis in (1, -3) else channels[0]
    weights = [
        *(constant(f"w{place}", drawn(many, 8, 1, 1, seed=place)) for place, many in enumerate(channels)),
        constant("w", drawn(16, whole, 1, 1)),
    ]
    return model_of(nodes, {"x": [1, 8, 6, 5]}, {"y": None}, weights)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("axis", "channels"),
    [(1, (16, 16)), (1, (64, 96, 32, 16)), (-3, (3, 5, 7)), (2, (8, 8, 8)), (3, (4, 4)), (0, (6, 6)), (1, (8,) * 9), (1, (8,))],
)  # fmt: skip
def test_parts_lie_side_by_side(axis: int, channels: tuple[int, ...], twice: bool, tmp_path: Path) -> None:
    model = inception(axis, channels, twice)
    one = compiled(model, tmp_path)
    x = drawn_input(one.shape)
    wanted = reference(model, x)
    for best in ({}, one.drawn(np.random.default_rng(0))):
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-5)


def dense(channels: tuple[int, ...]) -> ModelProto:
    """A layer of a DenseNet: what was found so far, normalised, with an activation."""
    nodes = [
        *(helper.make_node("Conv", ["x", f"w{place}"], [f"c{place}"]) for place in range(len(channels))),
        helper.make_node("Concat", [f"c{place}" for place in range(len(channels))], ["c"], axis=1),
        helper.make_node("Mul", ["c", "scale"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["y"], pads=[1] * 4),
    ]
    weights = [
        *(constant(f"w{place}", drawn(many, 8, 1, 1, seed=place)) for place, many in enumerate(channels)),
        constant("scale", drawn(1, sum(channels), 1, 1)),
        constant("w", drawn(16, sum(channels), 3, 3)),
    ]
    return model_of(nodes, {"x": [1, 8, 6, 5]}, {"y": None}, weights)


@pytest.mark.parametrize(
    ("channels", "width"), [((64, 32, 32, 32), 32), ((16, 48), 16), ((12, 24, 4), 4), ((6, 9), None)]
)
def test_what_is_done_with_the_whole_is_done_where_it_is_copied(
    channels: tuple[int, ...], width: int | None, tmp_path: Path
) -> None:
    """In one block, whose vectors divide the parts."""
    one = compiled_right(dense(channels), tmp_path)
    operators = zip(one.extracted, one.workloads, strict=True)
    (copied,) = (workload.mod for operator, workload in operators if "concatenate" in operator.name)
    assert innermost(copied) == ([width] if width else [sum(channels)] * 3)


def slices(channels: tuple[int, ...], start: int) -> ModelProto:
    """Some channels of what is concatenated."""
    model = dense(channels)
    graph = model.graph
    scale = next(node for node in graph.node if node.op_type == "Mul")
    kept = sum(channels) - start
    scale.input[0] = "part"
    graph.node.insert(len(channels) + 1, helper.make_node("Slice", ["c", "start", "end", "axis"], ["part"]))
    for tensor in list(graph.initializer):
        if tensor.name in ("scale", "w"):
            graph.initializer.remove(tensor)
    graph.initializer.extend([
        constant("start", np.int64([start])), constant("end", np.int64([sum(channels)])), constant("axis", np.int64([1])),
        constant("scale", drawn(1, kept, 1, 1)), constant("w", drawn(16, kept, 3, 3)),
    ])  # fmt: skip
    return model


@pytest.mark.parametrize(("channels", "start", "width"), [((64, 64), 4, 4), ((64, 64), 32, 32), ((64, 64), 3, None)])
def test_where_the_parts_end_is_seen_through_a_slice(
    channels: tuple[int, ...], start: int, width: int | None, tmp_path: Path
) -> None:
    model = slices(channels, start)
    one = compiled(model, tmp_path)
    operators = zip(one.extracted, one.workloads, strict=True)
    found = [innermost(workload.mod) for operator, workload in operators if "concatenate" in operator.name]
    if width:
        assert found == [[width]]
    x = drawn_input(one.shape)
    for best in ({}, one.drawn(np.random.default_rng(0))):
        np.testing.assert_allclose(one.run(best, x), reference(model, x), rtol=1e-4, atol=1e-4)


def test_numbers_of_tensors_in_turn_are_no_ends_and_others_are() -> None:
    from tvm import te, tirx

    from workers.tvm_backend.blocks import blocks
    from workers.tvm_backend.concatenation import _asked, interleaved

    def asked(*outputs: Any) -> tuple[list[int], list[int]]:
        (block,) = blocks(te.create_prim_func([*parts, *outputs]))
        return _asked(block)

    parts = [te.placeholder((1, 4, 4, 12), "float32", f"part{place}") for place in range(3)]
    assert asked(interleaved(parts, 2, 30)) == ([], [3])
    repeated = te.compute((4, 64), lambda i, j: tirx.if_then_else((j + 4) % 32 < 12, parts[0][0, i, 0, j % 12], 0.0))
    assert asked(repeated) == ([32, 12], [])


def innermost(mod: Any) -> list[int]:
    """Lengths of the last loops around the blocks of a program."""
    from tvm.s_tir import Schedule

    schedule = Schedule(mod)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    return [int(schedule.get(schedule.get_loops(block)[-1]).extent) for block in blocks]


def written(sums: Any, channels: tuple[int, ...], dtype: str) -> str:
    """A copy in vectors of 16, as LLVM is given it."""
    import tvm
    from tvm import te
    from tvm.s_tir import Schedule

    machine = tvm.target.Target({**target(), "opt-level": 0})
    parts = [te.placeholder((1, 5, 5, many), dtype, f"part{place}") for place, many in enumerate(channels)]
    schedule = Schedule(te.create_prim_func([*parts, sums(parts, 3)]))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    _, lanes = schedule.split(schedule.fuse(*schedule.get_loops(block)), [None, 16])
    schedule.vectorize(lanes)
    with machine:
        return code(tvm.tirx.build(schedule.mod, target=machine), "ll")


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("channels", [(64, 64), (64, 128, 32, 32), (256, *(32,) * 23), (16, 48)])
@pytest.mark.parametrize("stock", [False, pytest.param(True, marks=pytest.mark.mutation)])
def test_a_vector_is_of_one_part(stock: bool, channels: tuple[int, ...], dtype: str) -> None:
    """As TVM has it, it is not."""
    from tvm import topi

    from workers.tvm_backend.concatenation import joined

    copied = written(topi.concatenate if stock else joined, channels, dtype)
    assert (f"store <16 x {'float' if dtype == 'float32' else 'i8'}>" in copied) is not stock
