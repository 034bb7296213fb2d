"""Powers whose exponents are quarters are roots and products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.networks.forms import floats, one
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import Compiled, compiled, drawn_input
from tests.zoo import model_of

pytestmark = pytest.mark.tvm


def powers(network: Compiled) -> int:
    """Calls of the C library's pow."""
    return sum("T.pow(" in workload.mod.script() for workload in network.workloads)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2.0, 3.0, 4.0, -0.25, -0.5, -0.75, -2.0])
def test_quarters_are_written_out(exponent: float, tmp_path: Path) -> None:
    network = compiled(one("Pow", [3, 50], 17, floats(exponent)), tmp_path)
    assert powers(network) == 0
    x = np.abs(drawn_input(network.shape)) + np.float32(0.01)
    x[0, :2] = 1e4, 1e-4
    best = network.drawn(np.random.default_rng(0))
    np.testing.assert_allclose(network.run(best, x), reference(tmp_path / "network.onnx", x), rtol=1e-6)


def test_what_has_no_root_is_not_a_number_and_squares_have_no_sign(tmp_path: Path) -> None:
    for number, exponent in enumerate((0.75, 2.0, 3.0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        network = compiled(one("Pow", [4], 17, floats(exponent)), folder)
        x = floats(-2.0, 0.0, np.inf, np.nan)
        found = network.run(network.drawn(np.random.default_rng(0)), x)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(found, np.power(x, np.float32(exponent)))


@pytest.mark.parametrize("exponent", [0.3, 5.0, 0.0, -4.25])
def test_others_are_computed_as_before(exponent: float, tmp_path: Path) -> None:
    network = compiled(one("Pow", [3, 50], 17, floats(exponent)), tmp_path)
    x = np.abs(drawn_input(network.shape)) + np.float32(0.1)
    assert powers(network) == 1
    found = network.run(network.drawn(np.random.default_rng(0)), x)
    np.testing.assert_allclose(found, reference(tmp_path / "network.onnx", x), rtol=1e-5)


def test_an_exponent_of_more_axes_gives_them_to_the_result(tmp_path: Path) -> None:
    network = compiled(one("Pow", [3, 50], 17, np.full((1, 1, 1), 0.5, np.float32)), tmp_path)
    x = np.abs(drawn_input(network.shape))
    found = network.run(network.drawn(np.random.default_rng(0)), x)
    assert found.shape == (1, 3, 50)
    np.testing.assert_allclose(found, reference(tmp_path / "network.onnx", x), rtol=1e-6)


def test_a_local_response_normalisation_calls_no_power(tmp_path: Path) -> None:
    node = helper.make_node("LRN", ["x"], ["y"], size=5, alpha=1e-2, beta=0.75, bias=1.0)
    network = compiled(model_of([node], {"x": [1, 16, 6, 7]}, {"y": None}, []), tmp_path)
    assert powers(network) == 0
    x = 10 * drawn_input(network.shape)
    found = network.run(network.drawn(np.random.default_rng(0)), x)
    np.testing.assert_allclose(found, reference(tmp_path / "network.onnx", x), rtol=1e-5, atol=1e-6)
