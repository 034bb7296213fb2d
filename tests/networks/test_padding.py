"""Padded channels change nothing but the width of the convolution."""

import time

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.tries import quickest
from workers.networks import padding
from workers.networks.padding import pad_channels


def classifier(channels, between=("Relu",), groups=1, watched=False):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((channels, 8 // groups, 1, 1)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y0"], group=groups)]
    for number, kind in enumerate(between):
        nodes.append(helper.make_node(kind, [f"y{number}"], [f"y{number + 1}"]))
    nodes.append(helper.make_node("GlobalAveragePool", [f"y{len(between)}"], ["out"]))
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, channels, 1, 1])]
    if watched:
        outputs.append(helper.make_tensor_value_info("y0", TensorProto.FLOAT, [1, channels, 6, 6]))
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 6, 6])],
        outputs,
        [
            numpy_helper.from_array(filters, "w"),
            numpy_helper.from_array(rng.standard_normal(channels).astype(np.float32), "b"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def outputs(model):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).standard_normal((1, 8, 6, 6)).astype(np.float32)
    return session.run(None, {"x": x})


@pytest.mark.parametrize("between", [(), ("Relu",), ("Relu", "LeakyRelu")])
def test_the_output_is_the_same_and_the_convolution_is_wider(between):
    model = classifier(100, between)
    before = outputs(model)
    assert pad_channels(model)
    assert {tensor.name: tensor.dims[0] for tensor in model.graph.initializer}["w__padded"] == 112
    after = outputs(model)
    assert after[0].shape == before[0].shape
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6, atol=1e-6)


def quantised_classifier(scale, most=()):
    """Scaled, rounded and clipped from above, as quantised networks are written; of shapes `scale` and `most`."""
    model = classifier(100, ())
    steps = [
        ("Mul", "y0 scale"),
        ("Round", "q0"),
        ("Sub", "most q1"),
        ("Relu", "q2"),
        ("Add", "most q3"),
        ("Div", "q4 scale"),
    ]
    graph = model.graph
    pool = graph.node.pop()
    graph.node.extend(helper.make_node(kind, read.split(), [f"q{place}"]) for place, (kind, read) in enumerate(steps))
    pool.input[0] = f"q{len(steps) - 1}"
    graph.node.append(pool)
    rng = np.random.default_rng(2)
    constants = {"scale": rng.uniform(2, 20, scale), "most": rng.uniform(10, 15, most)}
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()
    )
    return model


BY_CHANNEL = (1, 100, 1, 1)


