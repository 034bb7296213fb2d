"""Which rows an integer input may ask for."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.zoo import constant
from workers.networks.vocabulary import vocabularies


def network(*nodes: NodeProto, output: str = "y") -> ModelProto:
    tables = [constant(name, np.zeros((rows, 4), np.float32)) for name, rows in (("words", 50), ("places", 7))]
    ramp = np.arange(64, dtype=np.int64)[:, None]
    tables += [constant("ramp", ramp), constant("real_ramp", ramp.astype(np.float32))]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 3])]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    graph = helper.make_graph(
        list(nodes), "network", inputs, outputs, [*tables, constant("one", np.asarray(1, np.int64))]
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


REAL = helper.make_node("Cast", ["ids"], ["f"], to=TensorProto.FLOAT)
CAST = helper.make_node("Cast", ["ids"], ["i"], to=TensorProto.INT32)
WORDS = helper.make_node("Gather", ["words", "ids"], ["y"])


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ([WORDS], {"ids": 50}),
        ([CAST, helper.make_node("Gather", ["words", "i"], ["y"])], {"ids": 50}),
        ([WORDS, helper.make_node("Gather", ["places", "ids"], ["z"])], {"ids": 7}),
        ([WORDS, helper.make_node("Equal", ["ids", "one"], ["z"])], {"ids": 50}),
        ([WORDS, CAST, helper.make_node("ArgMax", ["i"], ["z"], axis=-1)], {"ids": 50}),
        ([WORDS, helper.make_node("Add", ["ids", "one"], ["z"])], {}),
        ([WORDS, helper.make_node("Cast", ["ids"], ["z"], to=TensorProto.FLOAT)], {}),
        ([helper.make_node("Gather", ["words", "ids"], ["y"], axis=1)], {"ids": 4}),
        ([helper.make_node("Less", ["ramp", "ids"], ["y"])], {"ids": 65}),
        ([REAL, helper.make_node("Less", ["real_ramp", "f"], ["y"])], {"ids": 65}),
        ([REAL, helper.make_node("Add", ["real_ramp", "f"], ["y"])], {}),
        ([helper.make_node("Less", ["ramp", "ids"], ["z"]), WORDS], {"ids": 50}),
        ([helper.make_node("Equal", ["ids", "one"], ["y"])], {}),
        ([helper.make_node("Cast", ["ids"], ["y"], to=TensorProto.FLOAT)], {}),
    ],
)  # fmt: skip
def test_the_smallest_table_bounds_an_index_that_is_nothing_else(nodes: list[NodeProto], found: dict[str, int]) -> None:
    assert vocabularies(network(*nodes)) == found
