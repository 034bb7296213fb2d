"""Convolutions and products of whole numbers, two or four at a time: the instructions, what is rewritten, what comes out."""

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
from tests.networks.test_quantization import TRANSPOSED, layer
from tests.tvm_backend.local import code, reference, target
from tests.tvm_backend.test_configurations import Compiled
from tests.tvm_backend.test_groups import vectors
from workers.networks.clean import cleaned

pytestmark = pytest.mark.tvm

BYTES, LEVELS = 255, 511
PRODUCT = re.compile("vpmaddwd|vpdpwssd|vpdpbusd")
STORE = re.compile(r"vmov\w+\s+%[yz]mm\d+, .*\(")


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> None:
    target()


GROUPED = ["pairs", "fours"]


def grouping(name: str) -> Any:
    from workers.tvm_backend.integers.grouping import GROUPINGS

    return next(one for one in GROUPINGS if one.name == name)


def numbers(seed: int, ends: tuple[float, float], dtype: str, *shape: int) -> NDArray[Any]:
    """The ends among them."""
    low, high = (int(end) for end in ends)
    drawn = np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)
    drawn.flat[:2] = low, high
    return drawn


def vector_program(one: Any, lanes: int, groups: int) -> Any:
    """`sums[lane]` of a few groups that all lanes have, and of as many of each; of one group without a sum so far."""
    from tvm import te
    from tvm.s_tir import Schedule

    from workers.tvm_backend.integers.instruction import product, total

    data = te.placeholder((groups * one.count,), one.dtype, "data")
    weights = te.placeholder((groups, lanes), "uint32", "weights")
    g = te.reduce_axis((0, groups), "g")

    def products(lane: Any, group: Any) -> Any:
        return product(one, [data[group * one.count + place] for place in range(one.count)], weights[group, lane])

    summed = te.compute((lanes,), lambda lane: total(products(lane, g), axis=[g]), name="sums")
    single = te.compute((lanes,), lambda lane: products(lane, 0), name="sums")
    schedule = Schedule(te.create_prim_func([data, weights, summed if groups > 1 else single]))
    block = schedule.get_sblock("sums")
    lane, *others = schedule.get_loops(block)
    schedule.reorder(*others, lane)
    schedule.vectorize(lane)
    if others:
        schedule.decompose_reduction(block, others[0])
    return schedule.mod


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 8, 12, 16, 24, 29])
@pytest.mark.parametrize("name", GROUPED)
def test_the_instruction_adds_products_a_lane(name: str, lanes: int, groups: int, told: bool) -> None:
    """Whatever widths it is made of, and number by number where nobody tells for what."""
    import tvm

    one, machine = grouping(name), tvm.target.Target(target())
    with machine if told else contextlib.nullcontext():
        built = tvm.tirx.build(vector_program(one, lanes, groups), target=machine)["main"]
    data = numbers(1, one.data, one.dtype, groups * one.count)
    weights = numbers(2, one.weights, "int64", groups * one.count, lanes)
    found = tvm.runtime.tensor(np.zeros(lanes, np.int32))
    built(*(tvm.runtime.tensor(given) for given in (data, one.packed(weights.astype(np.float32)))), found)
    assert found.numpy().tolist() == (data.astype(np.int64) @ weights).astype(np.int32).tolist()


@pytest.mark.parametrize(
    ("processor", "fours", "instruction"),
    [
        ("znver4", (16, 8, 4), "vpdpbusd"),
        ("cascadelake", (16, 8, 4), "vpdpbusd"),
        ("alderlake", (8, 4), "vpdpbusd"),
        ("skylake-avx512", (), ""),
        ("znver3", (), ""),
    ],
)
def test_the_instruction_is_that_of_the_processor(processor: str, fours: tuple[int, ...], instruction: str) -> None:
    """Told and made for it, wherever the test runs; number by number where there is none."""
    import tvm

    from workers.tvm_backend.hardware import product_widths

    machine = tvm.target.Target({"kind": "llvm", "mcpu": processor, "num-cores": 2})
    assert product_widths(machine, 4) == fours
    assert product_widths(machine, 2)[-2:] == (8, 4)
    with machine:
        built = tvm.tirx.build(vector_program(grouping("fours"), 16, 3), target=machine)
    assert ("vpdpbusd" in code(built)) is bool(instruction)


