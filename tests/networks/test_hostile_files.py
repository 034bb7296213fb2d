"""Files that mean harm, or are merely broken: one clear sentence each, quickly, and nothing allocated for them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.zoo import constant, model_of, tiny
from workers.networks.check import load
from workers.networks.errors import NetworkError
from workers.networks.limits import DEFAULT, Limits
from workers.networks.wire import BLOB, NAME, ONCE, SCHEMA, Walk

HUGE = 2**40


def refused(folder: Path, content: bytes | ModelProto, limits: Limits = DEFAULT, seconds: float = 2.0) -> str:
    path = folder / "hostile.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    began = time.process_time()
    with pytest.raises(NetworkError) as caught:
        load(path, limits)
    assert time.process_time() - began < seconds
    text = str(caught.value)
    assert "\n" not in text
    assert text.isprintable()
    assert len(text) < 700
    return text


def chain(
    *nodes: onnx.NodeProto, weights: list[TensorProto] | None = None, shape: list[int] | None = None
) -> ModelProto:
    return model_of(list(nodes), {"x": shape or [1]}, {"y": None}, weights or [])


def test_wrong_extension_missing_directory_and_empty_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "network.pt2").write_bytes(b"x")
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "empty.onnx").touch()
    for name, words in [
        ("network.pt2", "only .onnx"),
        ("folder.onnx", "not a file"),
        ("empty.onnx", "empty"),
        ("none.onnx", "cannot be read"),
    ]:
        with pytest.raises(NetworkError, match=words):
            load(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [
        b"hello, this is not a network\n" * 10,
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        bytes(1000),
        b"\xff" * 1000,
        b"PK\x03\x04" * 50,
    ],
)
def test_something_else_than_protobuf_is_refused(tmp_path: Path, content: bytes) -> None:
    assert refused(tmp_path, content)


@pytest.mark.parametrize(
    ("operator", "name", "version", "told"),
    [
        (
            "FancyOp",
            "n3",
            9,
            "Node n3: it uses FancyOp, which is not an ONNX operator of opset 9; replace it by standard",
        ),
        ("FancyOp", "", 9, "The node that makes y: it uses FancyOp, which"),
        ("HardSwish", "n3", 9, "not an ONNX operator of opset 9; export the network with opset 14 or newer"),
        ("Upsample", "n3", 13, "not an ONNX operator of opset 13; export the network with opset 9 or older"),
        ("GroupNormalization", "n3", 18, "not an ONNX operator of opset 18; export the network with opset 21 or newer"),
    ],
)
def test_an_operator_that_onnx_does_not_have_is_named_with_its_node(
    tmp_path: Path, operator: str, name: str, version: int, told: str
) -> None:
    model = chain(helper.make_node(operator, ["x"], ["y"], name=name))
    model.opset_import[0].version = version
    said = refused(tmp_path, model)
    assert told in said
    assert "hostile.onnx" not in said


def test_what_else_the_checker_refuses_is_said_in_its_words_of_which_node_and_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / ("0" * 64 + ".onnx")
    path.write_bytes(chain(helper.make_node("Relu", ["x", "x"], ["y"], name="n3")).SerializeToString())
    with pytest.raises(NetworkError) as caught:
        load(path)
    assert "Node n3 (Relu): the ONNX checker refuses it: " in str(caught.value)
    assert "==>" not in str(caught.value)
    assert "0" * 64 not in str(caught.value)
    assert "==> Context" in str(caught.value.__cause__)  # the log has it with its causes


def test_truncated_at_any_offset_is_refused(tmp_path: Path, zoo_cache: Path) -> None:
    content = tiny(zoo_cache).read_bytes()
    offsets = {*range(1, 200), *np.linspace(200, len(content) - 1, 200).astype(int)}
    for offset in sorted(offsets):
        assert refused(tmp_path, content[: int(offset)])


def test_file_over_the_size_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    with path.open("wb") as file:
        file.truncate(3_000_000_000)
    with pytest.raises(NetworkError, match="3000000000 bytes"):
        load(path)


def test_external_data_is_refused_whatever_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(16))
    tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret")
    assert "another file" in refused(tmp_path, chain(helper.make_node("Add", ["x", "w"], ["y"]), weights=[tensor]))
    tensor.ClearField("data_location")
    assert "another file" in refused(tmp_path, chain(helper.make_node("Add", ["x", "w"], ["y"]), weights=[tensor]))


def sized(op: str, size: np.ndarray | list[int] | int, **attributes: object) -> ModelProto:
    return chain(
        helper.make_node(op, ["x", "s"], ["y"], **attributes), weights=[constant("s", np.asarray(size, np.int64))]
    )


BOMBS: dict[str, Callable[[], ModelProto]] = {
    "weight": lambda: chain(
        helper.make_node("Add", ["x", "w"], ["y"]),
        weights=[TensorProto(name="w", data_type=1, dims=[HUGE], raw_data=b"1234")],
    ),
    "weight whose count overflows to 0": lambda: chain(
        helper.make_node("Add", ["x", "w"], ["y"]), weights=[TensorProto(name="w", data_type=1, dims=[2**32, 2**32])]
    ),
    "negative weight": lambda: chain(
        helper.make_node("Add", ["x", "w"], ["y"]),
        weights=[TensorProto(name="w", data_type=1, dims=[-4], raw_data=b"1234")],
    ),
    "Constant": lambda: chain(
        helper.make_node("Constant", [], ["c"], value=TensorProto(data_type=1, dims=[HUGE])),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ),
    "declared input": lambda: chain(helper.make_node("Relu", ["x"], ["y"]), shape=[2**31, 2**31]),
    "ConstantOfShape": lambda: chain(
        helper.make_node("ConstantOfShape", ["s"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["y"]),
        weights=[constant("s", np.array([HUGE, 1], np.int64))],
    ),
    "Tile": lambda: sized("Tile", [HUGE]),
    "Expand": lambda: sized("Expand", [HUGE, 2]),
    "Pad": lambda: sized("Pad", [0, HUGE]),
    "Reshape chain": lambda: sized("Expand", [2**21, 2**21]),
    "Range": lambda: chain(
        helper.make_node("Range", ["a", "b", "c"], ["r"]),
        helper.make_node("Add", ["x", "r"], ["y"]),
        weights=[constant(n, np.float32(v)) for n, v in (("a", 0), ("b", 1e15), ("c", 1))],
    ),
    "Resize": lambda: chain(
        helper.make_node("Resize", ["x", "", "s"], ["y"]),
        weights=[constant("s", np.array([1, 1, 1e7, 1e7], np.float32))],
        shape=[1, 1, 4, 4],
    ),
    "Conv padding": lambda: chain(
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[2**30] * 4),
        weights=[constant("w", np.ones((1, 1, 1, 1), np.float32))],
        shape=[1, 1, 4, 4],
    ),
    "size computed by the network": lambda: chain(
        helper.make_node("Mul", ["s", "s"], ["t"]),
        helper.make_node("ConstantOfShape", ["t"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["y"]),
        weights=[constant("s", np.array([2**25], np.int64))],
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_shape_bomb_is_refused_before_it_is_allocated(tmp_path: Path, name: str) -> None:
    text = refused(tmp_path, BOMBS[name]())
    assert any(word in text for word in ("elements", "needs", "dimension")), text


def test_many_tensors_under_the_limit_are_refused_for_their_sum(tmp_path: Path) -> None:
    nodes = [helper.make_node("Tile", ["x" if i == 0 else "t0", "s" if i == 0 else "o"], [f"t{i}"]) for i in range(140)]
    weights = [constant("s", np.array([2**29], np.int64)), constant("o", np.array([1], np.int64))]
    assert "together" in refused(tmp_path, chain(*nodes, helper.make_node("Relu", ["t1"], ["y"]), weights=weights))


def test_weights_longer_or_shorter_than_their_shape_are_refused(tmp_path: Path) -> None:
    for tensor in (
        TensorProto(name="w", data_type=1, dims=[2], raw_data=bytes(12)),
        TensorProto(name="w", data_type=1, dims=[2], float_data=[1.0]),
        TensorProto(name="w", data_type=7, dims=[2], int64_data=[1, 2**40, 3]),
        TensorProto(name="w", data_type=99, dims=[2], raw_data=bytes(8)),
    ):
        assert "w: " in refused(tmp_path, chain(helper.make_node("Identity", ["w"], ["y"]), weights=[tensor]))


def test_circles_missing_and_doubled_names_are_refused(tmp_path: Path) -> None:
    add, relu = helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])
    out = helper.make_node("Relu", ["a"], ["y"])
    assert "circle" in refused(tmp_path, chain(add, relu, out))
    assert "circle" in refused(tmp_path, chain(helper.make_node("Relu", ["y"], ["y"])))
    assert "circle" in refused(tmp_path, chain(helper.make_node("Relu", ["nowhere"], ["y"])))
    assert "two operators" in refused(
        tmp_path, chain(helper.make_node("Relu", ["x"], ["y"]), out := helper.make_node("Relu", ["x"], ["y"]), out)
    )
    assert "twice" in refused(
        tmp_path, chain(helper.make_node("Add", ["x", "w"], ["y"]), weights=[constant("w", np.ones(1, "f"))] * 2)
    )
    assert "no operator makes" in refused(tmp_path, chain(helper.make_node("Relu", ["x"], ["z"])))


def nested(depth: int) -> onnx.GraphProto:
    node = helper.make_node("Relu", ["x"], [f"o{depth}"])
    if depth:
        node = helper.make_node("If", ["flag"], [f"o{depth}"], then_branch=nested(depth - 1), else_branch=nested(0))
    return helper.make_graph([node], f"g{depth}", [], [helper.make_tensor_value_info(node.output[0], 1, None)])


@pytest.mark.parametrize("depth", [10, 25])
def test_deep_subgraphs_are_refused(tmp_path: Path, depth: int) -> None:
    graph = nested(depth)
    graph.input.append(helper.make_tensor_value_info("x", 1, [1]))
    graph.initializer.append(constant("flag", np.array(True)))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert "inside each other" in refused(tmp_path, model)


def test_subgraphs_within_the_limit_are_taken(tmp_path: Path) -> None:
    graph = nested(2)
    graph.input.append(helper.make_tensor_value_info("x", 1, [1]))
    graph.initializer.append(constant("flag", np.array(True)))
    path = tmp_path / "nested.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    load(path)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field."""
    length, size = len(content), bytearray()
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + content