def network(steps, filters, inputs=None, opset=18, shape=(1, 8, 6, 6)):
    """Operators as "Conv x w > y" with attributes, `filters` by name and shape, whose last output is the network's."""
    rng = np.random.default_rng(3)
    nodes = []
    for step, attributes in steps:
        read, _, made = step.partition(" > ")
        kind, *names = read.split()
        nodes.append(helper.make_node(kind, names, made.split(), **attributes))
    ports = {"x": list(shape), **(inputs or {})}
    weights = [
        numpy_helper.from_array(rng.standard_normal(dims).astype(np.float32), name) for name, dims in filters.items()
    ]
    weights += [numpy_helper.from_array(np.asarray([-2, -1], np.int64), "axes")]
    graph = helper.make_graph(
        nodes,
        "channels",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ports.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def unit(channels=20):
    """As of a ShuffleNet V2: its depthwise convolution between two others, and what was there before beside their result."""
    steps = [
        ("Conv x in b > a", {}),
        ("Relu a > c", {}),
        ("Conv c each > d", {"group": channels, "pads": [1, 1, 1, 1]}),
        ("Conv d mix > e", {}),
        ("Relu e > f", {}),
        ("Concat f x > g", {"axis": 1}),
        ("Conv g out > h", {}),
    ]
    filters = {
        "in": (channels, 8, 1, 1),
        "b": (channels,),
        "each": (channels, 1, 3, 3),
        "mix": (channels, channels, 1, 1),
        "out": (8, channels + 8, 1, 1),
    }
    return network(steps, filters)


def excited(pool="GlobalAveragePool c > m", attributes=None):
    """Channels weighed by what they are on the average, and added to what they were."""
    steps = [
        ("Conv x in > a", {}),
        ("HardSwish a > c", {}),
        (pool, attributes or {}),
        ("Conv m down > n", {}),
        ("Relu n > o", {}),
        ("Conv o up > p", {}),
        ("Sigmoid p > q", {}),
        ("Mul c q > r", {}),
        ("Add a r > s", {}),
        ("Conv s out > t", {}),
    ]
    filters = {"in": (58, 8, 1, 1), "down": (6, 58, 1, 1), "up": (58, 6, 1, 1), "out": (8, 58, 3, 3)}
    return network(steps, filters)


def modulated(split=True):
    """What is asked, what is near and gates, of one convolution (Yang et al. 2022), apart by a Split or by Slices."""
    bounds = {"n0": 0, "n16": 16, "n32": 32, "n35": 35, "along": 1}
    parts = [("Split a sizes > q c g", {"axis": 1})]
    if not split:
        parts = [
            (f"Slice a n{low} n{high} along > {name}", {})
            for name, low, high in (("q", 0, 16), ("c", 16, 32), ("g", 32, 35))
        ]
    steps = [
        ("Conv x in b > a", {}),
        *parts,
        ("Conv c each > d", {"group": 16, "pads": [1, 1, 1, 1]}),
        ("ReduceSum g one > h", {}),
        ("Mul d h > e", {}),
        ("Mul q e > f", {}),
        ("Conv f out > y", {}),
    ]
    model = network(steps, {"in": (35, 8, 1, 1), "b": (35,), "each": (16, 1, 3, 3), "out": (8, 16, 1, 1)})
    numbers = {"sizes": [16, 16, 3], "one": [1], **{name: [value] for name, value in bounds.items()}}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v, np.int64), name) for name, v in numbers.items()
    )
    return model


def grouped(channels, groups):
    steps = [
        ("Conv x in > a", {}),
        ("Conv a each > b", {"group": groups}),
        ("GlobalMaxPool b > c", {}),
    ]
    filters = {"in": (channels, 8, 1, 1), "each": (channels, channels // groups, 3, 3)}
    return network(steps, filters)


def residual(one, other, read="b"):
    """Of one or the other's channels, which are broadcast where there is one, and of an input of the network."""
    steps = [("Conv x w > a", {}), ("Conv x v > b", {}), ("Add a b > c", {}), ("Conv c out > d", {})]
    if read == "y":
        steps[1:3] = [("Add a y > c", {})]
    filters = {"w": (one, 8, 1, 1), "v": (other, 8, 1, 1), "out": (8, max(one, other), 1, 1)}
    return network(steps, filters, {"y": [1, one, 6, 6]})


def divided(step):
    """By what has as many channels: those of zeros would be no numbers."""
    steps = [("Conv x w > a", {}), ("Conv x v > b", {}), (step, {}), ("Add c b > e", {}), ("Conv e out > d", {})]
    return network(steps, {"w": (36, 8, 1, 1), "v": (36, 8, 1, 1), "one": (1,), "out": (8, 36, 1, 1)})


def cut(axis):
    """Rows cut off between two convolutions: of each its channels stay."""
    steps = [("Conv x in > a", {}), ("Relu a > b", {}), (f"Slice b one five {axis} > c", {}), ("Conv c out > y", {})]
    model = network(steps, {"in": (20, 8, 1, 1), "out": (8, 20, 1, 1)})
    numbers = {"one": [1], "five": [5], "rows": [2]}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v, np.int64), name) for name, v in numbers.items()
    )
    return model


def of_an_old_set():
    """Whose Slice takes no inputs."""
    model = unit()
    model.opset_import[0].version = 9
    return model


def of_a_sequence():
    """Where the last two axes are the channels and the places."""
    steps = [("Conv x w > a", {}), ("ReduceMean a axes > b", {})]
    return network(steps, {"w": (20, 8, 3)}, shape=(1, 8, 6))


