"""Expressions of constants come out as TVM computes them, without a program compiled for each of their shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests import zoo
from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm

SHAPE = (3, 5, 2, 7)
RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> None:
    target()


def expressions() -> dict[str, Callable[[Any, Any], Any]]:
    """Of a constant of SHAPE and the number 1e-5."""
    from tvm import relax
    from tvm.relax import op

    return {
        "turned": lambda data, small: op.permute_dims(data, [2, 3, 1, 0]),
        "turned round": lambda data, small: op.permute_dims(data),
        "expanded": lambda data, small: op.expand_dims(data, [0, 3]),
        "reshaped": lambda data, small: op.reshape(data, [1, -1, 7]),
        "added": lambda data, small: op.add(data, small),
        "added across": lambda data, small: op.add(data, op.reshape(data, [3, 1, 1, 5, 2, 7])),
        "chosen": lambda data, small: op.where(op.less(data, small), data, small),
        "taken": lambda data, small: op.take(data, relax.const(np.int64([[1, 0], [0, 2]])), axis=-1),
        "root": lambda data, small: op.sqrt(op.add(op.expand_dims(data, [0]), small)),
    }


def module(expression: Callable[[Any, Any], Any], data: np.ndarray[Any, Any]) -> Any:
    """x + expression of constants."""
    from tvm import relax

    builder = relax.BlockBuilder()
    constants = relax.const(data, str(data.dtype)), relax.const(1e-5, str(data.dtype))
    with builder.function("main"):
        with builder.dataflow():
            value = builder.emit(expression(*constants))
            x = relax.Var("x", value.ty)
            result = builder.emit_output(builder.emit(relax.op.add(x, value)))
        builder.emit_func_output(result, [x])
    return relax.transform.CanonicalizeBindings()(builder.get())


def constants_of(mod: Any) -> list[np.ndarray[Any, Any]]:
    import tvm
    from tvm import relax

    found: list[np.ndarray[Any, Any]] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.GenericConst) and isinstance(expr.value, tvm.runtime.Tensor):
            found.append(expr.value.numpy())

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return found


@contextmanager
def compiled() -> Iterator[list[Any]]:
    """The programs that TVM compiles meanwhile."""
    import tvm

    build, seen = tvm.get_global_func("tirx.build"), list[Any]()

    def watched(*arguments: Any) -> Any:
        seen.append(arguments[0])
        return build(*arguments)

    tvm.register_global_func("tirx.build", watched, override=True)
    try:
        yield seen
    finally:
        tvm.register_global_func("tirx.build", build, override=True)


@pytest.mark.parametrize("name", ["turned", "turned round", "expanded", "reshaped", "added", "added across", "root"])
def test_numpy_folds_to_the_bits_that_tvm_folds_to(name: str) -> None:
    from tvm import relax

    from workers.tvm_backend.constants import Fold

    mod = module(expressions()[name], np.abs(RANDOM.standard_normal(SHAPE)).astype(np.float32))
    with compiled() as programs:
        folded = relax.transform.FoldConstant()(Fold()(mod))
    assert not programs
    with compiled() as programs:
        wanted = relax.transform.FoldConstant()(mod)
    assert programs, "TVM has another way by now: is this pass still needed?"
    (ours,), (theirs,) = constants_of(folded), constants_of(wanted)
    assert (ours.shape, ours.dtype, ours.tobytes()) == (theirs.shape, theirs.dtype, theirs.tobytes())


def test_whole_numbers_keep_their_type() -> None:
    from workers.tvm_backend.constants import Fold

    data = RANDOM.integers(-(2**40), 2**40, SHAPE)
    (found,) = constants_of(Fold()(module(expressions()["turned"], data)))
    assert found.dtype == np.int64
    assert np.array_equal(found, data.transpose(2, 3, 1, 0))


def test_what_is_no_constant_is_left_alone() -> None:
    from tvm import relax
    from tvm_ffi import structural_equal

    from workers.tvm_backend.constants import Fold

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.sqrt(relax.op.add(x, relax.const(np.ones(SHAPE, np.float32)))))
        builder.emit_func_output(result)
    mod = builder.get()
    assert structural_equal(Fold()(mod), mod)


def normalised() -> onnx.ModelProto:
    """Normalisations before convolutions, which nothing folds into these, each with its own number of channels."""
    nodes, weights, name, channels = [], [], "x", 8
    for layer in range(3):
        parts = [f"{part}{layer}" for part in ("scale", "shift", "mean", "variance")]
        nodes += [
            helper.make_node("BatchNormalization", [name, *parts], [f"n{layer}"]),
            helper.make_node("Relu", [f"n{layer}"], [f"r{layer}"]),
            helper.make_node("Conv", [f"r{layer}", f"w{layer}", f"b{layer}"], [f"c{layer}"]),
        ]
        weights += [zoo.constant(part, RANDOM.uniform(0.5, 1.5, channels).astype(np.float32)) for part in parts]
        weights += [zoo._normal(RANDOM, f"w{layer}", channels + 4, channels, 1, 1)]
        weights += [zoo._normal(RANDOM, f"b{layer}", channels + 4)]
        name, channels = f"c{layer}", channels + 4
    return zoo.model_of(nodes, {"x": [1, 8, 6, 6]}, {name: [1, channels, 6, 6]}, weights)


def test_an_import_compiles_nothing_and_comes_to_the_same_operators_and_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tvm

    from workers.tvm_backend.constants import EVALUATED
    from workers.tvm_backend.importer import import_network
    from workers.tvm_backend.operators import extract
    from workers.tvm_backend.programs import key_of

    model, machine = normalised(), tvm.target.Target(target())

    def imported() -> tuple[int, list[tuple[str, int]], list[bytes]]:
        with compiled() as programs:
            mod = import_network(model, {"x": [1, 8, 6, 6]}, machine).mod
        operators = [(key_of(task.mod), task.weight) for task in extract(mod, machine)]
        return len(programs), operators, [value.tobytes() for value in constants_of(mod)]

    count, operators, weights = imported()
    assert count == 0
    for name in list(EVALUATED):
        monkeypatch.delitem(EVALUATED, name)
    with_tvm, same_operators, same_weights = imported()
    assert with_tvm >= 12, "three normalisations and convolutions of their own sizes"
    assert operators == same_operators
    assert weights == same_weights