def test_empty_operators_by_the_million_are_refused_before_they_are_parsed(tmp_path: Path) -> None:
    assert "operators" in refused(tmp_path, field(7, field(1, b"") * 5_000_000))


def test_a_flood_of_fields_and_of_unknown_content_is_refused(tmp_path: Path) -> None:
    assert "protobuf fields" in refused(tmp_path, b"\x08\x08" * 3_000_000, seconds=10.0)
    assert "does not know" in refused(tmp_path, field(7, field(100 % 16 + 5, bytes(20_000_000))))


def test_what_a_parser_would_make_one_of_two_is_refused(tmp_path: Path) -> None:
    """Either tensor holds what its shape needs; of both a parser makes one of 2^20 elements."""
    half = field(5, TensorProto(data_type=1, dims=[1024], raw_data=bytes(4096)).SerializeToString())
    attribute = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR).SerializeToString() + 2 * half
    node = helper.make_node("Constant", [], ["y"]).SerializeToString() + field(5, attribute)
    assert onnx.AttributeProto.FromString(attribute).t.dims == [1024, 1024]
    assert "it has more than one tensor" in refused(tmp_path, field(7, field(1, node)))
    model = chain(helper.make_node("Relu", ["x"], ["y"])).SerializeToString()
    assert "it has more than one graph" in refused(tmp_path, model + model)