def shapes(model):
    """Of its filters, by the convolution's output."""
    dims = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    return {node.output[0]: dims[node.input[1]] for node in model.graph.node if node.op_type == "Conv"}


@pytest.mark.parametrize(
    ("model", "padded"),
    [
        (unit(), {"a": (24, 8, 1, 1), "d": (24, 1, 3, 3), "e": (24, 24, 1, 1), "h": (8, 28, 1, 1)}),
        (
            excited(),
            {"a": (64, 8, 1, 1), "n": (8, 64, 1, 1), "p": (64, 8, 1, 1), "t": (8, 64, 3, 3)},
        ),
        (grouped(20, 5), {"a": (24, 8, 1, 1), "b": (24, 4, 3, 3)}),
        (modulated(), {"a__padded": (40, 8, 1, 1), "d": (16, 1, 3, 3)}),
        (modulated(split=False), {"a__padded": (40, 8, 1, 1), "d": (16, 1, 3, 3)}),
    ],
    ids=["unit", "excited", "grouped", "split", "sliced"],
)
def test_channels_between_convolutions_are_padded_all_the_way(model, padded):
    """In the groups of a convolution too, of which there are more then."""
    before = outputs(model)
    assert pad_channels(model)
    found = shapes(model)
    assert {name: found.get(name) for name in padded} == padded
    after = outputs(model)
    assert after[0].shape == before[0].shape
    np.testing.assert_allclose(after[0], before[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attributes", [{}, {"keepdims": 1}])
def test_a_mean_over_the_picture_pools_too(attributes):
    model = excited("ReduceMean c axes > m", attributes)
    before = outputs(model)
    assert pad_channels(model)
    assert shapes(model)["n"] == (8, 64, 1, 1)
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("channels", "more"),
    [
        (58, 6),
        (116, 12),
        (232, 8),
        (1000, 8),
        (440, 8),
        (20, 4),
        (36, 4),
        (6, 2),
        (24, 0),
        (40, 0),
        (120, 0),
        (64, 0),
        (3, 0),
    ],
)
def test_few_are_added(channels, more):
    assert padding.more(channels) == more


@pytest.mark.parametrize(
    ("scale", "most"), [((), ()), ((1,), ()), ((1, 1, 1, 1), ()), (BY_CHANNEL, ()), (BY_CHANNEL, BY_CHANNEL)]
)
def test_it_passes_through_the_arithmetic_of_quantised_networks(scale, most):
    model = quantised_classifier(scale, most)
    before = outputs(model)
    assert pad_channels(model)
    assert len(np.unique(before[0])) > 50
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-6, atol=1e-6)


def test_it_passes_through_what_follows_the_pooling():
    """As of a quantised classifier, whose means are quantised too."""
    steps = [
        ("Conv x w > a", {}),
        ("GlobalAveragePool a > b", {}),
        ("Mul b scale > c", {}),
        ("Round c > d", {}),
        ("Add d b > e", {}),
        ("Flatten e > f", {}),
    ]
    model = network(steps, {"w": (100, 8, 1, 1), "scale": (1, 100, 1, 1)})
    before = outputs(model)
    assert pad_channels(model)
    assert shapes(model) == {"a": (112, 8, 1, 1)}
    assert [node.op_type for node in model.graph.node if "e" in node.output] == ["Slice"]
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-6, atol=1e-6)


def test_channels_of_zeros_stay_so_in_arithmetic():
    """What is added to them does not become more with every square until it is no number any more."""
    squares = [step for n in range(10) for step in ((f"Add a{n} c > b{n}", {}), (f"Mul b{n} b{n} > a{n + 1}", {}))]
    steps = [("Conv x w > a0", {}), *squares, ("Conv a10 out > d", {})]
    model = network(steps, {"w": (20, 8, 1, 1), "c": (1, 20, 1, 1), "out": (8, 20, 1, 1)})
    for tensor in model.graph.initializer:
        if tensor.name in ("w", "c"):
            tensor.CopyFrom(numpy_helper.from_array(0.01 * numpy_helper.to_array(tensor), tensor.name))
    before = outputs(model)
    assert pad_channels(model)
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-5)


