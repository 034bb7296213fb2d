"""Networks of hundreds of operators: what their clean-up, import and spaces take grows with their number, not faster."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.tvm_backend.local import target
from tests.zoo import constant, model_of
from workers.networks.clean import clean

pytestmark = pytest.mark.tvm
FEW, MANY = 30, 240
SLACK = 1.6
"""Of the ratio that a linear cost has: processor time varies by some ten per cent."""


def chain(count: int) -> ModelProto:
    """Convolutions of which no two are alike, by what follows them: channels are padded to few numbers."""
    weights, nodes, names = [], [], ["x", *(f"r{place}" for place in range(count - 1)), "y"]
    for place in range(count):
        weights.append(constant(f"w{place}", np.full((9 + place, 8 + place, 1, 1), 0.01, np.float32)))
        nodes.append(helper.make_node("Conv", [names[place], f"w{place}"], [f"c{place}"]))
        nodes.append(helper.make_node("Elu", [f"c{place}"], [names[place + 1]], alpha=(place + 1) / 1000))
    return model_of(nodes, {"x": [1, 8, 4, 4]}, {"y": None}, weights)


def spent(count: int) -> float:
    """Processor time from a file to the operators and their spaces, in seconds an operator."""
    import tvm

    from workers.tvm_backend.importer import import_network
    from workers.tvm_backend.library import Network

    made, device = chain(count), tvm.target.Target(target())
    began = time.process_time()
    cleaned, _ = clean(made, {}, lambda same: same)
    network = Network.of(import_network(cleaned, {}, device), device)
    seconds = time.process_time() - began
    assert len(network.workloads) >= count
    return seconds / count


def test_operators_of_a_long_network_take_no_more_time_each() -> None:
    spent(2)  # TVM takes its own first
    few, many = (min(spent(count) for _ in range(2)) for count in (FEW, MANY))
    sys.stdout.write(f"{1e3 * few:.1f} ms an operator of {FEW}, {1e3 * many:.1f} of {MANY}\n")
    assert many < SLACK * few
