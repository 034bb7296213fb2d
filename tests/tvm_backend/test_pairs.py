"""Convolutions and products of whole numbers, two at a time: the instruction, what is rewritten, and what comes out."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper

from tests import zoo
from tests.tvm_backend.local import reference, target
from tests.tvm_backend.test_configurations import Compiled

pytestmark = pytest.mark.tvm

LEVELS = 255
PRODUCT = re.compile("vpmaddwd|vpdpwssd")
STORE = re.compile(r"vmov\w+\s+%[yz]mm\d+, .*\(")


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> None:
    target()


def numbers(seed: int, *shape: int) -> NDArray[np.int16]:
    """The ends among them, without the least."""
    drawn = np.random.default_rng(seed).integers(-(2**15) + 1, 2**15, shape).astype(np.int16)
    drawn.flat[:2] = -(2**15) + 1, 2**15 - 1
    return drawn


def vector_program(lanes: int) -> Any:
    """`sums[lane]` of a pair that all lanes have, and of a pair of each."""
    from tvm import te
    from tvm.s_tir import Schedule

    from workers.tvm_backend.pairs.instruction import product_of_pairs

    data = te.placeholder((2,), "int16", "data")
    weights = te.placeholder((lanes,), "uint32", "weights")
    sums = te.compute((lanes,), lambda lane: product_of_pairs(data[0], data[1], weights[lane]), name="sums")
    schedule = Schedule(te.create_prim_func([data, weights, sums]))
    schedule.vectorize(*schedule.get_loops(schedule.get_sblock("sums")))
    return schedule.mod


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 8, 12, 16, 24, 29])
def test_the_instruction_adds_two_products_a_lane(lanes: int, told: bool) -> None:
    """Whatever widths it is made of, and number by number where nobody tells for what."""
    import tvm

    from workers.tvm_backend.pairs.sums import packed

    machine = tvm.target.Target(target())
    with machine if told else contextlib.nullcontext():
        built = tvm.tirx.build(vector_program(lanes), target=machine)["main"]
    data, weights = numbers(1, 2), numbers(2, 2, lanes)
    found = tvm.runtime.tensor(np.zeros(lanes, np.int32))
    built(*(tvm.runtime.tensor(one) for one in (data, packed(weights.astype(np.float32))[0])), found)
    assert found.numpy().tolist() == (data.astype(np.int64) @ weights.astype(np.int64)).tolist()


def chain(
    data: list[int], weights: NDArray[Any], levels: float = LEVELS, residual: bool = False, **attributes: Any
) -> ModelProto:
    """Round, clip to -3 .. levels - 3, convolve or multiply, add: as quantised networks come out of the clean-up."""
    product = helper.make_node("Conv" if weights.ndim == 4 else "MatMul", ["c", "w"], ["s"], **attributes)
    nodes = [
        helper.make_node("Round", ["x"], ["r"]),
        helper.make_node("Add", ["r", "three"], ["r3"]),
        helper.make_node("Relu", ["r3"], ["above"]),
        helper.make_node("Sub", ["levels", "above"], ["room"]),
        helper.make_node("Relu", ["room"], ["left"]),
        helper.make_node("Sub", ["greatest", "left"], ["c"]),
        product,
        helper.make_node("Add", ["s", "c" if residual else "three"], ["y"]),
    ]
    constants = {"three": 3.0, "levels": levels, "greatest": levels - 3.0}
    held = [zoo.constant(name, np.float32(value)) for name, value in constants.items()]
    return zoo.model_of(
        nodes,
        {"x": data},
        {"y": [f"n{axis}" for axis in range(len(data))]},
        [*held, zoo.constant("w", weights.astype(np.float32))],
    )


def whole(seed: int, *shape: int) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(np.float32)


CASES: dict[str, Callable[[], ModelProto]] = {
    "padded": lambda: chain([1, 16, 9, 11], whole(0, 24, 16, 3, 3), pads=[1, 1, 1, 1]),
    "strided, one side padded": lambda: chain([2, 6, 12, 10], whole(1, 20, 6, 5, 3), pads=[2, 0, 1, 1], strides=[2, 3]),
    "an odd number of channels": lambda: chain([1, 3, 14, 14], whole(2, 16, 3, 7, 7), pads=[3] * 4, strides=[2, 2]),
    "dilated": lambda: chain([1, 8, 12, 12], whole(3, 10, 8, 3, 3), dilations=[2, 3]),
    "of one place": lambda: chain([1, 32, 7, 7], whole(4, 33, 32, 1, 1)),
    "matrix": lambda: chain([5, 24], whole(5, 24, 40)),
    "matrices by one": lambda: chain([2, 3, 7], whole(6, 7, 12)),
}


def compiled(model: ModelProto, folder: Path) -> Compiled:
    path = folder / "network.onnx"
    path.write_bytes(zoo._bytes(model))
    return Compiled(path, onnx.load(str(path)))


def rewritten(one: Compiled) -> int:
    return sum("_pairs" in task.name for task in one.extracted)


def given(one: Compiled) -> NDArray[np.float32]:
    """Beyond both ends of what is clipped."""
    return (np.random.default_rng(7).standard_normal(one.shape) * LEVELS).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_networks_compute_exactly_the_same(case: str, tmp_path: Path) -> None:
    model = CASES[case]()
    one, random = compiled(model, tmp_path), np.random.default_rng(3)
    assert rewritten(one) == 1
    x = given(one)
    wanted = reference(model, x)
    for best in ({}, one.drawn(random), one.drawn(random), one.drawn(random)):
        assert np.array_equal(one.run(best, x), wanted)


FILTERED: dict[str, Callable[[], ModelProto]] = {
    "whole tiles": lambda: chain([1, 32, 12, 12], whole(0, 32, 32, 3, 3), pads=[1] * 4, residual=True),
    "tiles over the edge": lambda: chain([2, 64, 9, 11], whole(1, 32, 64, 3, 3), pads=[1, 0, 2, 1]),
    "the largest there are": lambda: chain([1, 32, 8, 8], np.full((32, 32, 3, 3), -127.0), levels=3.0, pads=[1] * 4),
}


@pytest.fixture
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small networks too."""
    from workers.tvm_backend.pairs import filtering

    monkeypatch.setattr(filtering, "chosen", lambda *_: filtering.F2)