def test_what_there_is_one_of_is_what_the_format_says() -> None:
    """By its descriptors; a message that ONNX has one of and the walk does not know as one could be merged unseen."""

    def compare(kind: str, message: Any) -> None:
        seen.add(kind)
        for number, target in SCHEMA.get(kind, {}).items():
            if (field := message.fields_by_number.get(number)) and field.message_type and target not in (BLOB, NAME):
                assert (number in ONCE.get(kind, ())) is not field.is_repeated, (kind, field.name)
                if target not in seen:
                    compare(target, field.message_type)

    seen: set[str] = set()
    compare("Model", ModelProto.DESCRIPTOR)
    assert seen >= set(ONCE)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"\xc3\x28", b"a\x00b", b"a\x1b[2Jb", b"a\nb", "a\u202eb".encode()])
def test_names_with_broken_or_invisible_characters_are_refused(tmp_path: Path, name: bytes) -> None:
    node = field(1, b"x") + field(2, name) + field(4, b"Relu")
    content = b"\x08\x08" + field(8, b"\x10\x11") + field(7, field(1, node) + field(2, b"g"))
    assert "name" in refused(tmp_path, content)


def test_an_endless_name_is_refused(tmp_path: Path) -> None:
    assert "1024" in refused(
        tmp_path, chain(helper.make_node("Relu", ["x"], ["n" * 5000]), helper.make_node("Relu", ["x"], ["y"]))
    )


