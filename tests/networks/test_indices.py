"""Indices beyond what they are read from: constant ones are refused, computed ones end at its ends."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.networks.forms import drawn, one
from tests.zoo import constant
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types
from workers.networks.indices import bounded_indices

ROWS = [4, 5, 6]


@pytest.mark.parametrize(
    ("kind", "indices", "others", "attributes", "words"),
    [
        ("Gather", [0, 5], (), {"axis": 1}, "index 5 .*from -5 to 4"),
        ("Gather", [-5], (), {}, "index -5 .*from -4 to 3"),
        ("GatherElements", [[[6]]], (), {"axis": -1}, "index 6 .*from -6 to 5"),
        ("GatherND", [[3, 5]], (), {}, "index 5"),
        ("ScatterElements", [[[4]]], (drawn(1, 1, 1),), {}, "index 4"),
        ("ScatterND", [[10**7]], (drawn(1, 5, 6),), {"reduction": "add"}, "index 10000000 "),
    ],
)
def test_a_constant_one_is_refused_by_name(kind: str, indices: Any, others: Any, attributes: Any, words: str) -> None:
    model = one(kind, ROWS, 18, np.asarray(indices, np.int64), *others, **attributes)
    with pytest.raises(NetworkError, match=words) as caught:
        clean(model, {}, lambda same: same)
    assert f"Node the one ({kind})" in str(caught.value)


def looking_up(kind: str, shape: list[int], *updates: Any, **attributes: Any) -> ModelProto:
    """A table that is looked up in, or written to, at what the input says."""
    weights = [constant("table", drawn(*ROWS)), *(constant("updates", values) for values in updates)]
    names = ["table", "at", *(["updates"] if updates else [])]
    graph = helper.make_graph(
        [helper.make_node(kind, names, ["y"], **attributes)],
        "network",
        [helper.make_tensor_value_info("at", TensorProto.INT64, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])


def run(model: ModelProto, at: Any) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"at": np.asarray(at, np.int64)})[0]


@pytest.mark.parametrize(
    ("model", "inside", "beyond", "ends"),
    [
        (looking_up("Gather", [2]), [3, -4], [4, -5], [3, -4]),
        (looking_up("Gather", [], axis=2), -1, 10**9, 5),
        (looking_up("GatherElements", [1, 1, 2], axis=1), [[[4, -5]]], [[[5, -6]]], [[[4, -5]]]),
        (looking_up("GatherND", [1, 2]), [[3, -5]], [[4, -6]], [[3, -5]]),
        (looking_up("GatherND", [4, 1], batch_dims=1), [[4], [0], [1], [-5]], [[5], [0], [1], [-9]], [[4], [0], [1], [-5]]),
        (looking_up("ScatterElements", [1, 1, 1], drawn(1, 1, 1), axis=1), [[[2]]], [[[9]]], [[[4]]]),
        (looking_up("ScatterND", [1, 1], drawn(1, 5, 6), reduction="add"), [[-1]], [[10**7]], [[3]]),
    ],
)  # fmt: skip
def test_a_computed_one_ends_where_the_table_does(model: ModelProto, inside: Any, beyond: Any, ends: Any) -> None:
    copy = ModelProto.FromString(model.SerializeToString())
    bounded, report = clean(copy, {}, lambda same: same)
    assert "1 computed index was kept within what it is read from" in report
    assert np.array_equal(run(bounded, inside), run(model, inside))
    assert np.array_equal(run(bounded, beyond), run(model, ends))
    with pytest.raises(Exception, match=r"(?i)indice|index"):
        run(model, beyond)


def test_one_bound_serves_tables_of_one_size() -> None:
    model = looking_up("Gather", [2])
    model.graph.node.append(helper.make_node("Gather", ["table", "at"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    bounded, _ = clean(model, {}, lambda same: same)
    assert [node.op_type for node in bounded.graph.node].count("Clip") == 1


def test_how_much_there_is_must_be_known() -> None:
    """What is looked up in has as many rows as there are numbers that are not 0."""
    nodes = [helper.make_node("NonZero", ["at"], ["n"]), helper.make_node("Gather", ["n", "at"], ["y"], axis=1)]
    model = looking_up("Gather", [2])
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, None))
    with pytest.raises(NetworkError, match="how much it may look up in is not known"):
        clean(model, {}, lambda same: same)


def after(kind: str, domain: str, declared: list[int] | None = None) -> ModelProto:
    """A row of what an operator that ONNX has no schema of made of the table; it says what size that has."""
    model = looking_up("Gather", [])
    graph = model.graph
    graph.node.insert(0, helper.make_node(kind, ["table", "bias"], ["made"], domain=domain))
    graph.node[1].input[0] = "made"
    graph.initializer.append(constant("bias", drawn(ROWS[-1])))
    graph.output.append(helper.make_tensor_value_info("made", TensorProto.FLOAT, declared))
    model.opset_import.append(helper.make_opsetid(domain, 1))
    return model


def test_what_onnxruntime_optimised_is_looked_up_in() -> None:
    bounded, report = clean(after("BiasGelu", "com.microsoft"), {}, lambda same: same)
    assert "1 computed index was kept within what it is read from" in report
    assert np.array_equal(run(bounded, 9), run(after("BiasGelu", "com.microsoft"), 3))


def test_what_a_file_says_of_its_outputs_bounds_nothing() -> None:
    with pytest.raises(NetworkError, match="how much it may look up in is not known"):
        bounded_indices(after("Unheard", "com.microsoft", [10**6, *ROWS[1:]]))


def test_the_first_and_the_last_row_are_there_whatever_the_size() -> None:
    model = after("Unheard", "com.microsoft")
    del model.graph.input[:]
    model.graph.initializer.append(constant("at", np.asarray([0, -1])))
    assert bounded_indices(model) is None


def test_weights_are_not_decoded() -> None:
    """They would be in memory once more."""
    model, weights = looking_up("Gather", [2]), np.zeros(1 << 22, np.float32)
    model.graph.initializer.append(constant("weights", weights))
    tracemalloc.start()
    try:
        assert bounded_indices(model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < weights.nbytes / 4


def test_older_operator_sets_clip_without_clip() -> None:
    """There Clip takes its bounds as attributes; Min and Max are TVM's whatever the version."""
    model = looking_up("Gather", [2])
    model.opset_import[0].version = 11
    assert bounded_indices(model)
    assert [node.op_type for node in model.graph.node] == ["Min", "Max", "Gather"]


def test_regions_are_of_pictures_that_are_there() -> None:
    model = one("RoiAlign", [2, 3, 8, 8], 16, drawn(1, 4), np.asarray([2]))
    with pytest.raises(NetworkError, match=r"its index 2 .*from 0 to 1"):
        bounded_indices(model)


def test_what_looks_nothing_up_is_left_alone() -> None:
    model, _ = clean(one("Relu", ROWS, 18), {}, lambda same: same)
    assert operator_types(model) == {"Relu"}


def test_a_name_that_two_branches_use_is_no_index() -> None:
    """Each means its own: what one says of it is nothing to the other."""

    def branch(index: int) -> Any:
        return helper.make_graph(
            [helper.make_node("Gather", ["table", "i"], ["y"], name="lookup")],
            "branch",
            [],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [constant("i", np.asarray([index], np.int64))],
        )

    chosen = helper.make_node("If", ["condition"], ["z"], then_branch=branch(0), else_branch=branch(10**9))
    graph = helper.make_graph(
        [chosen],
        "network",
        [helper.make_tensor_value_info("condition", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [constant("table", drawn(*ROWS))],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    with pytest.raises(NetworkError, match="reads i, a name that two of the file's graphs use"):
        bounded_indices(model)