def clipped(read: str, made: str, low: float, levels: float) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Round, and clip to -low .. levels - low, as quantised networks come out of the clean-up."""
    steps = [
        ("Round", [read]),
        ("Add", [f"{made}0", f"{made}_low"]),
        ("Relu", [f"{made}1"]),
        ("Sub", [f"{made}_levels", f"{made}2"]),
        ("Relu", [f"{made}3"]),
        ("Sub", [f"{made}_greatest", f"{made}4"]),
    ]
    names = [*(f"{made}{step}" for step in range(len(steps) - 1)), made]
    nodes = [helper.make_node(kind, inputs, [name]) for (kind, inputs), name in zip(steps, names, strict=True)]
    values = {"low": low, "levels": levels, "greatest": levels - low}
    return nodes, [zoo.constant(f"{made}_{name}", np.float32(value)) for name, value in values.items()]


def chain(
    data: list[int], weights: NDArray[Any], levels: float = LEVELS, residual: bool = False, **attributes: Any
) -> ModelProto:
    """Clip to -3 .. levels - 3, convolve or multiply, add."""
    of_places = weights.ndim == len(data) > 2 and weights.shape[1] * attributes.get("group", 1) == data[1]
    nodes, held = clipped("x", "c", 3.0, levels)
    nodes += [
        helper.make_node("Conv" if of_places else "MatMul", ["c", "w"], ["s"], **attributes),
        helper.make_node("Add", ["s", "c" if residual else "c_low"], ["y"]),
    ]
    return zoo.model_of(
        nodes,
        {"x": data},
        {"y": [f"n{axis}" for axis in range(len(data))]},
        [*held, zoo.constant("w", weights.astype(np.float32))],
    )


def whole(seed: int, *shape: int) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(np.float32)


CASES: dict[str, Callable[[float], ModelProto]] = {
    "padded": lambda levels: chain([1, 16, 9, 11], whole(0, 24, 16, 3, 3), levels, pads=[1, 1, 1, 1]),
    "strided, one side padded": lambda levels: chain(
        [2, 6, 12, 10], whole(1, 20, 6, 5, 3), levels, pads=[2, 0, 1, 1], strides=[2, 3]
    ),
    "an odd number of channels": lambda levels: chain(
        [1, 3, 14, 14], whole(2, 16, 3, 7, 7), levels, pads=[3] * 4, strides=[2, 2]
    ),
    "dilated": lambda levels: chain([1, 8, 12, 12], whole(3, 10, 8, 3, 3), levels, dilations=[2, 3]),
    "of one place": lambda levels: chain([1, 32, 7, 7], whole(4, 33, 32, 1, 1), levels),
    "of a signal": lambda levels: chain(
        [2, 6, 31], whole(8, 20, 6, 5), levels, pads=[3, 1], strides=[2], dilations=[3]
    ),
    "of a volume": lambda levels: chain(
        [1, 5, 4, 6, 7], whole(9, 16, 5, 2, 3, 3), levels, pads=[0, 1, 2, 1, 1, 0], strides=[1, 2, 1]
    ),
    "matrix": lambda levels: chain([5, 24], whole(5, 24, 40), levels),
    "matrices by one": lambda levels: chain([2, 3, 7], whole(6, 7, 12), levels),
}


def compiled(model: ModelProto, folder: Path) -> Compiled:
    path = folder / "network.onnx"
    path.write_bytes(zoo._bytes(model))
    return Compiled(path, onnx.load(str(path)))


def rewritten(one: Compiled, *names: str) -> int:
    """Operators of these groupings, of any unless given."""
    return sum(any(f"_{name}" in task.name for name in names or GROUPED) for task in one.extracted)


def has(name: str) -> bool:
    """Whether this machine has the instruction."""
    import tvm

    from workers.tvm_backend.hardware import product_widths

    return bool(product_widths(tvm.target.Target(target()), grouping(name).count))


def given(one: Compiled) -> NDArray[np.float32]:
    """Beyond both ends of what is clipped."""
    return (np.random.default_rng(7).standard_normal(one.shape) * LEVELS).astype(np.float32)


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("case", CASES)
def test_networks_compute_exactly_the_same(case: str, name: str, tmp_path: Path) -> None:
    """Four at a time where the machine has it: of numbers that need 9 bits, two."""
    model = CASES[case](BYTES if name == "fours" else LEVELS)
    one, random = compiled(model, tmp_path), np.random.default_rng(3)
    assert rewritten(one, name if has(name) else "pairs") == 1
    x = given(one)
    wanted = reference(model, x)
    for best in ({}, one.drawn(random), one.drawn(random)):
        assert np.array_equal(one.run(best, x), wanted)


def dynamic(kind: str, data: list[int], *weights: int, **attributes: Any) -> ModelProto:
    """Quantised with a scale and a zero that are found when it runs; sums, and what was summed beside them."""
    made = np.random.default_rng(4).integers(-128, 128, weights).astype(np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node(kind, ["q", "w", "zero"], ["s"], **attributes),
        helper.make_node("Cast", ["s"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    return zoo.model_of(nodes, {"x": data}, {"y": [f"n{n}" for n in range(len(data))]}, [zoo.constant("w", made)])


@pytest.mark.parametrize("mutated", [False, pytest.param(True, marks=pytest.mark.mutation)])
def test_what_is_known_to_be_zero_is_compiled_too(mutated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As around a picture, where rows are unrolled."""
    import tvm
    from tvm import te, tirx

    from workers.tvm_backend.integers import instruction

    pairs = grouping("pairs")
    if mutated:
        bits = lambda number, _: tirx.Cast("uint32", tirx.reinterpret("uint16", number))  # noqa: E731
        monkeypatch.setattr(instruction, "_widened", bits)

    def sums(place: Any) -> Any:
        word = instruction._together(pairs, [tirx.const(0, "int16")] * 2)
        return place + instruction._number(word, pairs.bits, 1, signed=True)

    function = te.create_prim_func([te.compute((4,), sums)])
    if mutated:
        with pytest.raises(tvm.error.InternalError, match="zero reinterpret"):
            tvm.compile(function, target())
    else:
        made = tvm.runtime.tensor(np.zeros(4, np.int32))
        tvm.compile(function, target())(made)
        assert made.numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("mutated", [False, pytest.param(True, marks=pytest.mark.mutation)])