def within_if(domain: str) -> list[onnx.NodeProto]:
    """A constant condition whose branches hold an operator of this domain."""
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["z"], domain=domain)], "branch", [], [value])
    truth = helper.make_tensor("t", TensorProto.BOOL, [], [True])
    return [
        helper.make_node("Constant", [], ["c"], value=truth),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]


def test_domains_that_no_operator_uses_are_let_in(tmp_path: Path) -> None:
    """ONNX Runtime's tools declare every domain they know."""
    model = chain(helper.make_node("Relu", ["x"], ["y"]))
    model.opset_import.add(domain="ai.onnx.training", version=1)
    path = tmp_path / "many.onnx"
    path.write_bytes(model.SerializeToString())
    load(path)


def test_operators_in_any_order_are_taken_as_onnx_runtime_does(tmp_path: Path) -> None:
    """Its converter to half precision writes such."""
    make, value = helper.make_node, helper.make_tensor_value_info
    branch = helper.make_graph(
        [make("Abs", ["a"], ["e"]), make("Exp", ["e"], ["f"])], "branch", [], [value("f", 1, [1])]
    )
    nodes = [
        make("Mul", ["c", "d"], ["y"]),
        make("Sqrt", ["x"], ["d"]),
        make("If", ["flag"], ["c"], then_branch=branch, else_branch=branch),
        make("Greater", ["x", "zero"], ["greater"]),
        make("Neg", ["x"], ["a"]),
        make("Reshape", ["greater", "scalar"], ["flag"]),
    ]
    weights = [constant("zero", np.zeros(1, "f")), constant("scalar", np.zeros(0, np.int64))]
    model = model_of(nodes, {"x": [1]}, {"y": [1]}, weights)
    path = tmp_path / "anyhow.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = load(path)
    onnx.checker.check_model(loaded)
    # By the order of old where there is a choice.
    assert [node.output[0] for node in loaded.graph.node] == ["d", "greater", "a", "flag", "c", "y"]
    x = np.array([4.0], "f")
    want, found = (
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for content in (path.read_bytes(), loaded.SerializeToString())
    )
    assert found == want == pytest.approx(2 * np.exp(4), rel=1e-6)


