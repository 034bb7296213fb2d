"""One operator after the other: imported as what it is, and the same in every configuration that is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.networks.operators import OPERATORS
from tests.tvm_backend.local import THREADS, reference
from tests.tvm_backend.test_configurations import Compiled, drawn_input
from workers.engine.machine import Machine
from workers.engine.start import first_configurations

pytestmark = pytest.mark.tvm

FIRST, DRAWN = 1, 1


@pytest.mark.parametrize("name", list(OPERATORS))
def test_an_operator_computes_the_same_in_every_configuration(name: str, tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(OPERATORS[name]().SerializeToString())
    compiled = Compiled(path)
    x = drawn_input(compiled.shape)
    found, wanted = compiled.run({}, x), reference(path, x)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-5 * max(1.0, float(np.abs(wanted).max()))

    from workers.tvm_backend.plain import Plain

    plain, rng = [Plain(workload) for workload in compiled.workloads], np.random.default_rng(3)
    for one, workload in zip(plain, compiled.workloads, strict=True):
        taken = [(c.sketch, c.choices) for c in first_configurations(workload.sketches, Machine(cores=THREADS), FIRST)]
        assert taken
        for sketch, choices in taken:
            assert one.computes(sketch, choices), (sketch, choices)
    for _ in range(DRAWN):
        drawn = compiled.drawn(rng)
        assert len(drawn) == len(compiled.workloads)
        for index, (sketch, choices, _) in drawn.items():
            assert plain[index].computes(sketch, choices), (sketch, choices)
