"""Attention over a prime number of keys is compiled over whole vectors of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.networks.test_attention import FORMS, HEADS, KEYS, WIDTH, masked
from tests.networks.test_guards import guarded
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import compiled
from tests.zoo import constant

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("form", ["where each looks", "causal"])
def test_what_is_compiled_weighs_no_key_that_was_added(form: str, tmp_path: Path) -> None:
    """Of numbers of which some keys are weighed by little more than nothing."""
    one = compiled(FORMS[form], tmp_path)
    assert any(size == 32 for workload in one.workloads for size in _columns(workload))
    x = 5 * np.random.default_rng(0).standard_normal((1, HEADS, KEYS, WIDTH)).astype(np.float32)
    wanted = reference(FORMS[form], x)
    for best in ({}, one.drawn(np.random.default_rng(0)), one.drawn(np.random.default_rng(1))):
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("whole", [False, True], ids=["some are seen", "zeros where none is"])
def test_a_mask_that_is_computed_hides_what_it_hid(whole: bool, tmp_path: Path) -> None:
    """The first head's queries see the same keys, about half of them, and the second's fewer and fewer, at last none."""
    model = masked(1, HEADS, KEYS, KEYS)
    model = guarded(model) if whole else model
    graph = model.graph
    made = [
        helper.make_node("ReduceSum", ["x", "last"], ["sums"], keepdims=1),
        helper.make_node("Transpose", ["sums"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("Sub", ["turned", "limits"], ["over"]),
        helper.make_node("Greater", ["over", "none"], ["seen"]),
        helper.make_node("Where", ["seen", "none", "lowest"], ["m"]),
    ]
    nodes = [*made, *graph.node]
    del graph.node[:], graph.input[1:]
    graph.node.extend(nodes)
    limits = np.zeros((1, HEADS, KEYS, 1), np.float32)
    limits[:, 1] = np.linspace(-5, 50 if whole else 2, KEYS, dtype=np.float32)[:, None]
    values = {"last": np.asarray([-1]), "none": np.float32(0), "lowest": np.float32(-np.inf), "limits": limits}
    graph.initializer.extend(constant(name, value) for name, value in values.items())
    one = compiled(model, tmp_path)
    assert any(size == 32 for workload in one.workloads for size in _columns(workload))
    x = np.random.default_rng(0).standard_normal((1, HEADS, KEYS, WIDTH)).astype(np.float32)
    wanted = reference(model, x)
    assert np.isfinite(wanted).all()
    for best in ({}, one.drawn(np.random.default_rng(0))):
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-5)


def _columns(workload) -> list[int]:  # type: ignore[no-untyped-def]
    from workers.tvm_backend.programs import argument_tensors

    return [shape[-1] for shape, _ in argument_tensors(workload.mod) if shape]