@pytest.mark.parametrize("case", FILTERED)
@pytest.mark.usefixtures("_worth_it")
def test_filtered_convolutions_compute_exactly_the_same(case: str, tmp_path: Path) -> None:
    model = FILTERED[case]()
    one, random = compiled(model, tmp_path), np.random.default_rng(3)
    names = [task.name for task in one.extracted]
    assert sum("winograd" in name for name in names) == 2, names
    assert not any("conv2d" in name for name in names), names
    assert one.imported.notes[0].endswith("filtering: 1")
    x = given(one)
    wanted = reference(model, x)
    for best in ({}, one.drawn(random), one.drawn(random)):
        assert np.array_equal(one.run(best, x), wanted)


@pytest.mark.usefixtures("_worth_it")
def test_what_may_not_fit_when_it_is_filtered_is_not(tmp_path: Path) -> None:
    """The numbers alone would, and their plain sums do."""
    model = chain([1, 512, 6, 6], np.full((32, 512, 3, 3), 127.0), pads=[1] * 4)
    names = [task.name for task in compiled(model, tmp_path).extracted]
    assert any("conv2d_pairs" in name for name in names), names
    assert not any("winograd" in name for name in names), names


@pytest.mark.mutation
@pytest.mark.usefixtures("_worth_it")
def test_a_shift_left_out_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.pairs import filtering

    monkeypatch.setattr(filtering, "SHIFT", 1)
    model = FILTERED["whole tiles"]()
    one = compiled(model, tmp_path)
    x = given(one)
    assert not np.array_equal(one.run({}, x), reference(model, x))