def test_what_a_convolution_is_added_to_may_be_what_it_reads():
    """Its filters sum up and make the same channels: they are widened along both axes."""
    steps = [("Conv x in > a", {}), ("Conv a each > b", {}), ("Add a b > c", {}), ("Conv c out > d", {})]
    model = network(steps, {"in": (20, 8, 1, 1), "each": (20, 20, 1, 1), "out": (8, 20, 1, 1)})
    before = outputs(model)
    assert pad_channels(model)
    assert shapes(model) == {"a": (24, 8, 1, 1), "b": (24, 24, 1, 1), "d": (8, 24, 1, 1)}
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-4, atol=1e-4)


def test_filters_that_are_shared_stay_shared():
    steps = [("Conv x w > a", {}), ("Conv a each > b", {}), ("Conv b each > c", {}), ("Conv c out > d", {})]
    model = network(steps, {"w": (20, 8, 1, 1), "each": (20, 20, 3, 3), "out": (8, 20, 1, 1)}, shape=(1, 8, 9, 9))
    before = len(model.graph.initializer)
    assert pad_channels(model)
    assert shapes(model)["b"] == shapes(model)["c"] == (24, 24, 3, 3)
    wider = {node.input[1] for node in model.graph.node if node.op_type == "Conv"}
    assert len(wider) == 3
    assert len(model.graph.initializer) <= before + 4  # one between its two widenings


def test_a_chain_of_thousands_takes_no_longer_a_step():
    def took(length):
        steps = [("Conv x w > a0", {}), *((f"Relu a{n} > a{n + 1}", {}) for n in range(length))]
        model = network([*steps, (f"Conv a{length} out > b", {})], {"w": (20, 8, 1, 1), "out": (8, 20, 1, 1)})
        began = time.process_time()
        assert pad_channels(model)
        return time.process_time() - began

    assert quickest(lambda: took(16_000) / took(2_000), 16) < 16


@pytest.mark.parametrize(
    "model",
    [
        quantised_classifier((1, 1, 6, 6)),  # a picture's own numbers
        quantised_classifier((6,)),
        quantised_classifier((1, 1, 1, 1, 1)),
        classifier(128),  # whole vectors already
        classifier(40),  # half vectors, and too many more to whole ones
        classifier(100, groups=4),  # padding would shift the groups
        classifier(100, ("Softmax",)),  # mixes channels
        classifier(100, watched=True),  # somebody else reads the unpadded result
        residual(36, 1),  # a sum with what has one channel
        residual(36, 36, read="y"),  # with what comes from outside
        grouped(20, 2),  # another group would be of ten
        divided("Div a b > c"),
        divided("Div one a > c"),
        cut("rows"),
        of_an_old_set(),
        of_a_sequence(),
    ],
    ids=[
        "picture",
        "row",
        "more axes",
        "whole",
        "halves",
        "groups",
        "mixing",
        "watched",
        "sum",
        "input",
        "tens",
        "quotient",
        "reciprocal",
        "cut",
        "old",
        "sequence",
    ],
)
def test_it_is_left_alone_where_padding_would_show(model):
    before = model.SerializeToString()
    assert pad_channels(model) is None
    assert model.SerializeToString() == before


@pytest.mark.mutation
@pytest.mark.parametrize("broken", ["zeros", "picks"])
def test_padding_that_shows_is_noticed(monkeypatch, broken):
    """Filters of ones in place of zeros; channels picked one further on."""
    if broken == "zeros":
        right = padding.Wider.__call__
        monkeypatch.setattr(padding.Wider, "__call__", lambda *given: right(*given[:-1], 1.0))
    else:
        right = padding._Group.picks

        def shifted(group, weights):
            for name, pick in right(group, weights):
                for place in (1, 2):
                    pick.input[place] = weights.put("shifted", weights.get(pick.input[place]) + 1)
                yield name, pick

        monkeypatch.setattr(padding._Group, "picks", shifted)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test_channels_between_convolutions_are_padded_all_the_way(unit(), {})