@pytest.mark.parametrize("case", ["matrix", "an odd one", "convolution"])
def test_a_zero_that_is_found_when_the_network_runs(
    case: str, mutated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is taken off a product's sums; around a convolution's input it cannot lie."""
    from workers.tvm_backend.integers import rewriting

    if mutated:
        monkeypatch.setattr(rewriting.relax.op, "negative", rewriting.relax.op.abs)
    model = {
        "matrix": lambda: dynamic("MatMulInteger", [5, 24], 24, 40),
        "an odd one": lambda: dynamic("MatMulInteger", [5, 27], 27, 33),
        "convolution": lambda: dynamic("ConvInteger", [1, 16, 9, 9], 20, 16, 3, 3, pads=[1] * 4),
    }[case]()
    quickest = "fours" if has("fours") and case != "convolution" else "pairs"
    if mutated and quickest == "pairs":
        pytest.skip("nothing is taken off sums of 16 bits")
    path = tmp_path / "network.onnx"
    path.write_bytes(zoo._bytes(model))
    one = Compiled(path)
    assert rewritten(one, quickest) == 1
    x = np.random.default_rng(5).standard_normal(one.shape).astype(np.float32)
    wanted = reference(model, x)
    for best in ({}, one.drawn(np.random.default_rng(6))):
        same = np.array_equal(one.run(best, x), wanted)
        assert same is not mutated


def test_a_zero_of_signed_numbers_that_is_found_when_the_network_runs(tmp_path: Path) -> None:
    """They would have to be shifted too: they stay in 16 bits."""
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=onnx.TensorProto.INT8),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["zero"], to=onnx.TensorProto.INT8),
        helper.make_node("MatMulInteger", ["q", "w", "zero"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    weights = np.random.default_rng(4).integers(-128, 128, (24, 40)).astype(np.int8)
    model = zoo.model_of(nodes, {"x": [5, 24]}, {"y": ["a", "b"]}, [zoo.constant("w", weights)])
    path = tmp_path / "network.onnx"
    path.write_bytes(zoo._bytes(model))
    one = Compiled(path)
    assert rewritten(one, "pairs") == 1
    x = np.random.default_rng(5).integers(-120, 120, one.shape).astype(np.float32)
    assert np.array_equal(one.run({}, x), reference(model, x))


def test_a_tensor_is_read_by_products_of_both_groupings(tmp_path: Path) -> None:
    """Weights of the second need 9 bits."""
    model = chain([1, 16, 9, 9], whole(0, 16, 16, 3, 3), BYTES, pads=[1] * 4)
    model.graph.node.append(helper.make_node("Conv", ["c", "v"], ["other"], pads=[1] * 4))
    model.graph.node[-2].output[0] = "one"
    model.graph.node.append(helper.make_node("Sub", ["one", "other"], ["y"]))
    model.graph.initializer.append(zoo.constant("v", whole(1, 16, 16, 3, 3) * 2))
    one = compiled(model, tmp_path)
    assert (rewritten(one), rewritten(one, "pairs")) == (2, 1 if has("fours") else 2)
    x = given(one)
    wanted = reference(model, x)
    for best in ({}, one.drawn(np.random.default_rng(0))):
        assert np.array_equal(one.run(best, x), wanted)


FILTERED: dict[str, Callable[[], ModelProto]] = {
    "whole tiles": lambda: chain([1, 32, 12, 12], whole(0, 32, 32, 3, 3), pads=[1] * 4, residual=True),
    "tiles over the edge": lambda: chain([2, 64, 9, 11], whole(1, 32, 64, 3, 3), pads=[1, 0, 2, 1]),
    "the largest there are": lambda: chain([1, 32, 8, 8], np.full((32, 32, 3, 3), -127.0), levels=300.0, pads=[1] * 4),
}


@pytest.fixture
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small networks too."""
    from workers.tvm_backend.integers import filtering

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
def test_a_matrix_product_beside_a_filtered_convolution_stays_what_it_is(tmp_path: Path) -> None:
    model = chain([1, 32, 12, 12], whole(0, 32, 32, 3, 3), pads=[1] * 4)
    model.graph.node[-1].output[0] = "one"
    model.graph.node.append(helper.make_node("MatMul", ["c", "v"], ["other"]))
    model.graph.node.append(helper.make_node("Sub", ["one", "other"], ["y"]))
    model.graph.initializer.append(zoo.constant("v", whole(1, 12, 12)))
    one = compiled(model, tmp_path)
    assert one.imported.notes[0].endswith("filtering: 1")
    x = given(one)
    assert np.array_equal(one.run({}, x), reference(model, x))


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
    from workers.tvm_backend.integers import filtering

    monkeypatch.setattr(filtering, "SHIFT", 1)
    model = FILTERED["whole tiles"]()
    one = compiled(model, tmp_path)
    x = given(one)
    assert not np.array_equal(one.run({}, x), reference(model, x))


@pytest.mark.mutation
@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("broken", ["swapped", "shifted", "blank", "constant"])
def test_products_put_together_wrongly_are_noticed(
    broken: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend.integers import rewriting
    from workers.tvm_backend.integers.sums import Convolution

    if broken in ("blank", "constant") and (name == "pairs" or not has(name)):
        pytest.skip("nothing is taken off numbers of 16 bits")
    right, sums = rewriting._packed, Convolution.sums
    swapped = {"pairs": [1, 0, 3, 2], "fours": [1, 0, 2, 3]}[name]
    wrong: dict[str, Callable[[Any, Any], Any]] = {
        "swapped": lambda grouping, weights: right(grouping, _permuted(weights, swapped)),
        "shifted": lambda grouping, weights: right(grouping, np.roll(weights, 1, axis=-2)),
        "constant": lambda grouping, weights: right(grouping, np.where(weights == weights.max(), 0, weights)),
    }
    if broken == "blank":
        monkeypatch.setattr(Convolution, "sums", lambda self, grouping, _, *read: sums(self, grouping, 0, *read))
    else:
        monkeypatch.setattr(rewriting, "_packed", wrong[broken])
    model = CASES["padded"](BYTES if name == "fours" else LEVELS)
    one = compiled(model, tmp_path)
    x = given(one)
    assert not np.array_equal(one.run({}, x), reference(model, x))


def _permuted(weights: NDArray[Any], order: list[int]) -> NDArray[Any]:
    """Four channels after four in another order."""
    at = np.arange(weights.shape[-2]).reshape(-1, 4)[:, order].ravel()
    return weights[..., at, :]


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


@pytest.mark.parametrize("levels", [BYTES, LEVELS])
def test_what_others_read_too_is_kept_short(levels: float, tmp_path: Path) -> None:
    """A sum of what a convolution reads and what it gives: no operator writes both forms, or casts and nothing else. The third
    turns the layout back."""
    model = chain([1, 16, 9, 9], whole(0, 16, 16, 1, 1), levels, residual=True)
    one = compiled(model, tmp_path)
    assert rewritten(one) == 1
    assert len(one.extracted) == 3, [task.name for task in one.extracted]
    x = given(one)
    assert np.array_equal(one.run(one.drawn(np.random.default_rng(0)), x), reference(model, x))


def network(*layers: tuple[str, NDArray[Any] | None, dict[str, Any]], lows: tuple[float, ...]) -> ModelProto:
    """Each layer of numbers clipped to -low .. 255 - low, of `lows` in turns, and times another power of two."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    name = "x"
    for number, (kind, factors, attributes) in enumerate(layers):
        rounding, held = clipped(name, f"c{number}_", lows[number % len(lows)], BYTES)
        nodes += rounding
        scale = 1.0 if factors is None else 2.0 ** -(7 + number % 3)
        constants += [*held, zoo.constant(f"scale{number}", np.float32(scale))]
        read = [f"c{number}_"]
        if factors is not None:
            constants.append(zoo.constant(f"w{number}", factors.astype(np.float32)))
            read.append(f"w{number}")
        nodes.append(helper.make_node(kind, read, [f"s{number}"], **attributes))
        nodes.append(helper.make_node("Mul", [f"s{number}", f"scale{number}"], [f"m{number}"]))
        name = f"m{number}"
    nodes.append(helper.make_node("Abs", [name], ["y"]))
    return zoo.model_of(nodes, {"x": [1, 16, 12, 12]}, {"y": ["a", "b", "c", "d"]}, constants)


def test_layers_that_differ_by_a_scale_are_one_operator(tmp_path: Path) -> None:
    padded = {"pads": [1] * 4}
    model = network(*(("Conv", whole(layer, 16, 16, 3, 3), padded) for layer in (0, 2, 4)), lows=(0.0,))
    one = compiled(model, tmp_path)
    assert sorted(task.weight for task in one.extracted if "conv2d" in task.name) == [1, 2]
    x = given(one)
    assert np.array_equal(one.run(one.drawn(np.random.default_rng(0)), x), reference(model, x))


@pytest.mark.parametrize(("channels", "some"), [(48, {4, 8, 16}), (1000, {4, 8}), (30, {6, 30})])
def test_vectors_are_of_whole_instructions(channels: int, some: set[int], tmp_path: Path) -> None:
    """Where the channels can be divided so; else any is taken, and what is left computed number by number."""
    one = compiled(chain([1, 16, 9, 9], whole(0, channels, 16, 1, 1)), tmp_path)
    found = vectors(one)
    assert rewritten(one) == 1
    assert all(width % 4 == 0 for width in found) is (channels % 4 == 0)
    assert some <= found
    x = given(one)
    assert np.array_equal(
        one.run(one.drawn(np.random.default_rng(0)), x), reference(onnx.load(tmp_path / "network.onnx"), x)
    )


def test_convolutions_of_a_signal_in_groups_compute_exactly_the_same(tmp_path: Path) -> None:
    model = chain([1, 12, 30], whole(0, 12, 1, 5), BYTES, pads=[2, 2], group=12)
    deep = chain([1, 12, 30], whole(1, 24, 3, 3), BYTES, group=4)
    for number, network_ in enumerate((model, deep)):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = compiled(network_, folder)
        x = given(one)
        assert np.array_equal(one.run(one.drawn(np.random.default_rng(0)), x), reference(network_, x))


@pytest.mark.parametrize("mutated", [False, pytest.param(True, marks=pytest.mark.mutation)])
def test_what_convolutions_in_groups_and_poolings_read_is_kept_short(
    mutated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether something is taken off the numbers or not; around them lie zeros."""
    from workers.tvm_backend.integers.sums import Convolution
    from workers.tvm_backend.programs import argument_tensors

    if mutated:
        right = Convolution.in_groups
        monkeypatch.setattr(Convolution, "in_groups", lambda self, _, *read: right(self, 0, *read))
    model = network(
        ("Conv", whole(0, 16, 16, 1, 1), {}),
        ("Conv", whole(1, 16, 1, 3, 3), {"pads": [1] * 4, "group": 16}),
        ("Conv", whole(2, 32, 4, 3, 3), {"pads": [0, 1, 0, 1], "strides": [2, 1], "group": 4}),
        ("MaxPool", None, {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1], "strides": [1, 2]}),
        ("Conv", whole(4, 8, 32, 1, 1), {}),
        lows=(0.0, 3.0),
    )
    one = compiled(model, tmp_path)
    kept = [[dtype for _, dtype in argument_tensors(workload.mod)] for workload in one.workloads]
    shortest = 5 if has("fours") else 3  # products of pairs read 16 bits
    assert sum(dtypes[0] == "uint8" for dtypes in kept) == shortest, kept
    x = given(one)
    wanted = reference(model, x)
    assert len(np.unique(wanted)) > 50
    for best in ({}, one.drawn(np.random.default_rng(0)), one.drawn(np.random.default_rng(1))):
        assert np.array_equal(one.run(best, x), wanted) is not mutated


def joined(lows: tuple[float, float], pooled: bool, also: bool) -> ModelProto:
    """Two convolutions, clipped to -low .. 255 - low each, concatenated for a third, which may be behind a pooling; `also`: the
    first's is read by one more."""
    clips = [
        clipped(read, f"c{place}_", low, BYTES)
        for place, (read, low) in enumerate(zip("xab", (0.0, *lows), strict=True))
    ]
    nodes = [
        *clips[0][0],
        *(helper.make_node("Conv", ["c0_", f"w{name}"], [f"s{name}"]) for name in "ab"),
        *(helper.make_node("Mul", [f"s{name}", "scale"], [name]) for name in "ab"),
        *clips[1][0],
        *clips[2][0],
        helper.make_node("Concat", ["c1_", "c2_"], ["c"], axis=1),
        *([helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[3, 3], strides=[2, 2])] if pooled else []),
        helper.make_node("Conv", ["p" if pooled else "c", "wc"], ["sc"], pads=[1] * 4),
        helper.make_node("Abs", ["sc"], ["y"]),
        *([helper.make_node("Conv", ["c1_", "wd"], ["sd"]), helper.make_node("Abs", ["sd"], ["z"])] if also else []),
    ]  # fmt: skip
    held = [
        *(value for _, values in clips for value in values),
        zoo.constant("scale", np.float32(2.0**-7)),
        *(zoo.constant(f"w{name}", whole(place, *shape).astype(np.float32)) for place, (name, shape) in enumerate({
            "a": (16, 16, 1, 1), "b": (24, 16, 1, 1), "c": (8, 40, 3, 3), "d": (8, 16, 1, 1),
        }.items())),
    ]  # fmt: skip
    outputs = {"y": ["a", "b", "c", "d"], **({"z": ["a", "b", "c", "e"]} if also else {})}
    return zoo.model_of(nodes, {"x": [1, 16, 12, 12]}, outputs, held)


