"""What is permuted and permuted back is read where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference, target
from tests.tvm_backend.test_configurations import Compiled, compiled_right, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

BACK = [0, 3, 1, 2]


def permuted(*orders: list[int] | None) -> Any:
    """x permuted by each in turn, and its positive part."""
    target()
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3, 4, 5), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            found = x
            for order in orders:
                found = builder.emit(relax.op.permute_dims(found, order))
            found = builder.emit_output(builder.emit(relax.op.nn.relu(found)))
        builder.emit_func_output(found)
    return builder.get()


def left(mod: Any) -> list[list[int] | None]:
    """The permutations of it once they are composed."""
    from tvm import relax

    from workers.tvm_backend.mutation import PERMUTED
    from workers.tvm_backend.permutations import Compose

    orders: list[list[int] | None] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and getattr(expr.op, "name", "") == PERMUTED:
            axes = expr.attrs.axes
            orders.append(None if axes is None else [int(axis) for axis in axes])

    relax.analysis.post_order_visit(Compose()(mod)["main"], visit)
    return orders


@pytest.mark.parametrize(
    ("orders", "wanted"),
    [
        ([[0, 2, 3, 1], BACK], []),
        ([[0, 1, 2, 3]], []),
        ([None, None], []),
        ([None], [None]),
        ([None, BACK], [[3, 0, 2, 1]]),
        ([[0, 2, 3, 1], [0, 2, 3, 1]], [[0, 3, 1, 2]]),
        ([[0, 2, 3, 1], [0, 2, 3, 1], [0, 2, 3, 1]], []),
        ([[1, 0, 3, 2], [0, 1, 3, 2], [2, 3, 0, 1]], [[2, 3, 1, 0]]),
    ],
)
def test_those_that_follow_each_other_are_one(orders: list[list[int] | None], wanted: list[list[int]]) -> None:
    assert left(permuted(*orders)) == wanted
    numbers = np.arange(120).reshape(2, 3, 4, 5)
    as_asked = numbers
    for order in orders:
        as_asked = as_asked.transpose(order)
    np.testing.assert_array_equal(numbers.transpose(*wanted) if wanted else numbers, as_asked)


def unit() -> ModelProto:
    """Of a ShuffleNet V2: what two convolutions found is shuffled, and the second half of it goes through a third."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Conv", ["x", "w2"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Reshape", ["c", "grouped"], ["g"]),
        helper.make_node("Transpose", ["g"], ["t"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t", "whole"], ["s"]),
        helper.make_node("Split", ["s"], ["left", "right"], axis=1, num_outputs=2),
        helper.make_node("Conv", ["right", "w3"], ["r"]),
        helper.make_node("Concat", ["left", "r"], ["d"], axis=1),
        helper.make_node("Reshape", ["d", "grouped"], ["g2"]),
        helper.make_node("Transpose", ["g2"], ["t2"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t2", "whole"], ["s2"]),
        helper.make_node("Conv", ["s2", "w4"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["y"]),
    ]
    weights = [
        constant(f"w{place}", drawn(16, reads, 1, 1, seed=place)) for place, reads in ((1, 3), (2, 3), (3, 16), (4, 32))
    ]
    weights += [constant("grouped", np.asarray([1, 2, 16, 6, 6])), constant("whole", np.asarray([1, 32, 6, 6]))]
    return model_of(nodes, {"x": [1, 3, 6, 6]}, {"y": None}, weights, opset=18)


def test_a_shuffle_of_channels_costs_no_transposition(tmp_path: Path) -> None:
    from workers.tvm_backend.importer import calls

    path = tmp_path / "network.onnx"
    path.write_bytes(unit().SerializeToString())
    one = Compiled(path)
    assert one.imported.layout == "NHWC"
    alone = [name for name in calls(one.imported.mod) if name.rstrip("0123456789") == "transpose"]
    assert len(alone) == 2, "the input's, which comes as NCHW, once for both convolutions, and the output's"
    x = drawn_input(one.shape)
    found = one.run(one.drawn(np.random.default_rng(0)), x)
    np.testing.assert_allclose(found, reference(path, x), rtol=1e-4, atol=1e-5)


def residual(second: str = "Add", length: int = 9) -> ModelProto:
    """A signal of this length that is enlarged, and to which a convolution of it is added, times a number by channel."""
    nodes = [
        helper.make_node("ConvTranspose", ["x", "up"], ["u"], strides=[4]),
        helper.make_node("LeakyRelu", ["u"], ["l"], alpha=0.1),
        helper.make_node("Conv", ["l", "w1"], ["c"], pads=[1, 1]),
        helper.make_node(second, ["u", "c"], ["a"]),
        helper.make_node("Mul", ["a", "by_channel"], ["m"]),
        helper.make_node("Concat", ["u", "m"], ["j"], axis=1),
        helper.make_node("Conv", ["j", "w2"], ["d"], pads=[1, 1]),
        helper.make_node("Add", ["d", "half"], ["e"]),
        helper.make_node("Conv", ["e", "w1"], ["y"]),
    ]
    weights = [
        constant("up", drawn(6, 16, 4)),
        constant("w1", drawn(16, 16, 3, seed=1)),
        constant("w2", drawn(16, 32, 3, seed=2)),
        constant("by_channel", drawn(1, 16, 1, seed=3)),
        constant("half", np.float32(0.5)),
    ]
    return model_of(nodes, {"x": [1, 6, length]}, {"y": None}, weights, opset=17)


@pytest.mark.parametrize("second", ["Add", "Sub"])
def test_what_is_enlarged_keeps_its_channels_last(second: str, tmp_path: Path) -> None:
    from workers.tvm_backend.importer import calls

    path = tmp_path / "network.onnx"
    path.write_bytes(residual(second).SerializeToString())
    one = Compiled(path)
    assert sum(name.count("transpose") for name in calls(one.imported.mod)) == 2, "the input's and the output's"
    x = drawn_input(one.shape)
    for best in ({}, one.drawn(np.random.default_rng(0))):
        np.testing.assert_allclose(one.run(best, x), reference(path, x), rtol=1e-3, atol=1e-4)


def both(change: Callable[..., Any], channels_last: bool = True) -> Any:
    """What `change` makes of x, whose channels are put second, and of y, or of what is put so too; then they are put last."""
    target()
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 5, 4, 3), "float32"))
    y = relax.Var("y", relax.TensorType((2, 5, 4, 3) if channels_last else (2, 3, 5, 4), "float32"))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            one = builder.emit(relax.op.permute_dims(x, BACK))
            other = builder.emit(relax.op.permute_dims(y, BACK)) if channels_last else y
            found = builder.emit(change(relax.op, one, other))
            found = builder.emit_output(builder.emit(relax.op.permute_dims(found, [0, 2, 3, 1])))
        builder.emit_func_output(found)
    return builder.get()


def test_operators_by_number_alone_pass_permutations_on() -> None:
    """What never had its channels last would be permuted for them."""
    last = [0, 2, 3, 1]
    assert left(both(lambda op, one, other: op.power(one, other))) == []
    assert left(both(lambda op, one, other: op.concat([one, other], 2))) == []
    assert left(both(lambda op, one, other: op.add(one, other), channels_last=False)) == [BACK, last]
    assert left(both(lambda op, one, _: op.cumsum(one, 2))) == [BACK, last]


def test_what_has_fewer_axes_than_what_it_is_added_to_is_not_turned_with_it(tmp_path: Path) -> None:
    """Both were put second, each in its own rank, and their sum is put last."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=0),
        helper.make_node("Transpose", ["m"], ["a"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["x"], ["b"], perm=BACK),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
    ]
    compiled_right(model_of(nodes, {"x": [2, 4, 4, 4]}, {"y": None}, [], opset=17), tmp_path)


CROWDED: dict[str, Callable[..., Any]] = {
    "what was never last": lambda emit, op, a, y: emit(op.add(emit(op.nn.relu(a)), emit(op.multiply(a, y)))),
    "another operator": lambda emit, op, a, _: emit(op.add(emit(op.nn.relu(a)), emit(op.nn.softmax(a)))),
    "a part of many": lambda emit, op, a, y: emit(op.concat([emit(op.nn.relu(a)), emit(op.tanh(a)), y], 1)),
}


@pytest.mark.parametrize("case", CROWDED)
def test_nothing_is_turned_more_often_than_before(case: str) -> None:
    """Where something beside it keeps an operator from having its channels last, what it reads is left as it is."""
    target()
    from tvm import relax

    builder = relax.BlockBuilder()
    x, y = (relax.Var(n, relax.TensorType(s, "float32")) for n, s in (("x", (2, 5, 4, 3)), ("y", (2, 3, 5, 4))))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            second = builder.emit(relax.op.permute_dims(x, BACK))
            found = CROWDED[case](builder.emit, relax.op, second, y)
            found = builder.emit_output(builder.emit(relax.op.permute_dims(found, [0, 2, 3, 1])))
        builder.emit_func_output(found)
    assert left(builder.get()) == [BACK, [0, 2, 3, 1]]


@pytest.mark.mutation
@pytest.mark.parametrize("broken", [False, True])
def test_a_constant_that_is_not_permuted_computes_something_else(
    broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so many places that it could be one of places."""
    from workers.tvm_backend import permutations

    if broken:
        monkeypatch.setattr(permutations, "math", SimpleNamespace(prod=lambda shape: 1))
    path = tmp_path / "network.onnx"
    path.write_bytes(residual(length=4).SerializeToString())
    one = Compiled(path)
    x = drawn_input(one.shape)
    found, wanted = one.run(one.drawn(np.random.default_rng(0)), x), reference(path, x)
    assert np.allclose(found, wanted, rtol=1e-3, atol=1e-4) is not broken
