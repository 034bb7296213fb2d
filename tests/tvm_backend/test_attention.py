"""Attention over a prime number of keys is compiled over whole vectors of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.networks.test_attention import FORMS, HEADS, KEYS, WIDTH
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import compiled

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


def _columns(workload) -> list[int]:  # type: ignore[no-untyped-def]
    from workers.tvm_backend.programs import argument_tensors

    return [shape[-1] for shape, _ in argument_tensors(workload.mod) if shape]