@pytest.mark.parametrize(
    ("lows", "pooled", "also"),
    [
        *(((0.0, 3.0), pooled, also) for pooled in (False, True) for also in (False, True)),
        *(((0.0, 0.0), same, same) for same in (False, True)),
        *(((3.0, 3.0), same, not same) for same in (False, True)),
    ],
)
def test_what_is_concatenated_is_kept_short(
    lows: tuple[float, float], pooled: bool, also: bool, tmp_path: Path
) -> None:
    """Of parts that are kept alike; those of other spans have 16 bits together, but for a quicker reader of one."""
    from workers.tvm_backend.programs import argument_tensors

    model = joined(lows, pooled, also)
    one = compiled(model, tmp_path)
    kept = [
        [dtype for _, dtype in argument_tensors(task.mod)] for task in one.workloads if "joined" in task.mod.script()
    ]
    if lows[0] == lows[1] and (has("fours") or pooled):  # one more that reads 16 bits of a part has it kept so
        assert [set(dtypes) for dtypes in kept] == ([{"uint8"}] if has("fours") or not also else []), kept
    elif not also or not has("fours"):
        assert [set(dtypes) for dtypes in kept] == [{"int16"}], kept
    x = given(one)
    wanted = reference(model, x)
    assert len(np.unique(wanted)) > 50
    for best in ({}, one.drawn(np.random.default_rng(0))):
        assert np.array_equal(one.run(best, x), wanted)