@pytest.mark.parametrize("declared", [["ai.onnx"], [""], ["", "ai.onnx"]], ids=["so", "plain", "both"])
def test_the_other_name_of_onnx_is_taken_as_onnx_runtime_does(tmp_path: Path, declared: list[str]) -> None:
    inside = helper.make_node("Neg", ["a"], ["b"], domain="ai.onnx")
    opsets = [helper.make_opsetid(domain, 17) for domain in declared]
    model = chain(*within_if("ai.onnx"), helper.make_node("Minus", ["x"], ["m"], domain="my"))
    model.functions.append(helper.make_function("my", "Minus", ["a"], ["b"], [inside], opsets))
    del model.opset_import[:]
    model.opset_import.extend([*opsets, helper.make_opsetid("my", 1)])
    path = tmp_path / "named.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = load(path)
    assert [one.domain for one in loaded.opset_import] == ["", "my"]
    assert "ai.onnx" not in str(loaded)


def test_unknown_operators_domains_and_versions_are_refused(tmp_path: Path) -> None:
    good = helper.make_node("Relu", ["x"], ["y"])
    assert "NoSuch" in refused(tmp_path, chain(helper.make_node("NoSuch", ["x"], ["y"])))
    for nodes in ([helper.make_node("Relu", ["x"], ["y"], domain="evil.corp")], within_if("evil.corp")):
        model = chain(*nodes)
        model.opset_import.add(domain="evil.corp", version=1)
        assert "evil.corp" in refused(tmp_path, model)
    for version in (0, 10_000):
        model = chain(good)
        model.opset_import[0].version = version
        assert "opset" in refused(tmp_path, model)
    model = chain(good)
    model.ir_version = 999
    assert "IR version" in refused(tmp_path, model)
    assert "no operators" in refused(tmp_path, chain())


def test_functions_that_double_each_other_or_themselves_are_refused(tmp_path: Path) -> None:
    def function(name: str, calls: str) -> onnx.FunctionProto:
        nodes = [
            helper.make_node(calls, ["a"], ["b"], domain="local"),
            helper.make_node(calls, ["b"], ["c"], domain="local"),
        ]
        return helper.make_function(
            "local", name, ["a"], ["c"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
        )

    model = chain(helper.make_node("f0", ["x"], ["y"], domain="local"))
    model.opset_import.add(domain="local", version=1)
    model.functions.extend([function(f"f{i}", f"f{i + 1}") for i in range(30)])
    assert "written out" in refused(tmp_path, model) or "deeply" in refused(tmp_path, model)
    del model.functions[:]
    model.functions.append(function("f0", "f0"))
    assert "circle" in refused(tmp_path, model)


def test_mutated_networks_pass_or_are_refused_and_nothing_else(tmp_path: Path, zoo_cache: Path) -> None:
    content = tiny(zoo_cache).read_bytes()
    random = np.random.default_rng(7)
    path, passed = tmp_path / "mutated.onnx", 0
    model = onnx.load(tiny(zoo_cache))
    weights = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    assert weights > 0.9 * len(content)
    # Weights fill nearly all of the file and may hold any bytes: mutations go to the rest.
    structural = [i for i in range(len(content)) if i < 400 or i > len(content) - 250]
    for _ in range(500):
        mutated = bytearray(content)
        for position in random.choice(structural, random.integers(1, 4)):
            mutated[position] = random.integers(256)
        path.write_bytes(mutated)
        began = time.process_time()
        with contextlib.suppress(NetworkError):
            load(path)
            passed += 1
        assert time.process_time() - began < 1.0
    assert 0 < passed < 500


@pytest.mark.mutation
def test_without_the_walk_four_bytes_that_say_they_are_2_gib_would_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = TensorProto(name="w", data_type=1, dims=[2**29], raw_data=b"1234")
    assert "w: " in refused(tmp_path, chain(helper.make_node("Add", ["x", "w"], ["y"]), weights=[weight]))
    monkeypatch.setattr(Walk, "run", lambda self: None)
    load(tmp_path / "hostile.onnx")
