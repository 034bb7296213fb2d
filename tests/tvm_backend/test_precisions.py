"""float16 and quantised networks through TVM's import compute what ONNX Runtime computes on the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import zoo
from tests.tvm_backend.local import spec_of
from tests.tvm_backend.test_configurations import Compiled
from workers.baselines.inputs import seeded_inputs
from workers.baselines.session import OnnxRuntimeSession
from workers.baselines.verify import compare
from workers.networks.check import load
from workers.networks.inspect import inspect_model
from workers.networks.tolerance import tolerances

pytestmark = pytest.mark.tvm

FORMS = ["float16", "float32", "QDQ", "QDQ per channel", "QOperator", "QOperator per channel", "dynamic"]


def network(cache: Path, name: str, form: str) -> Path:
    if form.startswith("float"):
        return zoo.half(cache, name, form)
    kind, _, channels = form.partition(" ")
    return zoo.quantised(cache, name, kind, bool(channels))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["tiny", "tiny_attention"])
def test_random_configurations_compute_what_the_reference_computes(zoo_cache: Path, name: str, form: str) -> None:
    path = network(zoo_cache, name, form)
    compiled, rng = Compiled(path), np.random.default_rng(7)
    inputs = seeded_inputs(inspect_model(load(path)), 0)
    wanted = OnnxRuntimeSession(path, 1, exact=True).run(inputs)
    for best in ({}, compiled.drawn(rng), compiled.drawn(rng)):
        verdict = compare({"y": compiled.run(best, inputs["x"])}, wanted, tolerances(load(path)))
        assert verdict.passed, verdict.reason


def test_types_at_the_borders_are_those_of_the_file(zoo_cache: Path) -> None:
    path = zoo.half(zoo_cache, "tiny")
    x: Any = seeded_inputs(inspect_model(load(path)), 0)["x"]
    assert x.dtype == Compiled(path).run({}, x).dtype == np.float16


def test_a_quantised_convolution_keeps_its_layout_conversion(zoo_cache: Path) -> None:
    compiled = Compiled(zoo.quantised(zoo_cache, "tiny"))
    assert compiled.imported.layout == "NHWC"
    assert not [task.name for task in compiled.extracted if "transpose" in task.name and "conv" in task.name]
    assert spec_of(zoo.quantised(zoo_cache, "tiny")).inputs["x"] == [1, 16, 14, 14]