@pytest.mark.mutation
def test_a_part_beyond_the_span_of_the_first_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tvm_backend.integers.spans._around", lambda spans: spans[0])
    model = joined((0.0, 3.0), pooled=True, also=False)  # in 8 bits: in 16 nothing is beyond
    one = compiled(model, tmp_path)
    x = given(one)
    assert not np.array_equal(one.run({}, x), reference(model, x))


def test_spans() -> None:
    from tvm import relax
    from tvm.relax import op

    from workers.tvm_backend.integers.spans import whole_span

    x = relax.Var("x", relax.TensorType((2, 4), "float32"))
    bytes_ = relax.Var("b", relax.TensorType((2, 4), "uint8"))
    builder = relax.BlockBuilder()
    number = lambda value: relax.const(value, "float32")  # noqa: E731
    unbounded = (float("-inf"), float("inf"))
    wanted: list[tuple[Any, Any]] = [
        (x, None),
        (op.round(x), unbounded),
        (op.nn.relu(op.round(x)), (0.0, float("inf"))),
        (op.round(op.multiply(op.astype(bytes_, "float32"), number(-0.5))), (-128.0, 0.0)),
        (op.round(op.multiply(op.astype(bytes_, "float32"), number(np.float32([[0.5, 1, 2, 3]])))), unbounded),
        (op.round(op.multiply(x, number(0.5))), unbounded),
        (op.subtract(number(9.0), op.nn.relu(op.subtract(number(5.0), op.nn.relu(op.round(x))))), (4.0, 9.0)),
        (op.add(op.round(x), number(0.5)), None),
        (op.multiply(op.round(x), number(2.0)), None),
        (op.astype(bytes_, "float32"), (0.0, 255.0)),
        (op.subtract(op.astype(bytes_, "float32"), op.astype(bytes_, "float32")), (-255.0, 255.0)),
        (op.reshape(op.astype(bytes_, "float32"), (4, 2)), (0.0, 255.0)),
        (op.astype(op.astype(bytes_, "float32"), "int8"), (-128.0, 127.0)),
        (op.astype(op.astype(bytes_, "float32"), "int16"), (0.0, 255.0)),
        (op.astype(op.round(x), "int16"), (-32768.0, 32767.0)),
        (op.concat([op.astype(bytes_, "float32"), number(np.full((2, 4), -3.0))]), (-3.0, 255.0)),
        (op.concat([op.astype(bytes_, "float32"), x]), None),
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


def test_weights_that_a_file_transposes_behind_their_scale_are_multiplied_as_whole_numbers(tmp_path: Path) -> None:
    scale = np.linspace(0.001, 0.01, 64, dtype=np.float32)
    model = layer(TRANSPOSED, stored=whole(0, 64, 32).astype(np.int8), scale=scale, axis=0)
    path = tmp_path / "network.onnx"
    path.write_bytes(zoo._bytes(model))
    one = Compiled(path)
    assert rewritten(one) == 1
    x = np.random.default_rng(7).uniform(-3, 3, (2, 5, 32)).astype(np.float32)
    assert np.array_equal(one.run({}, x), reference(cleaned(path, {}), x))


def stores_a_product(one: Any, **config: Any) -> float:
    """Vectors written between the first and the last product of a convolution, of eight accumulators, over products."""
    import tvm
    from tvm import te

    from workers.tvm_backend.integers.sums import Convolution
    from workers.tvm_backend.programs import Workload

    data = te.placeholder((1, 56, 56, 64), one.dtype)
    weights = te.placeholder((3, 3, 64 // one.count, 64), "uint32")
    sums = Convolution(("NHWC", "HWIO"), (1, 1), (1, 1), (1, 1), (1, 1)).sums(one, 0, data, weights)
    mod = tvm.IRModule({"main": te.create_prim_func([data, weights, sums]).with_attr("layout_free_buffers", [1])})
    machine = tvm.target.Target(target())
    workload = Workload.generate(mod, machine)
    (sketch,) = workload.sketches
    tiles = [(1, 1, 1, 1), (1, 56, 1, 1), (1, 7, 1, 8), (8, 1, 1, 8), (1, 3), (1, 3), (32 // one.count, 2)]
    options = [(2,), *tiles, (32,), (64,), (1,)]
    choices = tuple(knob.options.index(option) for knob, option in zip(sketch.knobs, options, strict=True))
    assert workload.flops == pytest.approx(2.0 * 56 * 56 * 64 * 9 * 64, rel=0.05)
    assert workload.at_once == one.count
    with machine, tvm.transform.PassContext(config=config):
        built = tvm.tirx.build(workload.schedule(0, choices).mod, target=machine)
    lines = code(built).splitlines()
    first, *_, last = products = [line for line, text in enumerate(lines) if PRODUCT.search(text)]
    return sum(STORE.search(text) is not None for text in lines[first : last + 3]) / len(products)


@pytest.mark.parametrize("name", GROUPED)
def test_a_group_is_read_at_once(name: str) -> None:
    """Accumulators stay in registers then. With TVM's common subexpressions groups are no longer seen, and they do not."""
    import tvm

    from workers.tvm_backend.hardware import product_widths
    from workers.tvm_backend.programs import COMMON_LEFT

    machine = tvm.target.Target(target())
    one = grouping(name)
    if 8 not in product_widths(machine, one.count):
        pytest.skip("no such instruction here")
    assert stores_a_product(one, **COMMON_LEFT) < stores_a_product(one) / 2


def test_a_span_of_sums_of_sums_asks_for_each_once() -> None:
    """Else sixty of them took 2^60 looks."""
    from tvm import relax
    from tvm.relax import op

    from workers.tvm_backend.integers.spans import whole_span

    bytes_ = relax.Var("b", relax.TensorType((2, 4), "uint8"))
    builder = relax.BlockBuilder()

    def bound(expr: Any) -> Any:
        found = builder.lookup_binding(expr) if isinstance(expr, relax.Var) else None
        return expr if found is None else found

    with builder.function("main", [bytes_]):
        total = builder.emit(op.astype(bytes_, "float32"))
        for _ in range(60):
            total = builder.emit(op.add(total, total))
        assert whole_span(total, bound) == (0.0, 255 * 2.0**60)
        builder.emit_func_output(total)


def test_a_product_behind_a_thousand_sums_is_found() -> None:
    """Each was asked for by the one behind it, two calls deep: five hundred were too many."""
    from tvm import relax
    from tvm.relax import op

    from workers.tvm_backend.integers.finding import Found

    bytes_ = relax.Var("b", relax.TensorType((2, 4), "uint8"))
    builder = relax.BlockBuilder()
    with builder.function("main", [bytes_]):
        total = builder.emit(op.astype(bytes_, "float32"))
        for _ in range(1000):
            total = builder.emit(op.add(total, relax.const(np.float32(1))))
        builder.emit_func_output(builder.emit(op.matmul(total, relax.const(np.ones((4, 8), np.float32)))))
    found = Found()
    found.find(builder.finalize()["main"], [grouping("pairs")])
    (factors,) = found.products.values()
    assert factors.read.data == (1000.0, 1255.0)