@pytest.mark.mutation
@pytest.mark.parametrize("broken", ["swapped", "shifted"])
def test_pairs_put_together_wrongly_are_noticed(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.pairs import rewriting

    right = rewriting.packed
    wrong: dict[str, Callable[[Any], Any]] = {
        "swapped": lambda weights: (right(weights) >> 16) | (right(weights) << 16),
        "shifted": lambda weights: right(np.roll(weights, 1, axis=-2)),
    }
    monkeypatch.setattr(rewriting, "packed", wrong[broken])
    model = CASES["padded"]()
    one = compiled(model, tmp_path)
    x = given(one)
    assert not np.array_equal(one.run({}, x), reference(model, x))


@pytest.mark.parametrize("case", ["weights", "sums", "data", "groups", "many matrices"])
def test_what_may_not_fit_stays_in_float32(case: str, tmp_path: Path) -> None:
    fitting = whole(0, 24, 16, 3, 3)
    models = {
        "weights": lambda: chain([1, 16, 9, 9], fitting + 0.5),
        "sums": lambda: chain([1, 16, 9, 9], np.full_like(fitting, 2**15 - 1), levels=2**15 - 1),
        "data": lambda: chain([1, 16, 9, 9], fitting, levels=2**15 + 3.0),
        "groups": lambda: chain([1, 32, 9, 9], fitting, group=2),
        "many matrices": lambda: chain([3, 5, 24], whole(5, 3, 24, 40)),
    }
    model = models[case]()
    one = compiled(model, tmp_path)
    assert rewritten(one) == 0
    x = given(one)
    np.testing.assert_allclose(one.run({}, x), reference(model, x), rtol=1e-4, atol=1.0)


def test_what_others_read_too_is_kept_short(tmp_path: Path) -> None:
    """A sum of what a convolution reads and what it gives: no operator writes both forms, or casts and nothing else. The third
    turns the layout back."""
    model = chain([1, 16, 9, 9], whole(0, 16, 16, 1, 1), residual=True)
    one = compiled(model, tmp_path)
    assert rewritten(one) == 1
    assert len(one.extracted) == 3, [task.name for task in one.extracted]
    x = given(one)
    assert np.array_equal(one.run(one.drawn(np.random.default_rng(0)), x), reference(model, x))


def test_spans() -> None:
    from tvm import relax
    from tvm.relax import op

    from workers.tvm_backend.pairs.spans import whole_span

    x = relax.Var("x", relax.TensorType((2, 4), "float32"))
    bytes_ = relax.Var("b", relax.TensorType((2, 4), "uint8"))
    builder = relax.BlockBuilder()
    number = lambda value: relax.const(value, "float32")  # noqa: E731
    unbounded = (float("-inf"), float("inf"))
    wanted: list[tuple[Any, Any]] = [
        (x, None),
        (op.round(x), unbounded),
        (op.nn.relu(op.round(x)), (0.0, float("inf"))),
        (op.subtract(number(9.0), op.nn.relu(op.subtract(number(5.0), op.nn.relu(op.round(x))))), (4.0, 9.0)),
        (op.add(op.round(x), number(0.5)), None),
        (op.multiply(op.round(x), number(2.0)), None),
        (op.astype(bytes_, "float32"), (0.0, 255.0)),
        (op.subtract(op.astype(bytes_, "float32"), op.astype(bytes_, "float32")), (-255.0, 255.0)),
        (op.reshape(op.astype(bytes_, "float32"), (4, 2)), (0.0, 255.0)),
        (op.astype(op.astype(bytes_, "float32"), "int8"), (-128.0, 127.0)),
        (op.astype(op.astype(bytes_, "float32"), "int16"), (0.0, 255.0)),
        (op.astype(op.round(x), "int16"), (-32768.0, 32767.0)),
    ]

    def bound(expr: Any) -> Any:
        found = builder.lookup_binding(expr) if isinstance(expr, relax.Var) else None
        return expr if found is None else found

    with builder.function("main", [x, bytes_]):
        for expression, span in wanted:
            assert (
                whole_span(expression if isinstance(expression, relax.Var) else builder.emit(expression), bound) == span
            )
        builder.emit_func_output(x)


def stores_a_product(lanes: int, **config: Any) -> float:
    """Vectors written between the first and the last product of a convolution in its first configuration, over products."""
    import tvm
    from tvm import te

    from workers.engine.start import Machine, first_configurations
    from workers.tvm_backend.pairs.sums import Convolution
    from workers.tvm_backend.programs import Workload

    data, weights = te.placeholder((1, 56, 56, 64), "int16"), te.placeholder((3, 3, 32, 64), "uint32")
    sums = Convolution((1, 1), (1, 1), (1, 1, 1, 1)).sums(data, weights)
    mod = tvm.IRModule({"main": te.create_prim_func([data, weights, sums]).with_attr("layout_free_buffers", [1])})
    machine = tvm.target.Target(target())
    workload = Workload.generate(mod, machine)
    (start,) = first_configurations(workload.sketches, Machine(lanes=lanes), 1)
    assert workload.flops == pytest.approx(2.0 * 56 * 56 * 64 * 9 * 64, rel=0.05)
    with machine, tvm.transform.PassContext(config=config):
        built = tvm.tirx.build(workload.schedule(start.sketch, start.choices).mod, target=machine)
    code = "".join(part.inspect_source("asm") for part in _parts(built) if part.kind == "llvm").splitlines()
    first, *_, last = products = [line for line, text in enumerate(code) if PRODUCT.search(text)]
    return sum(STORE.search(text) is not None for text in code[first : last + 3]) / len(products)


def _parts(module: Any) -> list[Any]:
    inner = getattr(module, "mod", module)
    return [inner, *(part for child in inner.imports for part in _parts(child))]


def test_a_pair_is_read_at_once() -> None:
    """Accumulators stay in registers then. With TVM's common subexpressions pairs are no longer seen, and they do not."""
    import tvm

    from workers.tvm_backend.hardware import pair_widths, vector_lanes
    from workers.tvm_backend.programs import COMMON_LEFT

    machine = tvm.target.Target(target())
    if 8 not in pair_widths(machine):
        pytest.skip("no AVX2 here")
    lanes = vector_lanes(machine)
    assert stores_a_product(lanes, **COMMON_LEFT) < stores_a_product(lanes) / 2
