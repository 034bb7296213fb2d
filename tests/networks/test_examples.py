from __future__ import annotations

import numpy as np
import pytest

from workers.baselines.inputs import seeded_inputs
from workers.baselines.session import OnnxRuntimeSession
from workers.networks.errors import NetworkError
from workers.networks.examples import EXAMPLES, example, example_bytes
from workers.networks.inspect import inspect_model


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"vgg19", "alexnet"}))
def test_outputs_of_examples_are_spread_and_depend_on_the_input(name: str) -> None:
    model = example(name)
    session = OnnxRuntimeSession(model.SerializeToString(), 1)
    first, second = (
        next(iter(session.run(seeded_inputs(inspect_model(model), seed)).values())).ravel() for seed in (0, 1)
    )
    assert np.isfinite(first).all()
    # A Relu before the Softmax (SqueezeNet) leaves many classes at zero.
    assert len(np.unique(first)) > 300
    assert np.abs(first - second).max() > 1e-2 * np.abs(first).max()
    if any(node.op_type == "Softmax" for node in model.graph.node):
        assert first.max() < 0.9


def test_a_seed_names_the_weights() -> None:
    assert example_bytes("squeezenet", 1) == example_bytes("squeezenet", 1)
    assert example_bytes("squeezenet", 1) != example_bytes("squeezenet", 2)


def test_unknown_example_is_refused_with_the_choice() -> None:
    with pytest.raises(NetworkError, match="squeezenet"):
        example("../../etc/passwd")
